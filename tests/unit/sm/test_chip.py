"""A whole chip: dispatch, slices, windows, threads, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from equal_fields import assert_equal

from ppt_gpu.errors import BudgetError, PptError
from ppt_gpu.sm.camping import slice_of_lines
from ppt_gpu.sm.chip_machine import chip_of
from ppt_gpu.sm.lower_ops import pipe_order
from ppt_gpu.sm.program import KIND_LOAD, Program
from ppt_gpu.sm.result import SmResult
from ppt_gpu.sm.simulate import simulate_chip
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu
from ppt_gpu.threads import at_most


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
    assert slice_of_lines(program.line_address, gpu, 128).tolist() == [number // 2 % 4 for number in range(64)]
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
    with pytest.raises(PptError, match="two_level"):
        chip_of(program, gpu, policy="two_level")
    with pytest.raises(BudgetError, match="more than 300 cycles"):
        run(gpu, program, max_cycles=300)
