"""A whole chip: dispatch, slices, windows, threads, and what it refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from equal_fields import assert_equal

from benchmarks.loop_programs import loop_program
from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.threads import at_most
from ppt_gpu.sm.chip.machine import chip_of
from ppt_gpu.sm.l2_sharing.camping import slice_of_lines
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.highest_first import highest_first
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.program import CODE_COLD, CODE_IN_SM, KIND_LOAD, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.whole_chip import simulate_chip
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu

SHARED = (("load.shared", (), 0), ("fp32.fma", (0,), -1), ("barrier", (), -1))
ONE_SM: dict[Callable[..., SmResult], dict[str, int]] = {simulate: {"active_sms": 1}, simulate_chip: {}}


def chip(*overrides: str) -> Gpu:
    return load_gpu("k40", ["sm.count=4", "l2.slices=4", "dram.channels=2", *overrides])


def loads(gpu: Gpu, blocks: int, each: list[int], stride: int) -> Program:
    """Blocks of one warp; block b makes `each[b % len(each)]` loads one after another, of lines `stride` apart."""
    counts = [each[block % len(each)] for block in range(blocks)]
    kinds = sorted(set(counts))
    start = np.concatenate(([0], np.cumsum(kinds))).astype(np.int64)
    total, entries = sum(counts), int(start[-1])
    first = np.zeros(entries, np.bool_)
    first[start[:-1]] = True
    return Program(
        op_name=("load.global",),
        op_pipe=np.array([pipe_order(gpu).index("lsu")], np.int32),
        op_latency=np.ones(1, np.int32),
        op_ii=np.ones(1, np.int32),
        op_kind=np.array([KIND_LOAD], np.int8),
        op_pc=np.zeros(1, np.int32),
        op_class=np.array([TASK_CLASSES.index("load.global")], np.int32),
        path_start=start,
        entry_op=np.zeros(entries, np.int32),
        entry_wait=np.where(first, 0, 1).astype(np.uint64),
        entry_slot=np.zeros(entries, np.int8),
        warp_path=np.array([kinds.index(count) for count in counts], np.int32),
        warp_access=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        block_warp=np.arange(blocks + 1, dtype=np.int64),
        access_start=np.arange(total + 1, dtype=np.int64),
        access_cycles=np.ones(total, np.int32),
        tx_line=np.arange(total, dtype=np.int32),
        tx_sectors=np.full(total, 15, np.uint8),
        line_address=(np.arange(total) * stride).astype(np.uint64),
        line_warm=np.zeros(total, np.uint8),
    )


def run(gpu: Gpu, program: Program, resident: int = 2, **options: object) -> SmResult:
    return simulate_chip(program, gpu, resident_blocks=resident, **options)  # type: ignore[arg-type]


def test_the_next_block_goes_to_the_slot_that_is_free_first() -> None:
    """Blocks 0 to 3 start together on four SMs; 1 is the short one, so 4 follows it, then the next free one."""
    gpu = chip("host.block_launch=7")
    result = run(gpu, loads(gpu, 6, [20, 5, 20, 20, 20, 20], 256), resident=1)
    assert result.block_start[:4].tolist() == [0, 0, 0, 0]
    ends = np.sort(result.block_end[:4])
    assert result.block_end[1] == ends[0]
    assert result.block_start[4] == ends[0] + 7
    assert result.block_start[5] == ends[1] + 7


def test_addresses_go_to_slices_in_turn_or_hashed() -> None:
    gpu = chip("l2.interleave=256 B")
    program = loads(gpu, 1, [64], 128)
    chunks = [number // 2 for number in range(64)]  # to two channels in turn, and in each to its two slices
    expected = [chunk % 2 * 2 + chunk // 2 % 2 for chunk in chunks]
    assert slice_of_lines(program.line_address, gpu, 128).tolist() == expected
    camping = loads(gpu, 1, [64], 1024)
    assert set(slice_of_lines(camping.line_address, gpu, 128).tolist()) == {0}
    hashed = slice_of_lines(camping.line_address, chip('l2.slice_index="hash"'), 128)
    assert np.bincount(hashed, minlength=4).tolist() == [16, 16, 16, 16]


def test_a_stride_that_stays_on_one_slice_takes_longer() -> None:
    """Only the slices' bandwidth limits; one of four does it alone."""
    gpu = chip("l2.bandwidth=8 B/cycle", "dram.bandwidth=1 TB/s", "l1.size=0 B", "l1.caches_global=false")
    spread, camping = (run(gpu, loads(gpu, 64, [20], stride), resident=16) for stride in (256, 1024))
    assert camping.cycles == pytest.approx(4 * spread.cycles, rel=0.2)
    assert camping.cycles > 64 * 20 * 128 / (8 / 4)


