"""The set `gpgpusim` with --speed: CPU seconds beside the reference's, and counts that must be equal."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from ppt_gpu.common.progress import parts
from ppt_gpu.common.threads import at_most
from ppt_gpu.pipeline import open_gpu, predict_sequence, simulated_sms, workload_traces
from ppt_gpu.ptx.linking.liveness import estimate_registers
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.scale.cache.block_timing import BlockTiming
from ppt_gpu.scale.cache.launch_store import Codec, LaunchStore
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.validate.gpgpusim.launches import GPUS, MODES, Part, chosen, in_order, parts_of, row_of
from ppt_gpu.validate.tables.rows import Row, summary_lines
from ppt_gpu.workload.budget import Budget

T = TypeVar("T")

#: thread instructions of a launch, above which its ratio counts
LONG = 1_000_000
#: ratios to reach: of the SM's loop, of the whole prediction
TARGETS = (1000, 100)


@dataclass(frozen=True)
class Counts:
    """What is the reference's too, or not: (ours, the reference's)."""

    thread_instructions: tuple[int, int]
    resident_blocks: tuple[int, int]
    registers: tuple[int, int]  # estimated from the PTX; the prediction takes the reference's


@dataclass(frozen=True)
class Timed:
    """A launch, predicted with nothing kept of earlier predictions, but compiled code. Seconds are of CPU time."""

    row: Row
    instructions: int  # of threads, in the reference
    reference: float  # s
    whole: float  # s, from the launch before, or the beginning: reading, functional run, lowering, simulation, report
    core: float  # s in the loop over the SM's cycles, of all simulations of the launch
    counts: Counts

    @property
    def ratios(self) -> tuple[float, float]:
        """The reference's seconds over ours: in the loop, of everything."""
        return self.reference / max(self.core, 1e-9), self.reference / max(self.whole, 1e-9)


