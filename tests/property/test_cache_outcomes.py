"""Functional cache simulation: the levels and totals of the simulator's plain memory, asked in the same order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sm_random import gpus, programs, random_program

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.models.base.cache_outcomes import CacheOutcomes, simulate_caches
from ppt_gpu.models.base.operation_latency import sums_by_operation
from ppt_gpu.sm.program.machine import (
    DRAM_READ,
    DRAM_WRITE,
    L1_ACCESSES,
    L1_HITS,
    L2_ACCESSES,
    Machine,
    machine_of,
)
from ppt_gpu.sm.program.program import KIND_SHARED, KIND_STORE, Program, posted_by
from ppt_gpu.sm.reference.memory import Memory
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu


def in_turn(program: Program, ops: np.ndarray, resident: int) -> list[int]:
    """Memory entries in the order of warps that take turns, `resident` blocks at a time."""
    waiting = list(range(len(program.block_warp) - 1))
    slots: list[int | None] = [None] * resident
    place = program.warp_access[:-1].tolist()
    order: list[int] = []
    while waiting or any(slot is not None for slot in slots):
        for index in range(resident):
            if slots[index] is None and waiting:
                slots[index] = waiting.pop(0)
            block = slots[index]
            if block is None:
                continue
            before = len(order)
            for warp in range(program.block_warp[block], program.block_warp[block + 1]):
                end = program.warp_access[warp + 1]
                while place[warp] < end and program.op_kind[ops[place[warp]]] == KIND_SHARED:
                    place[warp] += 1
                if place[warp] < end:
                    order.append(place[warp])
                    place[warp] += 1
            if len(order) == before:
                slots[index] = None
    return order


def plainly(program: Program, machine: Machine, ops: np.ndarray, resident: int) -> dict[str, list[int] | int]:
    """Fields of CacheOutcomes from the simulator's memory. Its counters do not depend on time."""
    memory = Memory(program, machine)
    size = len(ops)
    level, l2, read = [0] * size, [0] * size, [0] * size
    for cycle, access in enumerate(in_turn(program, ops, resident)):
        before = list(memory.counters)
        held = [tuple(memory.mshr_release)]
        memory.issue(cycle << 20, int(ops[access]), access)
        more = [now - then for now, then in zip(memory.counters, before, strict=True)]
        read[access] = more[DRAM_READ] // machine.sector_bytes
        l2[access] = more[L2_ACCESSES]
        if (
            program.op_kind[ops[access]] == KIND_STORE
            or program.access_start[access] == program.access_start[access + 1]
        ):
            continue
        missed = tuple(memory.mshr_release) not in held
        level[access] = 3 if read[access] else 2 if missed else 1
    counters = memory.counters
    return {
        "level": level,
        "l2_sectors": l2,
        "dram_read": read,
        "l1_sectors": counters[L1_ACCESSES],
        "l1_hits": counters[L1_HITS],
        "dram_write_sectors": counters[DRAM_WRITE] // machine.sector_bytes,
    }


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=80)
@given(programs, gpus(), st.integers(1, 4), st.integers(1, 3), st.sampled_from((0.0, 0.4)))
def test_as_the_plain_memory(program: Program, gpu: Gpu, resident: int, active: int, dirty: float) -> None:
    # Sectors count, not bursts; and which lines are on their way, and keep their places, is a matter of time.
    machine = replace(machine_of(program, gpu, active, None, dirty, None), dram_group=1, l1_reserves=False)
    ops = entry_ops(program)
    found: CacheOutcomes = simulate_caches(program, machine, ops, resident)
    for name, expected in plainly(program, machine, ops, resident).items():
        got = getattr(found, name)
        if isinstance(expected, int):
            assert got == expected, name
        elif machine.perfect and name == "level":
            assert np.array_equal(np.minimum(got, 1), np.minimum(expected, 1))
        else:
            assert got.tolist() == expected, name
    operations = len(program.op_name)
    columns = [np.ones(len(ops)), *(found.level == level for level in range(4)), found.fetched_lines, found.l2_sectors]
    columns += [found.dram_read, found.written, program.access_cycles]
    sums = sums_by_operation(program, found)
    for column, values in enumerate(columns):
        assert np.array_equal(sums[:, column], np.bincount(ops, weights=values, minlength=operations))
    stores = program.op_kind[ops] == KIND_STORE
    assert not found.fetched_lines[stores].any()
    assert found.dram_write_sectors <= int(found.written.sum()) or dirty


def test_reductions_pass_an_l1_of_local_memory_only() -> None:
    """Nobody waits for their results, which the way to the L1 also says: they drop no line there."""
    program = random_program(seed=1, warps=1, blocks=2, length=23, lines=1, memory=0.1)
    machine = replace(machine_of(program, load_gpu("k40"), 1, None, 0.0, None), dram_group=1)
    assert posted_by(program).any() and not machine.l1_global
    ops = entry_ops(program)
    found, expected = simulate_caches(program, machine, ops, 1), plainly(program, machine, ops, 1)
    assert found.l1_hits == expected["l1_hits"]
    assert found.l2_sectors.tolist() == expected["l2_sectors"]
