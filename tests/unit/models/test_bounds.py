"""Bounds of small programs, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference.loops import warp_times_reference

from ppt_gpu.bounds.bounds import ResourceBound, bounds, largest_bound
from ppt_gpu.bounds.least_latency import least_latencies
from ppt_gpu.bounds.warp_chain import warp_spans
from ppt_gpu.bounds.work import work_of
from ppt_gpu.sm.program.program import FORCED_L1, KIND_COMPUTE, KIND_LOAD, KIND_SHARED, KIND_STORE, Program
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult
from ppt_gpu.spec.gpu import (
    TASK_CLASSES,
    Dram,
    Gpu,
    Host,
    Interconnect,
    Isa,
    L1Cache,
    L2Cache,
    MemoryPipe,
    Pipe,
    SharedMemory,
    Sm,
)  # fmt: skip

FMA, LOAD, STORE, SHARED = range(4)

GPU = Gpu(
    name="small",
    chip="",
    compute_capability=(7, 0),
    sm=Sm(10, 1e9, 2, 1, "lrr", 16, 8, 512, 16384, 256, "warp", 255, 2),
    pipes={"fp32": Pipe("fp32", 32, "scheduler", 1, 2), "lsu": Pipe("lsu", 16, "sm", 1, 2)},
    isa=Isa("sm", {}),
    shared=SharedMemory(49152, 49152, 256, 0, 32, 4, 20),
    l1=L1Cache(16384, 128, 32, 4, 30, 64.0, 32, 8, "write-through", False, "lru", "linear"),
    l2=L2Cache(1 << 20, 128, 32, 16, 200, 320.0, 256, 8, "write-back", True, "lru", "hash"),
    dram=Dram(1 << 30, 160e9, 0.8, 400),
    interconnect=Interconnect(32.0),
    memory=MemoryPipe("sector", 8, 1.0, 20),
    host=Host(3e-6, 0, 10e9, 5e9, 1e-5),
)


def program(
    path: list[int],
    warps: int,
    blocks: int,
    *,
    waits: list[int],
    slots: list[int],
    transactions: int = 4,
    line: int | None = None,
) -> Program:
    """`blocks` blocks of `warps` warps that all run `path`; every load and store makes `transactions`."""
    kinds = np.array([KIND_COMPUTE, KIND_LOAD, KIND_STORE, KIND_SHARED], np.int8)
    memory = [op for op in path if op != FMA]
    total = warps * blocks
    counts = np.array([0 if op == SHARED else transactions for op in memory] * total, np.int64)
    start = np.concatenate(([0], np.cumsum(counts)))
    lines = np.arange(start[-1]) if line is None else np.full(start[-1], line)
    classes = ("fp32", "load.global", "store.global", "load.shared")
    return Program(
        op_name=("fp32.fma", "load.global", "store.global", "load.shared"),
        op_pipe=np.array([0, 1, 1, 1], np.int32),
        op_latency=np.array([4, 0, 0, 20], np.int32),
        op_ii=np.array([2, 2, 2, 2], np.int32),
        op_kind=kinds,
        op_pc=np.arange(4, dtype=np.int32),
        op_class=np.array([TASK_CLASSES.index(name) for name in classes], np.int32),
        path_start=np.array([0, len(path)], np.int64),
        entry_op=np.array(path, np.int32),
        entry_wait=np.array(waits, np.uint64),
        entry_slot=np.array(slots, np.int8),
        warp_path=np.zeros(total, np.int32),
        warp_access=np.arange(total + 1, dtype=np.int64) * len(memory),
        block_warp=np.arange(blocks + 1, dtype=np.int64) * warps,
        access_start=start,
        access_cycles=np.array([8 if op == SHARED else transactions for op in memory] * total, np.int32),
        tx_line=lines.astype(np.int32),
        tx_sectors=np.full(start[-1], 15, np.uint8),
        line_address=np.arange(max(start[-1], 1), dtype=np.uint64) * np.uint64(128),
        line_warm=np.zeros(max(start[-1], 1), np.uint8),
    )


def result(made: Program, **values: int) -> SmResult:
    counts = np.bincount(made.entry_op, minlength=4) * len(made.warp_path)
    numbers = dict.fromkeys(
        ("l1_accesses", "l1_hits", "l2_accesses", "l2_hits", "dram_read_bytes", "dram_write_bytes", "l2_read_bytes",
         "l2_write_bytes", "shared_passes", "shared_accesses"), 0,
    )  # fmt: skip
    none = np.zeros(0, np.int64)
    return SmResult(
        cycles=0, issued=int(counts.sum()), block_start=none, block_end=none,
        warp_cycles=np.zeros(len(STALL_REASONS), np.int64), op_issued=counts,
        op_stall=np.zeros((4, len(STALL_REASONS)), np.int64), pipe_busy=none, wall=0.0, **(numbers | values),
    )  # fmt: skip


def named(found: list[ResourceBound]) -> dict[str, float]:
    return {bound.resource: bound.cycles for bound in found}


def test_compute_bounds() -> None:
    """100 dependent FMAs: 4 warps a block, 2 blocks, 2 schedulers with one unit of interval 2 each."""
    made = program([FMA] * 100, 4, 2, waits=[0] + [1] * 99, slots=[0] * 100)
    found = named(bounds(work_of(made, GPU), result(made), GPU, resident=2, active_sms=10))
    assert found == {
        "critical path": 100 * 4,
        "fp32 pipe": 800 * 2 / 2,
        "issue slots": 800 / 2,
    }


def test_bounds_of_the_launch_scale_with_the_blocks() -> None:
    made = program([FMA] * 100, 4, 2, waits=[0] + [1] * 99, slots=[0] * 100)
    found = bounds(work_of(made, GPU), result(made), GPU, resident=2, active_sms=10, sm_blocks=20, grid_blocks=195)
    assert named(found) == {"critical path": 400 * 10, "fp32 pipe": 8000, "issue slots": 4000}
    assert largest_bound(found).resource == "fp32 pipe"
    assert largest_bound(found).terms == "16,000 cycles / 2 units"
    assert largest_bound([]).cycles == 0


def test_memory_bounds() -> None:
    made = program([LOAD, STORE, SHARED], 4, 2, waits=[0, 1, 0], slots=[0, -1, 1])
    traffic = result(
        made, l2_read_bytes=4096, l2_write_bytes=2048, dram_read_bytes=4096, dram_write_bytes=1024, shared_passes=64
    )
    found = named(bounds(work_of(made, GPU), traffic, GPU, resident=2, active_sms=10))
    assert found["load/store unit"] == 8 * (4 + 4 + 8)
    assert found["L1 look-ups"] == 64
    assert found["shared memory"] == 64
    assert found["interconnect, SM inward"] == 4096 / 32
    assert found["interconnect, SM outward"] == 2048 / 32
    assert found["L2 bandwidth"] == 10 * 6144 / 320
    assert found["DRAM bandwidth"] == 10 * 5120 / 160  # the peak, not the 80 % that streams reach
    assert found["critical path"] == 30 + 1 + 20  # the load may hit the L1; the store follows it, then the shared load


def test_sectors_written_in_part_keep_the_l2_longer() -> None:
    """A quarter of the written sectors takes three times as long: 1.5 on average, in each part of the L2."""
    made = replace(program([LOAD, STORE], 4, 2, waits=[0, 1], slots=[0, -1]), l2_in_part=0.25)
    gpu = replace(GPU, l2=replace(GPU.l2, partial_write=3.0, partitions=2))
    traffic = result(made, l2_read_bytes=4096, l2_write_bytes=2048)
    found = named(bounds(work_of(made, gpu), traffic, gpu, resident=2, active_sms=10))
    assert found["L2 bandwidth"] == 10 * (4096 + 2 * 1.5 * 2048) / 320


def test_a_table_is_fetched_once_a_stream_again_and_again() -> None:
    table = program([LOAD], 1, 4, waits=[0], slots=[0], line=0)
    streaming = program([LOAD], 1, 4, waits=[0], slots=[0])
    given = {"resident": 1, "active_sms": 10, "sm_blocks": 400, "grid_blocks": 4000}
    once = named(bounds(work_of(table, GPU), result(table, dram_read_bytes=128), GPU, **given))
    assert once["DRAM bandwidth"] == 10 * 128 / 160
    always = named(bounds(work_of(streaming, GPU), result(streaming, dram_read_bytes=4 * 128), GPU, **given))
    assert always["DRAM bandwidth"] == 10 * 400 * 128 / 160


def test_a_pipe_slower_than_its_latency_does_not_count_its_last_turn() -> None:
    made = program([FMA], 1, 1, waits=[0], slots=[0])
    slow = replace(made, op_ii=np.array([16, 2, 2, 2], np.int32))
    found = named(bounds(work_of(slow, GPU), result(slow), GPU, resident=1, active_sms=1))
    assert "fp32 pipe" not in found  # one warp: done after its latency, while the unit is still busy
    many = program([FMA] * 64, 4, 1, waits=[0] * 64, slots=[-1] * 64)
    many = replace(many, op_ii=np.array([16, 2, 2, 2], np.int32))
    found = named(bounds(work_of(many, GPU), result(many), GPU, resident=1, active_sms=1))
    assert found["fp32 pipe"] == 256 * 16 / 2 - 12


@pytest.mark.parametrize(
    ("change", "cached", "line", "expected"),
    [
        ({}, True, None, 30),
        ({}, False, None, 200),
        ({"perfect_memory": True}, False, None, 30),
        ({}, False, FORCED_L1, 30),
    ],
)
def test_least_load_latency(change: dict, cached: bool, line: int | None, expected: int) -> None:
    made = program([LOAD, FMA], 1, 1, waits=[0, 1], slots=[0, -1], line=line)
    gpu = replace(GPU, l1=replace(GPU.l1, caches_global=cached), **change)
    assert least_latencies(made, gpu)[LOAD] == expected


def test_an_empty_access_completes_in_the_sm() -> None:
    made = program([LOAD, FMA], 1, 1, waits=[0, 1], slots=[0, -1], transactions=0)
    gpu = replace(GPU, l1=replace(GPU.l1, caches_global=False))
    assert least_latencies(made, gpu)[LOAD] == 30


def test_dual_issue_shortens_the_chain() -> None:
    made = program([FMA] * 10, 1, 1, waits=[0] * 10, slots=[-1] * 10)
    least = np.array([4, 30, 0, 20])
    free = np.zeros(4, np.int64)

    def spans(width: int) -> list[int]:
        return [span for _, span in warp_times_reference(made, least, free, width)]

    assert warp_spans(made, least, free, 1).tolist() == spans(1) == [9 + 4]
    assert warp_spans(made, least, free, 2).tolist() == spans(2) == [4 + 4]


def test_a_branch_holds_the_next_entry_back() -> None:
    made = program([FMA] * 10, 1, 1, waits=[0] * 10, slots=[-1] * 10)
    hold = np.array([6, 0, 0, 0])
    assert warp_spans(made, np.array([4, 30, 0, 20]), hold, 2).tolist() == [9 * 6 + 4]


def test_blocks_of_different_length_wait_for_the_longest() -> None:
    made = program([FMA] * 100, 1, 4, waits=[0] + [1] * 99, slots=[0] * 100)
    both = replace(
        made,
        path_start=np.array([0, 100, 110], np.int64),
        entry_op=np.zeros(110, np.int32),
        entry_wait=np.array(([0] + [1] * 99) + ([0] + [1] * 9), np.uint64),
        entry_slot=np.zeros(110, np.int8),
        warp_path=np.array([0, 1, 1, 1], np.int32),
    )
    found = bounds(work_of(both, GPU), result(made), GPU, resident=4, active_sms=1)
    assert named(found)["critical path"] == 400
    serial = bounds(work_of(both, GPU), result(made), GPU, resident=1, active_sms=1)
    assert named(serial)["critical path"] == 400 + 3 * 40
