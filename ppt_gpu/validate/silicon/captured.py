"""Captures in the set `measured`: every row of the capture kit's files, held against its prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import median

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.files import shipped
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.silicon.capture import Capture, Time, at_row, read_capture
from ppt_gpu.validate.silicon.capture_runs import run_time
from ppt_gpu.validate.tables.rows import Row, is_asked

_FIRST = "# capture:"


def rows(texts: Sequence[str] = (), captures: Sequence[str] = ()) -> list[Row]:
    """Rows of these captures, or of the shipped ones, whose "GROUP GPU NAME" contains one of `texts`."""
    found = []
    for path in captures or _shipped_captures():
        capture = read_capture(path)
        gpu = gpu_of(capture)
        for time in capture.times:
            title = f"{time.run.group} {gpu.name} {time.run.name}"
            if is_asked(title, texts):
                with at_row(capture, time):
                    found.append(_predicted(time, gpu))
    return found


def gpu_of(capture: Capture) -> Gpu:
    """The GPU that a capture is of, at the clock that it measured.

    The hardware file that its header names ("# hardware: my_gpu.toml"), else the shipped GPU of its compute capability
    and number of SMs, of several the one whose memory is nearest. PptError when there is none.
    """
    named = capture.facts.get("hardware")
    if named:
        path = Path(capture.path).parent / named
        return load_gpu(path if named.endswith(".toml") else named, [_clock(capture)])
    candidates = [gpu for gpu in _all_gpus() if _fits(gpu, capture)]
    if not candidates:
        raise PptError(
            f"no shipped GPU with compute capability {capture.facts['compute_capability']} and "
            f"{capture.facts['sms']} SMs, as {capture.facts['gpu']} has",
            path=capture.path,
            hint="name one in the capture, or a file of yours beside it: # hardware: my_gpu.toml",
        )
    size = capture.facts.get("memory_bytes", "")
    near = min(candidates, key=lambda gpu: abs(gpu.dram.size - int(size))) if size.isdecimal() else candidates[0]
    return load_gpu(near.name, [_clock(capture)])


def _clock(capture: Capture) -> str:
    return f"sm.clock={median(time.clock for time in capture.times):.10g} MHz"


def _fits(gpu: Gpu, capture: Capture) -> bool:
    """Simulated GPUs, which have an ISA of their own, are no candidates."""
    major, minor = capture.capability
    return gpu.isa.name == f"sm_{major}{minor}" and str(gpu.sm.count) == capture.facts["sms"]


@cache
def _all_gpus() -> tuple[Gpu, ...]:
    return tuple(load_gpu(name) for name in shipped("gpus"))


def _shipped_captures() -> Iterator[str]:
    for path in sorted((data_dir("validation") / "measured").glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            if file.readline().startswith(_FIRST):
                yield str(path)


def _predicted(time: Time, gpu: Gpu) -> Row:
    us = run_time(time.run, gpu, time.registers, time.batch)
    return Row(time.run.name, gpu.name, f"capture {time.run.group}", "steady", time.median, us, "us")
