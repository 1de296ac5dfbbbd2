"""The timeline of a prediction: the application, and of each launch a recorded window of the simulated SM.

One cycle of the SM is drawn as 1 us, and all times are whole cycles, because viewers round to whole nanoseconds: what
does not overlap must not do so after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ppt_gpu.common.units import format_frequency
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.report.timeline.trace_events import Event, counter, flight, process_name, span, track_name
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference.recording import SAMPLED, SERVERS, Recording

APPLICATION = 1  # the process of copies and launches
SCHEDULERS, PIPES, WARPS, MEMORY = range(4)  # the processes of a launch, from PER_LAUNCH times its number on
PER_LAUNCH = 10
#: cycles over which counters are averaged
BIN = 16
#: counter -> what is counted, as parts of SAMPLED
COUNTERS = {
    "L1 sectors per cycle": ("l1_accesses",),
    "L2 B per cycle": ("l2_read_bytes", "l2_write_bytes"),
    "DRAM B per cycle": ("dram_read_bytes", "dram_write_bytes"),
    "shared-memory passes per cycle": ("shared_passes",),
}


def timeline(result: Result) -> list[Event]:
    """All events. Launches without a recording have no tracks of their own."""
    return list(_events(result))


def about(result: Result) -> dict[str, Any]:
    """What the file is, for its metadata."""
    clock = float(result.main.value("gpu.clock"))
    windows = {
        f"launch {number}": window_text(launch.recording)
        for number, launch in enumerate(result.launches)
        if launch.recording is not None
    }
    return {
        "workload": result.workload,
        "gpu": result.gpu,
        "time axis": f"1 us is drawn for 1 cycle of the SM clock, {format_frequency(clock)}",
        "predicted_s": result.time,
        **windows,
    }


def window_text(recording: Recording) -> str:
    """Which part of which simulation was recorded."""
    whole = "to their end" if recording.finished else f"to {recording.end:,}"
    first = ", ".join(str(block) for block in recording.blocks[:3])
    more = ", ..." if len(recording.blocks) > 3 else ""
    count = len(recording.blocks)
    return (
        f"cycles {recording.first:,} {whole} of the simulation of {count} block{'s' * (count != 1)} "
        f"(number {first}{more}) on one SM, which the prediction rests on"
    )


def _events(result: Result) -> Iterator[Event]:
    clock = float(result.main.value("gpu.clock"))
    yield from process_name(APPLICATION, f"{result.workload} on {result.gpu}: copies and launches", 0)
    starts: dict[int, int] = {}
    for part in result.spans:
        first, end = round(part.start * clock), round(part.end * clock)
        starts.setdefault(part.launch, first)
        track = 0 if part.launch < 0 else 1
        name = part.name if part.launch < 0 else short_name(part.name)
        yield span(name, APPLICATION, track, first, max(end - first, 1))
    yield from track_name(APPLICATION, 0, "copies")
    yield from track_name(APPLICATION, 1, "launches")
    for number, launch in enumerate(result.launches):
        if launch.recording is not None and launch.detail is not None:
            base = PER_LAUNCH * (number + 1)
            yield from _launch(launch, launch.recording, launch.detail, base, starts.get(number, 0))


def _launch(launch: LaunchResult, recording: Recording, detail: Detail, base: int, start: int) -> Iterator[Event]:
    """The recorded window, as if the simulated blocks were the first of the launch, which begins at `start`."""
    name = short_name(launch.kernel)
    titles = ("schedulers", "pipes", "warps", "memory")
    for part, title in enumerate(titles):
        yield from process_name(base + part, f"{name}: {title} of one SM", base + part)
    yield from _issues(recording, detail, base, start)
    yield from _warps(recording, base + WARPS, start)
    yield from _in_flight(recording, base + MEMORY, start)
    yield from _counters(recording, base + MEMORY, start)


def _issues(recording: Recording, detail: Detail, base: int, start: int) -> Iterator[Event]:
    """Each issue on its scheduler's track and on that of the unit that it occupies."""
    for scheduler in range(recording.schedulers):
        yield from track_name(base + SCHEDULERS, scheduler, f"scheduler {scheduler}")
    text = {line.line: " ".join(line.text.split()) for line in detail.source}
    units: dict[int, str] = {}
    for cycle, scheduler, unit, slot, op, _ in recording.issues.tolist():
        line = detail.operation_lines[recording.op_pc[op]]
        found = {"warp slot": slot, "line": line, "source": text.get(line, "")}
        name, pipe = recording.op_name[op], recording.op_pipe[op]
        yield span(name, base + SCHEDULERS, scheduler, start + cycle, 1, found)
        if recording.op_ii[op]:
            place = "SM" if recording.pipe_shared[pipe] else f"scheduler {scheduler}"
            track = (pipe * recording.schedulers + (0 if recording.pipe_shared[pipe] else scheduler)) * 64 + unit
            units[track] = f"{detail.pipes[pipe].name}, {place}, unit {unit}"
            yield span(name, base + PIPES, track, start + cycle, recording.op_ii[op], found)
    for track in sorted(units):
        yield from track_name(base + PIPES, track, units[track])


def _warps(recording: Recording, process: int, start: int) -> Iterator[Event]:
    """What each warp was charged with."""
    for slot in np.unique(recording.spans[:, 0]).tolist():
        yield from track_name(process, slot, f"warp slot {slot}")
    for slot, block, warp, first, cycles, reason in recording.spans.tolist():
        held = recording.blocks[block] if recording.blocks else block
        found = {"block": held, "warp of the block": warp}
        yield span(STALL_REASONS[reason], process, slot, start + first, cycles, found)


def _in_flight(recording: Recording, process: int, start: int) -> Iterator[Event]:
    """Memory operations from issue to result, and how many there are."""
    change: dict[int, int] = {}
    for number, (cycle, _, _, slot, op, done) in enumerate(recording.issues.tolist()):
        if recording.op_memory[op] and done > cycle:
            held = {"warp slot": slot}
            yield from flight(recording.op_name[op], process, number, start + cycle, start + done, held)
            change[cycle] = change.get(cycle, 0) + 1
            change[done] = change.get(done, 0) - 1
    flying = 0
    for cycle in sorted(change):
        flying += change[cycle]
        if change[cycle]:
            yield counter("operations in flight", process, start + cycle, {"operations": flying})


def _counters(recording: Recording, process: int, start: int) -> Iterator[Event]:
    """Traffic, averaged, and when the servers of L2 and DRAM had work queued."""
    cycles = recording.end - recording.first
    for name, parts in COUNTERS.items():
        columns = [SAMPLED.index(part) for part in parts]
        if not recording.samples[:, columns].any():
            continue
        for at in range(0, cycles, BIN):
            taken = recording.samples[at : at + BIN, columns].sum(axis=0) / min(BIN, cycles - at)
            values = dict(zip(parts, taken.round(4).tolist(), strict=True))
            yield counter(name, process, start + recording.first + at, values)
        yield counter(name, process, start + recording.end, dict.fromkeys(parts, 0.0))
    for column, server in enumerate(SERVERS):
        track = column + 1
        yield from track_name(process, track, f"{server.upper()} has work queued")
        for first, end in runs(recording.busy[:, column].tolist()):
            yield span("busy", process, track, start + recording.first + first, end - first)


def runs(flags: Iterable[bool]) -> list[tuple[int, int]]:
    """(first, one past the last) of each run of True."""
    marks = np.flatnonzero(np.diff(np.array([False, *flags, False]).astype(np.int8)))
    return list(zip(marks[::2].tolist(), marks[1::2].tolist(), strict=True))
