"""What the points of the curves are in the simulation: a rate or a time of the kernels in validation/measured/kernels.

A steady rate is the difference of a long and a short run, so that what is cold or starts up is in neither. Clocks are
in MHz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.memory.memory import ALIGNMENT, GLOBAL_BASE, GUARD
from ppt_gpu.workload.workload import Workload

if TYPE_CHECKING:
    from ppt_gpu.report.result.result import Result

SPACING = 64  # B between the elements of a chain: two in a line, as in gpu-latency
THREADS = 1024  # of a block that reads for bandwidth
PART = 512 << 10  # B that a block reads of data that the L2 or DRAM holds
STEPS = 4096  # loads of a warp with strides
STRIDE_THREADS = 1024


def chain_latency(gpu: str, size: int, clock: float) -> float:
    """Cycles a load of one thread that follows a random chain through `size` bytes.

    The chain is run through once, and then as often again.
    """
    links = size // SPACING
    order = np.random.default_rng(1).permutation(links) * SPACING
    chain = np.zeros(links * SPACING // 8, np.int64)
    chain[order // 8] = GLOBAL_BASE + ALIGNMENT + np.roll(order, -1)  # where the first buffer stands
    long, short = (
        _cycles(_workload("curves", "chase", 1, 1, (f"s64[{chain.size}]", "s64[1]", f"i32={steps}")), gpu, clock, chain)
        for steps in (2 * links, links)
    )  # fmt: skip
    return (long - short) / links


def read_bandwidth(gpu: str, size: int, clock: float) -> float:
    """GB/s of all SMs, each with a block that reads the same `size` bytes round after round."""
    sms = _sms(gpu)
    rounds = max(2, (64 << 10) // (size >> 10))
    count = size // 4
    data = (f"f32[{count}]", f"f32[{THREADS}]", f"i32={count}")
    long, short = (
        _cycles(_workload("curves", "sum", sms, THREADS, (*data, f"i32={n}")), gpu, clock) for n in (2 * rounds, rounds)
    )
    return sms * size * rounds / ((long - short) / clock) / 1e3


def parts_bandwidth(gpu: str, size: int, clock: float) -> float:
    """GB/s of all SMs, whose blocks read one part of `size` bytes after another, again and again.

    What the L2 can hold is taken to be there from the rounds before.
    """
    from ppt_gpu.spec import load_gpu

    parts, waves = size // PART, 16
    found = ":copied" if size <= load_gpu(gpu).l2.size else ""
    data = (f"f32[{parts * PART // 4}]{found}", f"f32[{THREADS}]", f"i32={PART // 4}", f"i32={parts}")
    blocks = 2 * _sms(gpu) * waves
    long, short = (
        _cycles(_workload("curves", "sum_parts", grid, THREADS, data), gpu, clock) for grid in (2 * blocks, blocks)
    )
    return blocks * PART / ((long - short) / clock) / 1e3


def strided_cycles(gpu: str, stride: int, clock: float) -> float:
    """Cycles of an SM a load of a warp whose lanes are `stride` floats apart, from the L1.

    Four warps read different lines, each at eight alignments. The data begin at a multiple of 2 MiB, where cudaMalloc
    puts what is as large as in gpu-strides: which lines meet in a set of the tags depends on it.
    """
    before = (2 << 20) - 2 * GUARD  # B of the buffer in front of them
    data = (f"f32[{before // 4}]", f"f32[{127 * stride + 29}]", f"i32={stride}")
    long, short = (
        _cycles(_workload("curves", "strided", 1, STRIDE_THREADS, (*data, f"i32={steps}", "i32=0")), gpu, clock)
        for steps in (2 * STEPS, STEPS)
    )
    return (long - short) / (STEPS * STRIDE_THREADS // 32)


def small_time(gpu: str, count: int, threads: int, clock: float, *, graph: bool = False) -> float:
    """Microseconds of a launch of `scale` that follows others, in a stream or a `graph`.

    Each scales `count` elements that the one before wrote, into those that it read. The third is the first for which
    the launches before wrote both arrays, as in the measurement all but two do.
    """
    first, second, third = (
        _workload(
            "stream", "scale", -(-count // threads), threads,
            (f"f64[{count}]", f"f64[{count}]", "f64[1]", f"f64={factor}", f"i64={count}"),
        )
        for factor in (3, 5, 7)  # another factor makes it a launch of its own, which finds what the others left
    )  # fmt: skip
    to, source = first.launches[0].arguments[:2]
    back = tuple(replace(launch, arguments=(source, to, *launch.arguments[2:])) for launch in second.launches)
    there = tuple(replace(launch, arguments=(to, source, *launch.arguments[2:])) for launch in third.launches)
    all_three = replace(first, launches=(*first.launches, *back, *there), graph=graph)
    before, last = _result(all_three, gpu, clock).spans[-2:]
    return (last.end - before.end) * 1e6


def _sms(gpu: str) -> int:
    from ppt_gpu.spec import load_gpu

    return load_gpu(gpu).sm.count


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
