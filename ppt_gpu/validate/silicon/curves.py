"""The set `curves`: latencies, bandwidths of caches, strides and small kernels, as measured on real GPUs.

Raw files of gpu-benches in validation/measured/curves; the kernels are ours (kernels/curves.cu, stream.cu). Of each
curve some points are predicted: those nearest to the sizes named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ppt_gpu.common.paths import data_dir
from ppt_gpu.validate.silicon.curve_kernels import (
    chain_latency,
    parts_bandwidth,
    read_bandwidth,
    small_time,
    strided_cycles,
)
from ppt_gpu.validate.tables.rows import Row, is_asked

Number = TypeVar("Number", int, float)


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
LATENCIES = {"v100": "v100", "a100_80": "a100_80gb", "h100_pcie": "h100_pcie", "l40": "l40"}
#: KiB: in the L1, in the L2, in its far part where it has one, and beyond it
CHAINS = (16, 64, 512, 2016, 4333, 29207, 38878, 125026)
#: of files whose GPU has a larger L2
MORE_CHAINS = {"l40": (16, 64, 512, 2016, 4333, 38878, 70000, 185030)}


def _latency() -> Iterator[Case]:
    for file, gpu in LATENCIES.items():
        points = {round(row[2]): row for row in _numbers(f"gpu-latency.{file}")}
        for size in MORE_CHAINS.get(file, CHAINS):
            near = _nearest(points, size)
            clock, cycles = points[near][1], points[near][-1]
            yield Case(
                f"latency {near} KiB", gpu, "latency", cycles, "cycles",
                partial(chain_latency, gpu, near * 1024, clock),
            )  # fmt: skip


# --- gpu-cache: all SMs read the same data; gpu-l2-cache: they read different parts ----------------------------------

#: file -> (GPU, MHz)
CACHES = {
    "v100": ("v100", 1380), "a100_80": ("a100_80gb", 1410), "a40": ("a40", 1740), "h100_pcie": ("h100_pcie", 1755),
    "l40": ("l40", 2490),
}  # fmt: skip
#: KiB: in the L1, in the L2
SETS = (32, 2048)
PARTED = {
    "a100_80": ("a100_80gb", 1410), "h100_pcie": ("h100_pcie", 1755), "h200": ("gh200", 1980), "l40": ("l40", 2490),
}  # fmt: skip
#: KiB: in the L2, in DRAM
PARTS = (8704, 23552, 193024)


def _bandwidth() -> Iterator[Case]:
    for file, (gpu, clock) in CACHES.items():
        words = [line.split() for line in _lines(f"gpu-cache.{file}") if "GB/s" in line]
        points = {float(word[0]): float(word[4]) for word in words}
        for size in SETS:
            near = _nearest(points, size)
            yield Case(
                f"bandwidth {near:.0f} KiB", gpu, "bandwidth", points[near], "GB/s",
                partial(read_bandwidth, gpu, size * 1024, clock),
            )  # fmt: skip


def _parts() -> Iterator[Case]:
    for file, (gpu, clock) in PARTED.items():
        words = [line.split() for line in _lines(f"gpu-l2-cache.{file}") if "GB/s" in line]
        points = {float(word[2]): float(word[6]) for word in words}
        for size in PARTS:
            near = _nearest(points, size)
            yield Case(
                f"parts {near:.0f} KiB", gpu, "parts", points[near], "GB/s",
                partial(parts_bandwidth, gpu, round(near) * 1024, clock),
            )  # fmt: skip


# --- gpu-strides: loads from the L1 with strides ---------------------------------------------------------------------

STRIDED = {"a100": ("a100", 1410), "a40": ("a40", 1740), "h200": ("gh200", 1980)}
STRIDES = (1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 24, 31, 32, 33)


def _strides() -> Iterator[Case]:
    for file, (gpu, clock) in STRIDED.items():
        words = [line.split() for line in _lines(f"gpu-strides.{file}") if line.startswith("float stride")]
        points = {int(word[2]): float(word[4]) for word in words}
        for stride in STRIDES:
            if stride in points:
                yield Case(
                    f"stride {stride}", gpu, "strides", points[stride], "cycles",
                    partial(strided_cycles, gpu, stride, clock),
                )  # fmt: skip


# --- gpu-small-kernels: launches one after another, in a stream or in a graph ----------------------------------------

_WIDE = (32, 64, 128, 256, 512, 1024)
#: file -> (GPU, MHz, threads of a block by column)
SMALL = {
    "a100_80": ("a100_80gb", 1410, (4, 8, 16, *_WIDE)),
    "a40": ("a40", 1740, _WIDE),
    "h200": ("gh200", 1980, _WIDE),
    "l40": ("l40", 2490, _WIDE),
    "a100_80_graph": ("a100_80gb", 1410, (4, 8, 16, *_WIDE)),
    "h200_graph": ("gh200", 1980, _WIDE),
}
#: elements, and threads of a block
ELEMENTS, BLOCKS = (8192, 65536, 262144, 1 << 20, 1 << 23), (32, 128, 512)


def _small() -> Iterator[Case]:
    for file, (gpu, clock, columns) in SMALL.items():
        points = {round(row[0]): row[-len(columns) :] for row in _numbers(f"gpu-small-kernels.{file}")}
        kind = "graph" if file.endswith("_graph") else "small"
        for wanted in ELEMENTS:
            count = _nearest(points, wanted)
            for threads in BLOCKS:
                rate = points[count][columns.index(threads)]
                yield Case(
                    f"{kind} {count} x {threads} threads", gpu, kind, 16 * count / rate / 1e3, "us",
                    partial(small_time, gpu, count, threads, clock, graph=kind == "graph"),
                )  # fmt: skip


# --- files -----------------------------------------------------------------------------------------------------------


def _lines(name: str) -> list[str]:
    return (data_dir("validation") / "measured" / "curves" / f"{name}.txt").read_text().splitlines()


def _numbers(name: str) -> Iterator[list[float]]:
    """The lines of a file that are numbers and nothing else, units left off."""
    for line in _lines(name):
        words = [word.removesuffix("kB") for word in line.split()]
        if words and all(word.replace(".", "", 1).isdigit() for word in words):
            yield [float(word) for word in words]


def _nearest(points: Iterable[Number], wanted: float) -> Number:
    return min(points, key=lambda found: abs(found - wanted))


# --- the set ---------------------------------------------------------------------------------------------------------

CURVES = (_latency, _bandwidth, _parts, _strides, _small)


def cases(texts: Sequence[str] = ()) -> list[Case]:
    """All points whose "GPU NAME" contains one of `texts`."""
    found = [case for make in CURVES for case in make()]
    return [case for case in found if is_asked(f"{case.gpu} {case.name}", texts)]


def rows(texts: Sequence[str] = ()) -> list[Row]:
    """Predict the points that `cases` chooses."""
    return [
        Row(case.name, case.gpu, case.curve, "steady", case.reference, case.predict(), case.unit)
        for case in cases(texts)
    ]
