"""Approximate loop skipping: near the whole simulation, with all its memory traffic, and every warp cycle once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ppt_gpu
from benchmarks.loop_programs import DEPENDENT_FMA, ILP8_FMA, SGEMM, STREAMING, Entry, loop_program
from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult
from ppt_gpu.spec import load_gpu

#: a loop of loads of which every other one hits, divergent in time by a barrier
MIXED: tuple[Entry, ...] = (
    ("load.global", (), 0),
    ("fp32.fma", (0,), 1),
    *(("fp32.fma", (1,), 1),) * 12,
    ("barrier", (), -1),
    ("branch", (), -1),
)
BODIES = {"fma": DEPENDENT_FMA, "ilp8": ILP8_FMA, "stream": STREAMING, "sgemm": SGEMM, "mixed": MIXED}
TRAFFIC = (
    "l1_accesses", "l2_accesses", "l2_hits", "dram_read_bytes", "l2_read_bytes", "l2_write_bytes", "shared_passes",
    "shared_accesses",
)  # fmt: skip


def both(name: str, policy: str, body: tuple[Entry, ...], blocks: int = 10, rounds: int = 0) -> list[SmResult]:
    """[whole, approximate]"""
    gpu = load_gpu(name)
    gpu = dataclasses.replace(gpu, sm=dataclasses.replace(gpu.sm, policy=policy))
    program = loop_program(gpu, body, rounds or 8192 // len(body), blocks, 8)
    return [
        simulate(program, gpu, resident_blocks=4, active_sms=gpu.sm.count, skip=how, approximate=how)
        for how in (False, True)
    ]


@pytest.mark.parametrize("policy", ["gto", "lrr"])
@pytest.mark.parametrize("gpu", ["k40", "v100", "h100"])
@pytest.mark.parametrize("body", BODIES)
def test_near_and_complete(body: str, gpu: str, policy: str) -> None:
    whole, found = both(gpu, policy, BODIES[body])
    assert found.cycles == pytest.approx(whole.cycles, rel=0.03)
    assert np.array_equal(found.op_issued, whole.op_issued)
    for counter in TRAFFIC:
        assert getattr(found, counter) == getattr(whole, counter), counter
    assert whole.approximate_cycles == 0 <= found.approximate_cycles < found.cycles
    lived = int((found.block_end - found.block_start).sum()) * 8
    assert found.warp_cycles.sum() == lived
    assert found.warp_cycles[STALL_REASONS.index("selected")] <= found.issued
    assert found.warp_cycles.min() >= 0
    assert np.abs(found.warp_cycles / lived - whole.warp_cycles / whole.warp_cycles.sum()).max() < 0.06


@pytest.mark.parametrize("body", ["stream", "sgemm"])
def test_what_never_repeats_is_skipped_too(body: str) -> None:
    _, found = both("v100", "gto", BODIES[body])
    assert found.approximate_cycles > found.cycles / 5


def test_a_memory_that_falls_behind_is_waited_for() -> None:
    """Of loads that all miss from one round on, as no window before shows: it takes the time that DRAM takes."""
    gpu = load_gpu("v100")
    program = loop_program(gpu, STREAMING, 4096, 8, 8)
    lines = np.asarray(program.tx_line)
    early = np.tile(np.arange(len(lines) // 64) < len(lines) // 128, 64)  # the first half of each warp's
    program = dataclasses.replace(program, tx_line=np.where(early, lines % 64, lines).astype(np.int32))
    whole, found = (
        simulate(program, gpu, resident_blocks=8, active_sms=gpu.sm.count, skip=how, approximate=how)
        for how in (False, True)
    )
    assert found.dram_read_bytes == pytest.approx(whole.dram_read_bytes, rel=1e-3)
    assert 0.98 * whole.cycles < found.cycles < 1.15 * whole.cycles


def phases(line_of: Callable[[NDArray[np.int64], int], NDArray[np.int64]]) -> list[SmResult]:
    """[whole, approximate] of the streaming loop whose warps ask for the lines line_of(operations so far, warps)."""
    gpu = load_gpu("v100")
    program = loop_program(gpu, STREAMING, 4096, 8, 8)
    each = len(program.tx_line) // 64
    warp, number = np.divmod(np.arange(len(program.tx_line)), each)
    lines = line_of(number, each) * 64 + warp
    program = dataclasses.replace(program, tx_line=lines.astype(np.int32))
    return [
        simulate(program, gpu, resident_blocks=8, active_sms=gpu.sm.count, skip=how, approximate=how)
        for how in (False, True)
    ]


@pytest.mark.parametrize(
    ("name", "line_of"),
    [
        # all miss, then the footprint fits the SM's share of the L2
        ("begins to fit", lambda i, n: np.where(i < n // 2, i, n // 2 + i % 6)),
        # lines come again after as many as the L2 holds, a little fewer and a little more
        ("as long as the L2", lambda i, n: i % 9),
        ("a little longer", lambda i, n: i % 11),
        # the one and the other in turns, of some tens of rounds and of a few hundred
        ("short phases", lambda i, n: np.where(i // 100 % 2 == 0, i, i % 6)),
        ("long phases", lambda i, n: np.where(i // 1200 % 2 == 0, i, i % 6)),
    ],
)
def test_memory_behaviour_that_changes_is_noticed(
    name: str, line_of: Callable[[NDArray[np.int64], int], NDArray[np.int64]]
) -> None:
    whole, found = phases(line_of)
    print(name, found.cycles / whole.cycles - 1, found.approximate_cycles / found.cycles)
    assert found.cycles == pytest.approx(whole.cycles, rel=0.05)
    assert found.l2_accesses == pytest.approx(whole.l2_accesses, rel=0.02)
    assert found.dram_read_bytes == pytest.approx(whole.dram_read_bytes, rel=0.05)


def test_loops_as_long_as_one_another_are_not_taken_for_the_same() -> None:
    """Every other warp computes where its neighbours load."""
    gpu = load_gpu("v100")
    loads = loop_program(gpu, (("load.global", (), 0), ("fp32.fma", (0,), 1), ("branch", (), -1)), 4096, 8, 8)
    entries, mine = len(loads.entry_op), 32 * 4096  # accesses of half the warps
    fma = loads.op_name.index("fp32.fma")
    other = np.where(loads.entry_op == loads.op_name.index("load.global"), fma, loads.entry_op)
    program = dataclasses.replace(
        loads,
        path_start=np.array([0, entries, 2 * entries]),
        entry_op=np.concatenate((loads.entry_op, other)).astype(np.int32),
        entry_wait=np.tile(loads.entry_wait, 2),
        entry_slot=np.tile(loads.entry_slot, 2),
        warp_path=(np.arange(64) % 2).astype(np.int32),
        warp_access=(np.arange(65) + 1) // 2 * 4096,
        access_start=loads.access_start[: mine + 1],
        access_cycles=loads.access_cycles[:mine],
        tx_line=loads.tx_line[:mine],
        tx_sectors=loads.tx_sectors[:mine],
    )
    whole, found = (
        simulate(program, gpu, resident_blocks=8, active_sms=80, skip=how, approximate=how) for how in (False, True)
    )
    assert found.dram_read_bytes == whole.dram_read_bytes
    assert found.cycles == pytest.approx(whole.cycles, rel=0.05)


def test_the_result_says_it() -> None:
    run = {"grid": (64,), "block": (256,), "args": ["f32[16384]", "f32[16384]", "i32=16384"]}
    text = """.version 7.0\n.target sm_70\n.address_size 64
.visible .entry spin(.param .u64 in, .param .u64 out, .param .u32 n) {
  .reg .u64 %rd<4>; .reg .f32 %f<4>; .reg .u32 %r<6>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  mad.lo.u32 %r1, %r1, 256, %r2; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
  mov.f32 %f1, 0f00000000; mov.u32 %r3, 0;
L: ld.volatile.global.f32 %f2, [%rd1]; fma.rn.f32 %f1, %f2, %f2, %f1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 20000;
  @%p1 bra L;
  st.global.f32 [%rd2], %f1; ret; }"""
    exact, near = (ppt_gpu.predict(text, "v100", approximate=how, **run) for how in (False, True))
    assert near.time == pytest.approx(exact.time, rel=0.02)
    said = [line for line in near.launches[0].assumptions if "--approximate" in line]
    assert len(said) == 1 and not any("--approximate" in line for line in exact.launches[0].assumptions)
    with pytest.raises(PptError, match="level grid skips nothing"):
        ppt_gpu.predict(text, "v100", approximate=True, level="grid", **run)