def test_sets_are_those_of_the_address_where_it_says_which() -> None:
    """Lines 4 KiB apart go to three of the twelve slices of GTX480, and to eight of the 64 sets of each."""
    gpu = load_gpu("gpgpusim_gtx480")
    found = chip_of(loads(gpu, 1, [1024], 4096), gpu).l2_set
    assert len(np.unique(found // 64)) == 3
    assert len(np.unique(found)) == 3 * 8
    assert len(np.unique(chip_of(loads(gpu, 1, [64 * 12], 128), gpu).l2_set)) == 64 * 12
    hashed = load_gpu("gpgpusim_qv100")
    assert len(np.unique(chip_of(loads(hashed, 1, [2048], 128), hashed).l2_set)) == 2048


@pytest.mark.parametrize("named", [False, True])
def test_what_was_left_in_the_l2_is_pushed_out_and_written_back(named: bool) -> None:
    """An L2 full of lines with two written sectors each; as many loads, of the same lines or of others."""
    gpu = chip("l2.size=32 KiB", 'l2.index="linear"', "dram.burst=32 B")
    program = loads(gpu, 4, [64], 128)
    address = program.line_address + np.uint64(0 if named else 1 << 20)
    left = {"left_address": address, "left_written": np.full(256, 3, np.uint8)}
    result = run(gpu, dataclasses.replace(program, **left))
    assert (result.dram_read_bytes, result.dram_write_bytes) == ((0, 0) if named else (256 * 128, 256 * 64))
    for reference in (False, True):
        assert run(gpu, dataclasses.replace(program, **left), reference=reference).cycles == result.cycles


def test_a_miss_waits_where_all_lines_of_its_set_are_on_their_way() -> None:
    """Eight warps load a line each, into an L1 of four lines: four wait until the others have theirs."""
    l1 = ("l1.size=512 B", "l1.ways=4", "l1.caches_global=true", "l1.mshrs=64")
    for simulated in (simulate, simulate_chip):
        cycles = []
        for reserves in ("false", "true"):
            gpu = chip(*l1, f"l1.reserves={reserves}", "sm.count=1", "l2.slices=1", "dram.channels=1")
            program = loads(gpu, 8, [1], 128)
            cycles.append(simulated(program, gpu, resident_blocks=8, **ONE_SM[simulated]).cycles)
        assert cycles[1] - cycles[0] == pytest.approx(gpu.dram.latency, rel=0.1)


def test_threads_and_windows_change_nothing() -> None:
    gpu = chip()
    program = loads(gpu, 13, [9, 3, 14], 384)
    one = run(gpu, program)
    for threads, options in ((1, {}), (1, {"window": 1}), (1, {"window": 50}), (2, {}), (9, {}), (3, {"window": 7})):
        with at_most(threads):
            other = run(gpu, program, **options)
        assert_equal(other, one, ("wall",), f"{threads} threads, {options}")


def test_what_is_refused() -> None:
    gpu = chip()
    program = loads(gpu, 4, [5], 256)
    with pytest.raises(PptError, match=f"a window of {gpu.l2.latency + 1} cycles"):
        run(gpu, program, window=gpu.l2.latency + 1)
    with pytest.raises(BudgetError, match="more than 300 cycles"):
        run(gpu, program, max_cycles=300)


@pytest.mark.parametrize("known", [CODE_COLD, CODE_IN_SM])
def test_sms_are_in_step_in_the_first_launch_only(known: int) -> None:
    """A block an SM, whose warps share the load/store unit: later each SM goes on with whose turn it was."""
    gpu = load_gpu("gpgpusim_qv100")
    program = loop_program(gpu, SHARED, 3, gpu.sm.count, 6)
    turns = chip_of(program, gpu, constants_at=known).turns
    assert np.unique(turns).tolist() == ([0] if known == CODE_COLD else [0, 1, 2, 3])
    result = simulate_chip(program, gpu, resident_blocks=1, constants_at=known)
    assert (len(np.unique(result.block_end)) == 1) == (known == CODE_COLD)


def test_the_highest_address_first() -> None:
    """Transactions of each access by itself, those without an address last."""
    program = loads(chip(), 1, [2], 128)
    program = dataclasses.replace(
        program,
        access_start=np.array([0, 3, 5]),
        tx_line=np.array([1, -1, 2, 0, 3], np.int32),
        tx_sectors=np.array([1, 2, 4, 8, 3], np.uint8),
        line_address=(np.arange(4) * 128).astype(np.uint64),
        line_warm=np.zeros(4, np.uint8),
    )
    found = highest_first(program)
    assert found.tx_line.tolist() == [2, 1, -1, 3, 0]
    assert found.tx_sectors.tolist() == [4, 1, 2, 3, 8]