class LoopSeconds(LaunchStore):
    """Keeps nothing; sees each simulation that is made."""

    records = False

    def __init__(self) -> None:
        self.seconds = 0.0

    def get(self, codec: Codec[T], name: str) -> T | None:
        return None

    def put(self, codec: Codec[T], name: str, value: T) -> None:
        if isinstance(value, BlockTiming):
            self.seconds += value.result.wall

    def taken(self) -> float:
        """CPU seconds in the SM loop since this was asked last."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


class Watch:
    """Looks on while the launches of a part are predicted."""

    def __init__(self, part: Part, counting: bool) -> None:
        self.part, self.counting = part, counting
        self.at = time.process_time()
        self.loop = LoopSeconds()
        self.spent: list[tuple[float, float]] = []  # by launch: everything, the loop
        self.counts: list[Counts | None] = []
        self.results: list[LaunchResult] = []

    def seen(self, prediction: KernelPrediction, result: LaunchResult) -> None:
        now, sm = time.process_time(), prediction.simulated_sm
        self.spent.append((now - self.at, self.loop.taken()))
        self.results.append(result)
        member = self.part.rows[len(self.counts)]
        self.counts.append(_counts(sm, member) if self.counting and member and isinstance(sm, TraceSm) else None)
        self.at = time.process_time()


def _counts(sm: TraceSm, member: dict[str, str]) -> Counts:
    run = int(sm.traces.features(range(sm.launch.blocks)).thread_instructions.sum())
    return Counts(
        thread_instructions=(run, int(member["gpu_sim_insn"])),
        resident_blocks=(sm.occupancy.blocks_per_sm, int(member["max_cta_per_core"])),
        registers=(estimate_registers(sm.kernel), int(member["regs"])),
    )


def timed(cases: Sequence[str] = (), level: str = "steady") -> list[Timed]:
    """Every launch whose case name has one of `cases`, at `level`: once to warm up and count, once for time."""
    found: dict[tuple[str, str, str], Timed] = {}
    for members in parts(chosen(cases), "programs"):
        for part in parts_of(members):
            for one in _timed_part(part, members[0], level):
                found[one.row.gpu, one.row.mode, one.row.case] = one
    return [found[row.gpu, row.mode, row.case] for row in in_order([one.row for one in found.values()], cases)]


def _timed_part(part: Part, member: dict[str, str], level: str) -> list[Timed]:
    first, second = (_watched(part, member, level, counting) for counting in (True, False))
    found = []
    for number, one in enumerate(part.rows):
        counts = first.counts[number]
        if one is not None and counts is not None:
            whole, core = second.spent[number]
            row = row_of(one, second.results[number])
            found.append(Timed(row, counts.thread_instructions[1], float(one["cpu_s"]), whole, core, counts))
    return found


def _watched(part: Part, member: dict[str, str], level: str, counting: bool) -> Watch:
    """Predict the launches of a part, without anything kept on disk."""
    watch = Watch(part, counting)
    gpu = open_gpu(GPUS[member["config"]], MODES[member["mem"]])
    traces, sequence = workload_traces(part.workload, gpu, part.contents, Budget(), (), False, None)
    made = simulated_sms(part.workload, traces, sequence, gpu, None, keep=False)
    sms = (replace(sm, kept=watch.loop) for sm in made)
    with at_most(1):  # launches are timed one by one
        predict_sequence(sequence, sms, gpu, level, "sample", watch.seen)
    return watch


@dataclass(frozen=True)
class Speed:
    """Geometric means of the ratios of the launches of more than LONG thread instructions."""

    gpu: str
    mode: str
    launches: int
    core: float
    whole: float


def speeds(found: Sequence[Timed]) -> list[Speed]:
    """By configuration and memory mode, in order of appearance, and over all."""
    long = [one for one in found if one.instructions > LONG]
    groups: dict[tuple[str, str], list[Timed]] = {}
    for one in long:
        groups.setdefault((one.row.gpu, one.row.mode), []).append(one)
    if long:
        groups["all", "all"] = long
    means = {key: zip(*(one.ratios for one in members), strict=True) for key, members in groups.items()}
    return [Speed(*key, len(groups[key]), *map(statistics.geometric_mean, pair)) for key, pair in means.items()]


def to_json(name: str, found: Sequence[Timed]) -> str:
    """Rows with their seconds and counts, and the ratios."""
    document = {
        "schema": 1,
        "set": name,
        "rows": [
            {**asdict(one.row), "error": one.row.error, "instructions": one.instructions, "reference_s": one.reference}
            | {"whole_s": one.whole, "core_s": one.core, **asdict(one.counts)}
            for one in found
        ],
        "speed": [asdict(speed) for speed in speeds(found)],
    }
    return json.dumps(document, indent=2) + "\n"


def to_text(name: str, found: Sequence[Timed]) -> str:
    """A table for each configuration and memory mode, then errors, ratios and what is not equal. 80 columns."""
    lines = ["cycles and CPU seconds of the reference, each with ours", ""]
    width = max(len(one.row.case) for one in found)
    head = f"{'launch':{width}} {'cycles':>7} {'ours':>7} {'error':>6} {'CPU s':>5} {'ours':>6} {'core':>6} level"
    for key in dict.fromkeys((one.row.gpu, one.row.mode) for one in found):
        lines += [", ".join(key), head]
        lines += [_line(one, width) for one in found if (one.row.gpu, one.row.mode) == key]
        lines.append("")
    lines += [f"{name}, errors of cycles predicted against the reference", ""]
    lines += [*summary_lines([one.row for one in found]), "", *_speed_lines(found), "", *_count_lines(found)]
    return "\n".join(lines) + "\n"


def _line(one: Timed, width: int) -> str:
    row = one.row
    return (
        f"{row.case:{width}} {row.reference:7.0f} {row.predicted:7.0f} {row.error:+6.1%} "
        f"{one.reference:5.1f} {one.whole:6.3f} {one.core:6.4f} {row.level}"
    )


def _speed_lines(found: Sequence[Timed]) -> list[str]:
    lines = [
        "CPU seconds of the reference over ours, geometric mean of launches of more than",
        f"{LONG:,} thread instructions; ours with the functional run, compiled code warm",
        "",
        f"{'gpu':16} {'mode':15} {'launches':>8} {'core':>8} {'end to end':>11}",
    ]
    lines += [f"{s.gpu:16} {s.mode:15} {s.launches:8} {s.core:8,.0f} {s.whole:11,.0f}" for s in speeds(found)]
    return [*lines, f"{'to reach':41} {TARGETS[0]:8,} {TARGETS[1]:11,}"]


def _count_lines(found: Sequence[Timed]) -> list[str]:
    names = {
        "thread_instructions": "thread instructions as in the reference",
        "resident_blocks": "resident blocks as in the reference",
        "registers": "registers, estimated from the PTX, as in the reference",
    }
    lines = ["Predictions take the registers of the reference.", ""]
    for name, text in names.items():
        wrong = [(one.row, getattr(one.counts, name)) for one in found if len(set(getattr(one.counts, name))) > 1]
        lines.append(f"{text}: {len(found) - len(wrong)} of {len(found)} launches")
        if name != "registers":
            lines += [f"  {row.case}, {row.gpu}, {row.mode}: {ours}, not {other}" for row, (ours, other) in wrong]
    return lines
