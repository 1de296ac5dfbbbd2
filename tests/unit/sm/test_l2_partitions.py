"""An L2 of two parts: lines that the part next to the SM holds no more are far, and writes are made twice."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.memory.memory import ALIGNMENT, GLOBAL_BASE
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.spec import load_gpu

KERNELS = data_dir("validation") / "measured" / "kernels"
LINE = 128  # B
SMALL = ("l2.size=256 KiB", "l1.caches_global=false")
GLOBAL = GLOBAL_BASE + ALIGNMENT  # where the first buffer stands


def chain_cycles(kib: int, *overrides: str, spacing: int = LINE) -> float:
    """Cycles a load of a random chain through `kib` KiB, an element each `spacing` B, at its second turn."""
    links = kib * 1024 // spacing
    order = np.random.default_rng(2).permutation(links) * spacing
    chain = np.zeros(links * spacing // 8, np.int64)
    chain[order // 8] = GLOBAL + np.roll(order, -1)
    found = []
    for steps in (2 * links, links):
        args = (f"s64[{chain.size}]", "s64[1]", f"i32={steps}")
        workload = open_workload(KERNELS / "curves.ptx", kernel="chase", grid=(1, 1, 1), block=(1, 1, 1), args=args)
        contents = {workload.buffers[0].name: chain}
        result = predict(workload, "a100", overrides=(*SMALL, *overrides), contents=contents, cache=False)
        found.append(float(result.main.value("kernel.cycles")))
    return (found[0] - found[1]) / links


def test_a_chain_is_near_in_half_of_the_l2_and_far_beyond_it() -> None:
    l2 = load_gpu("a100").l2
    assert chain_cycles(64) == pytest.approx(l2.latency, rel=0.03)
    assert chain_cycles(176, "l2.partitions=1") == pytest.approx(l2.latency, rel=0.03)
    assert chain_cycles(176) == pytest.approx(l2.latency + l2.far_latency, rel=0.03)


def test_what_is_written_takes_the_l2_as_long_as_it_has_parts() -> None:
    """`scale` reads and writes as much: three units of time instead of two, where the L2 limits."""
    elements = 1 << 18
    args = (f"f64[{elements}]", f"f64[{elements}]:copied", "f64[1]", "f64=3", f"i64={elements}")
    cycles = []
    for parts in (1, 2):
        workload = open_workload(
            KERNELS / "stream.ptx", kernel="scale", grid=(elements // 256, 1, 1), block=(256, 1, 1), args=args
        )
        slow = (f"l2.partitions={parts}", "l2.bandwidth=256 B/cycle", "dram.bandwidth=20000 GB/s")
        result = predict(workload, "a100", overrides=slow, cache=False)
        cycles.append(float(result.main.value("kernel.cycles")))
    assert cycles[1] / cycles[0] == pytest.approx(1.5, rel=0.1)


def test_a_sector_is_near_only_once_it_has_been_read_itself() -> None:
    """Chains of 64 B visit each line twice, in two sectors: far when the line has left the near part in between."""
    l2 = load_gpu("a100").l2
    half, whole = (chain_cycles(kib, spacing=64) for kib in (120, 200))
    assert half == pytest.approx(l2.latency, rel=0.03)
    assert whole == pytest.approx(l2.latency + l2.far_latency, rel=0.03)
    between = chain_cycles(148, spacing=64)
    share = 2 * (1 - 128 / 148) ** 0.5  # of lines that 128 KiB of others are named after, in one of their two gaps
    assert between == pytest.approx(l2.latency + share * l2.far_latency, rel=0.08)
