"""Lowering of task lists: addresses from strides, levels from hit rates and reuse distances."""

from __future__ import annotations

import numpy as np
import pytest
from lower_fixtures import make_gpu

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.sm.lowering.lower import lower_tasklist
from ppt_gpu.sm.lowering.tasks import levels
from ppt_gpu.sm.program.program import (
    COLD,
    FORCED_DRAM,
    FORCED_L1,
    FORCED_L2,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    WARM,
    Program,
)
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList, bases, buffer_bases, flatten
from ppt_gpu.tasklist.model import Buffer, Loop, MemoryShape, Stride, Task, TaskList, Transactions


def load(number: int, pattern: Stride | Transactions, *, op: str = "load.global", size: int = 4) -> Task:
    return Task(number, op, (), MemoryShape(size, pattern))


def flat(
    *body: Task | Loop, block: int = 64, buffers: tuple[Buffer, ...] = (), grid: tuple[int, ...] = ()
) -> FlatTaskList:
    return flatten(TaskList("t", 16, 1024, block, tuple(body), grid, buffers=buffers))


def lower(tasks: FlatTaskList, gpu: Gpu | None = None, blocks: int | list[int] = 2, **keywords: object) -> Program:
    keywords = {"warps_per_block": 2, "active_sms": 4, **keywords}
    return lower_tasklist(tasks, gpu or make_gpu(), blocks=blocks, **keywords)  # type: ignore[arg-type]


def test_dependencies_of_a_loop() -> None:
    """Task 3 waits for the load of its own iteration and for itself one iteration earlier."""
    tasks = flat(
        Task(1, "int32"),
        Loop(3, (load(2, Stride(4, steps=(128,))), Task(3, "fp32.fma", (2, 3)))),
        Task(4, "fp32", (3,)),
    )
    program = lower(tasks, make_gpu())
    assert program.op_pc.tolist() == [1, 2, 3, 4]
    assert program.entry_op.tolist() == [0, 1, 2, 1, 2, 1, 2, 3]
    # fma -> slot 0 while the next load takes slot 1 (and they swap)
    waits = [int(w) for w in program.entry_wait]
    assert waits == [0, 0, 0b01, 0, 0b11, 0, 0b11, 0b1]
    assert program.thread_instructions == 8 * 32 * 4


def test_addresses_are_those_of_the_flat_list() -> None:
    tasks = flat(
        Loop(2, (load(1, Stride(4, "a", steps=(4096,))),)), load(2, Stride(128)),
        buffers=(Buffer("a", 1 << 20, True),),
    )  # fmt: skip
    program = lower(tasks, blocks=[3, 9])
    assert program.block_warp.tolist() == [0, 2, 4]
    assert program.warp_access.tolist() == [0, 3, 6, 9, 12]
    for w, (block, warp) in enumerate([(3, 0), (3, 1), (9, 0), (9, 1)]):
        for m, base in enumerate(bases(tasks, warp, block)):
            first = program.access_start[3 * w + m]
            assert program.line_address[program.tx_line[first]] == base // 128 * 128
    assert np.diff(program.access_start).tolist() == [1, 1, 32] * 4
    inside = program.line_address < buffer_bases(tasks.tasklist)["a"] + (1 << 20)
    assert np.array_equal(program.line_warm == WARM, inside)


def test_steps_along_the_axes_of_the_grid() -> None:
    """Block 9 of a grid of 4 x 4 is (1, 2); of the launch's 8 x 2, which counts, (1, 1)."""
    tasks = flat(load(1, Stride(4, "a", block=(4096, 65536))), buffers=(Buffer("a", 1 << 20),), grid=(4, 4))
    start = buffer_bases(tasks.tasklist)["a"]
    for grid, expected in (((), 4096 + 2 * 65536), ((8, 2, 1), 4096 + 65536)):
        program = lower(tasks, blocks=[9], warps_per_block=1, grid=grid)
        assert program.line_address.tolist() == [start + expected]


