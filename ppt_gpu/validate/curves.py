"""The set `curves`: latency and cache bandwidth by working set, and small kernels, as measured on real GPUs.

Raw files of gpu-benches in validation/measured/curves; the kernels are ours (kernels/curves.cu, stream.cu). A steady
rate is the difference of a long and a short run, so that what is cold or starts up is in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.memory import ALIGNMENT, GLOBAL_BASE
from ppt_gpu.exec.workload import Workload
from ppt_gpu.paths import data_dir
from ppt_gpu.validate.rows import Row

if TYPE_CHECKING:
    from ppt_gpu.report.result import Result

LINE = 128  # B between the elements of a chain


@dataclass(frozen=True)
class Case:
    """A point of a curve: `predict` gives its value in the unit of `reference`."""

    name: str
    gpu: str
    curve: str
    reference: float
    unit: str
    predict: Callable[[], float]


# --- gpu-latency: a chain of dependent loads -------------------------------------------------------------------------

#: file -> GPU; the clock stands in the file
LATENCIES = {"v100": "v100", "a100_80": "a100_80gb"}
#: KiB: in the L1, in the L2, in its far part where it has one, and beyond it
CHAINS = (16, 64, 512, 2016, 4333, 38878, 125026)


def _latency() -> Iterator[Case]:
    for file, gpu in LATENCIES.items():
        points = {round(row[2]): row for row in _numbers(f"gpu-latency.{file}")}
        for size in CHAINS:
            near = min(points, key=lambda found: abs(found - size))
            clock, cycles = points[near][1], points[near][-1]
            yield Case(
                f"latency {near} KiB", gpu, "latency", cycles, "cycles",
                partial(chain_latency, gpu, near * 1024, clock),
            )  # fmt: skip


def chain_latency(gpu: str, size: int, clock: float) -> float:
    """Cycles a load of one thread that follows a random chain through `size` bytes, `clock` in MHz.

    The chain is run through once, and then as often again.
    """
    links = size // LINE
    order = np.random.default_rng(1).permutation(links) * LINE
    chain = np.zeros(links * LINE // 8, np.int64)
    chain[order // 8] = GLOBAL_BASE + ALIGNMENT + np.roll(order, -1)  # where the first buffer stands
    long, short = (
        _cycles(_workload("curves", "chase", 1, 1, (f"s64[{chain.size}]", "s64[1]", f"i32={steps}")), gpu, clock, chain)
        for steps in (2 * links, links)
    )  # fmt: skip
    return (long - short) / links


# --- gpu-cache: all SMs read the same data ---------------------------------------------------------------------------

#: file -> (GPU, MHz)
CACHES = {"v100": ("v100", 1380), "a100_80": ("a100_80gb", 1410), "a40": ("a40", 1740)}
#: KiB: in the L1, in the L2
SETS = (32, 2048)
THREADS = 1024


def _bandwidth() -> Iterator[Case]:
    for file, (gpu, clock) in CACHES.items():
        words = [line.split() for line in _lines(f"gpu-cache.{file}") if "GB/s" in line]
        points = {float(word[0]): float(word[4]) for word in words}
        for size in SETS:
            near = min(points, key=lambda found: abs(found - size))
            yield Case(
                f"bandwidth {near:.0f} KiB", gpu, "bandwidth", points[near], "GB/s",
                partial(read_bandwidth, gpu, size * 1024, clock),
            )  # fmt: skip


def read_bandwidth(gpu: str, size: int, clock: float) -> float:
    """GB/s of all SMs, each with a block that reads the same `size` bytes round after round, `clock` in MHz."""
    from ppt_gpu.spec import load_gpu

    sms = load_gpu(gpu).sm.count
    rounds = max(2, (64 << 10) // (size >> 10))
    count = size // 4
    data = (f"f32[{count}]", f"f32[{THREADS}]", f"i32={count}")
    long, short = (
        _cycles(_workload("curves", "sum", sms, THREADS, (*data, f"i32={n}")), gpu, clock) for n in (2 * rounds, rounds)
    )
    return sms * size * rounds / ((long - short) / clock) / 1e3


# --- gpu-small-kernels: launches one after another in a stream -------------------------------------------------------

#: file -> (GPU, MHz, threads of a block by column)
SMALL = {
    "a100_80": ("a100_80gb", 1410, (4, 8, 16, 32, 64, 128, 256, 512, 1024)),
    "a40": ("a40", 1740, (32, 64, 128, 256, 512, 1024)),
    "h200": ("h200", 1980, (32, 64, 128, 256, 512, 1024)),
}
#: elements, and threads of a block
ELEMENTS, BLOCKS = (8192, 65536, 262144, 1 << 20, 1 << 23), (32, 128, 512)


def _small() -> Iterator[Case]:
    for file, (gpu, clock, columns) in SMALL.items():
        points = {round(row[0]): row[-len(columns) :] for row in _numbers(f"gpu-small-kernels.{file}")}
        for wanted in ELEMENTS:
            count = min(points, key=lambda found: abs(found - wanted))
            for threads in BLOCKS:
                rate = points[count][columns.index(threads)]
                yield Case(
                    f"small {count} x {threads} threads", gpu, "small", 16 * count / rate / 1e3, "us",
                    partial(small_time, gpu, count, threads, clock),
                )  # fmt: skip


def small_time(gpu: str, count: int, threads: int, clock: float) -> float:
    """Microseconds of a launch of `scale` for `count` elements that follows another one, `clock` in MHz."""
    first, second = (
        _workload(
            "stream", "scale", -(-count // threads), threads,
            (f"f64[{count}]", f"f64[{count}]", "f64[1]", f"f64={factor}", f"i64={count}"),
        )
        for factor in (3, 5)  # another factor makes it a launch of its own, which finds what the first one left
    )  # fmt: skip
    both = replace(first, launches=(*first.launches, *second.launches))
    before, last = _result(both, gpu, clock).spans[-2:]
    return (last.end - before.end) * 1e6


# --- predictions -----------------------------------------------------------------------------------------------------


def _workload(module: str, kernel: str, grid: int, block: int, arguments: Sequence[str]) -> Workload:
    from ppt_gpu.inputs import open_workload

    path = data_dir("validation") / "measured" / "kernels" / f"{module}.ptx"
    return open_workload(path, kernel=kernel, grid=(grid, 1, 1), block=(block, 1, 1), args=arguments)


def _result(workload: Workload, gpu: str, clock: float, content: NDArray[Any] | None = None) -> Result:
    """The prediction at `clock` MHz; `content`: of the first buffer."""
    from ppt_gpu.pipeline import predict

    contents = {} if content is None else {workload.buffers[0].name: content}
    return predict(workload, gpu, overrides=(f"sm.clock={clock:g} MHz",), contents=contents)


def _cycles(workload: Workload, gpu: str, clock: float, content: NDArray[Any] | None = None) -> float:
    return float(_result(workload, gpu, clock, content).main.value("kernel.cycles"))


# --- files -----------------------------------------------------------------------------------------------------------


def _lines(name: str) -> list[str]:
    return (data_dir("validation") / "measured" / "curves" / f"{name}.txt").read_text().splitlines()


def _numbers(name: str) -> Iterator[list[float]]:
    """The lines of a file that are numbers and nothing else, units left off."""
    for line in _lines(name):
        words = [word.removesuffix("kB") for word in line.split()]
        if words and all(word.replace(".", "", 1).isdigit() for word in words):
            yield [float(word) for word in words]


# --- the set ---------------------------------------------------------------------------------------------------------

CURVES = (_latency, _bandwidth, _small)


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """All points whose "GPU NAME" contains one of `texts`."""
    found = [case for make in CURVES for case in make()]
    return [case for case in found if not texts or any(text in f"{case.gpu} {case.name}" for text in texts)]


def rows(texts: Sequence[str] = ()) -> list[Row]:
    """Predict the points that `cases` chooses."""
    return [
        Row(case.name, case.gpu, case.curve, "steady", case.reference, case.predict(), case.unit)
        for case in cases(texts)
    ]
