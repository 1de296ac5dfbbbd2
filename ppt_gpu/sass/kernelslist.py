"""Traced applications: `kernelslist.g`, kernels and host copies of a run in their order; or a single kernel trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.sass.trace_header import TraceHeader, is_trace, trace_header
from ppt_gpu.workload.workload import Copy, Launch, Range, Workload

_COPIES = {"MemcpyHtoD": "in", "MemcpyDtoH": "out"}


@dataclass(frozen=True)
class Traced:
    """One launch of the list, with what the host has copied to the GPU before it."""

    header: TraceHeader
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class TracedRun:
    launches: tuple[Traced, ...]
    copies: tuple[Copy, ...]


def read_run(path: str | Path) -> TracedRun:
    """The launches that `path` names, a list or one kernel trace; of the traces only their headers are read.

    Raises PptError when something is missing, wrong, or does not belong together.
    """
    if is_trace(path):
        return TracedRun((Traced(trace_header(path), ()),), ())
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise PptError(f"cannot read the list of kernels: {reason}", path=path) from None
    launches: list[Traced] = []
    copies: list[Copy] = []
    ranges: dict[int, Range] = {}
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if word.startswith("kernel"):
            launches.append(_launch(Path(path), number, word, tuple(ranges.values()), launches))
            continue
        direction, start, size = _copy(path, number, word)
        copies.append(Copy(size, direction, pinned=False, name=f"copy{len(copies)}"))
        if direction == "in":
            ranges.pop(start, None)
            ranges[start] = Range(copies[-1].name, start, size, True)
    if not launches:
        raise PptError("the list names no kernel trace", path=path, hint="a line such as kernel-1.traceg")
    return TracedRun(tuple(launches), tuple(copies))


def _launch(path: Path, number: int, word: str, ranges: tuple[Range, ...], before: list[Traced]) -> Traced:
    named = path.parent / word
    file = next((each for each in (named, *(Path(f"{named}.{end}") for end in ("xz", "gz"))) if each.is_file()), None)
    if file is None:
        others = [other.name for other in path.parent.iterdir() if is_trace(other)]
        hint = did_you_mean(word, others) or "kernel traces stand beside the list"
        raise PptError(f"there is no kernel trace '{word}'", path=path, line=number, hint=hint)
    header = trace_header(file)
    if before and before[0].header.arch != header.arch:
        first = before[0].header
        message = f"'{word}' is of sm_{header.arch}, the first kernel of sm_{first.arch}: traces of two GPUs are mixed"
        raise PptError(message, path=path, line=number)
    return Traced(header, ranges)


def _copy(path: str | Path, number: int, word: str) -> tuple[str, int, int]:
    kind, *values = word.split(",")
    if kind not in _COPIES:
        hint = did_you_mean(kind, (*_COPIES, "kernel-1.traceg"))
        raise PptError(f"unknown command '{kind}'", path=path, line=number, hint=hint)
    try:
        start, size = int(values[0], 16), int(values[1])
    except (ValueError, IndexError):
        size = start = 0
    if size <= 0 or start < 0 or len(values) != 2:
        message = f"'{word}': expected {kind},address,bytes"
        raise PptError(message, path=path, line=number, hint=f"such as {kind},0x00007f0000000000,4096")
    return _COPIES[kind], start, size


def open_run(path: str | Path) -> Workload:
    """The traced run as a workload without data. Raises PptError."""
    run = read_run(path)
    launches = tuple(
        Launch(
            kernel=each.header.kernel,
            grid=each.header.grid,
            block=each.header.block,
            arguments=(),
            registers=each.header.registers,
            register_source="the trace",
            static_shared=each.header.shared,
        )
        for each in run.launches
    )
    return Workload(Path(path).name, str(path), "", launches, copies=run.copies, machine_path=str(path))