def test_lines_of_other_sms_are_shared() -> None:
    """Rows of `a` belong to the SM alone; all four SMs read the same `b`, and two of them each line of `c`."""
    tasks = flat(
        Loop(64, (load(1, Stride(4, "a", steps=(256,), block=1 << 16)), load(2, Stride(4, "b", steps=(256,), block=0)),
                  load(3, Stride(4, "c", steps=(256,), block=(1 << 16, 0))))),
        load(4, Stride(4), op="load.local"), load(5, Stride(4), op="load.shared"), load(6, Transactions(2)),
        buffers=tuple(Buffer(name, 1 << 20) for name in "abc"), grid=(2, 2),
    )  # fmt: skip
    alone = lower(tasks, blocks=[0])
    assert not alone.line_warm.any() and alone.l2_share_factor == 1.0
    program = lower(
        tasks, blocks=[0], neighbours=[3, 1, 2], neighbour_sm=[3, 1, 2], neighbour_stands_for=[1.0, 1.0, 1.0]
    )
    assert np.array_equal(alone.line_address, program.line_address)
    users = np.ones(len(program.line_address))
    for name, sharing in (("b", 4), ("c", 2)):
        start = buffer_bases(tasks.tasklist)[name]
        inside = (program.line_address >= start) & (program.line_address < start + (1 << 20))
        users[inside] = sharing
        assert abs(np.mean(program.line_warm[inside] != COLD) - (1 - 1 / sharing)) < 0.15
    assert not program.line_warm[users == 1].any()
    assert program.l2_share_factor == pytest.approx(len(users) / (1 / users).sum())


def test_blocks_by_count_are_those_of_sm_0() -> None:
    tasks = flat(load(1, Stride(4, block=1 << 20)))
    by_count, by_id = lower(tasks, blocks=3), lower(tasks, blocks=[0, 4, 8])
    assert np.array_equal(by_count.line_address, by_id.line_address)


def test_shared_and_constant() -> None:
    tasks = flat(
        load(1, Stride(8), op="load.shared"),
        load(2, Transactions(7), op="store.shared"),
        load(3, Stride(0), op="load.constant"),
        load(4, Stride(4)),
    )
    program = lower(tasks, blocks=1, warps_per_block=1)
    assert program.op_kind.tolist() == [KIND_SHARED, KIND_SHARED, KIND_CONSTANT, KIND_LOAD]
    assert program.access_cycles.tolist() == [2, 7, 1]
    assert np.diff(program.access_start).tolist() == [0, 0, 1]


def test_given_transactions_stand_between_found_ones() -> None:
    tasks = flat(load(1, Stride(4)), load(2, Transactions(3, l1=1.0)), load(3, Stride(4)))
    program = lower(tasks, blocks=1)
    assert np.diff(program.access_start).tolist() == [1, 3, 1] * 2
    assert (program.tx_line.reshape(2, 5)[:, 1:4] == FORCED_L1).all()
    assert (program.tx_line.reshape(2, 5)[:, [0, 4]] >= 0).all()
    assert program.access_cycles.tolist() == [1, 3, 1] * 2
    assert (program.tx_sectors.reshape(2, 5)[:, 1:4] == 0b0011).all()  # 128 B in 3 transactions of 2 sectors


def test_hit_rates_are_met_exactly() -> None:
    tasks = flat(Loop(50, (load(1, Transactions(4, l1=0.25, l2=0.5)),)))
    program = lower(tasks, blocks=4)
    total = 50 * 4 * 8
    assert (program.tx_line == FORCED_L1).sum() == total // 4
    assert (program.tx_line == FORCED_L2).sum() == total * 3 // 8
    assert (program.tx_line == FORCED_DRAM).sum() == total * 3 // 8


@pytest.mark.parametrize("rate", [0.0, 1 / 3, 0.1, 0.7, 0.999, 1.0])
def test_error_diffusion_keeps_to_the_rate_everywhere(rate: float) -> None:
    hits = np.cumsum(levels(Transactions(1, l1=rate), 3000, 0, 0) == FORCED_L1)
    assert (np.abs(hits - rate * np.arange(1, 3001)) <= 1.0).all()


@pytest.mark.parametrize(
    ("reuse", "expected"), [(0, FORCED_L1), (255, FORCED_L1), (256, FORCED_L2), (2047, FORCED_L2), (2048, FORCED_DRAM)]
)
def test_reuse_distance_against_the_caches(reuse: int, expected: int) -> None:
    """32 KiB of L1 hold 256 lines; a quarter of 1 MiB of L2, 2048."""
    program = lower(flat(load(1, Transactions(1, reuse=reuse))))
    assert (program.tx_line == expected).all()


def test_active_lanes() -> None:
    tasks = flat(Task(1, "load.global", (), MemoryShape(4, Stride(128)), active=5))
    program = lower(tasks, blocks=1, warps_per_block=1)
    assert np.diff(program.access_start).tolist() == [5]
    assert program.thread_instructions == 5


def test_unknown_operation_names_the_task() -> None:
    with pytest.raises(PptError, match="task 7: no timing for operation 'tensor'"):
        lower(flat(Task(7, "tensor")), make_gpu(drop=["tensor"]))


def test_too_many_accesses() -> None:
    with pytest.raises(BudgetError, match="4 warps of 't' make 400 memory accesses; the budget is 399"):
        lower(flat(Loop(100, (load(1, Stride(4)),))), max_accesses=399)
