"""Memory operations that nobody waits for leave in caches and counters what those that are waited for leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sm_random import gpus, programs
from some_examples import cases

from ppt_gpu.common.bits import pointer
from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import (
    CYCLES_AT,
    CYCLES_MASK,
    DIRTY,
    DIRTY_REST,
    FIRST_MASK,
    HOLDS,
    L1_NODE,
    L2_NODE,
    L2_SET,
    LINE_WORDS,
    LINES,
    NEXT,
    NODE_WORDS,
    PREV,
    VALID,
    WAY_BITS,
    MemoryArrays,
    code_tables,
)
from ppt_gpu.sm.loop.memory import TABLES as FIRST_TABLE
from ppt_gpu.sm.loop.pack import KIND_AT, KIND_MASK, OP_AT, OP_MASK, Packed
from ppt_gpu.sm.loop.warm import pass_rounds
from ppt_gpu.sm.program.machine import Machine, machine_of
from ppt_gpu.sm.program.program import KIND_LOAD, KIND_SHARED, Program
from ppt_gpu.spec.gpu import Gpu


@entry
def wait_for_all(what: Any, first: int, now: int, accesses: Any, tx: Any, mem: Any) -> None:
    """The operations of a warp, one after another, as the loop puts them to the memory system."""
    accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
    for operation in range(len(what)):
        access, kind = first + operation, what[operation] >> WAY_BITS
        if kind == KIND_SHARED:
            issue_shared(mem, now + 7 * operation, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
        else:
            issue_global(
                kind,
                what[operation] & ((1 << WAY_BITS) - 1),
                now + 7 * operation,
                accesses[access],
                accesses[access + 1] & FIRST_MASK,
                tx,
                mem,
            )


def left(program: Program, machine: Machine, memory: MemoryArrays) -> list[NDArray[np.int64]]:
    """Counters, the nodes of both caches but for times, and what lines know of them."""
    at = FIRST_TABLE + machine.mshrs + machine.queue + sum(table.size for table in code_tables(program, machine))
    nodes = sum(max(1, sets * max(ways, 1)) for sets, ways in
                ((machine.l1_sets, machine.l1_ways), (machine.l2_sets, machine.l2_ways)))  # fmt: skip
    words = memory.mem[at : at + nodes * NODE_WORDS].reshape(-1, NODE_WORDS)[:, [HOLDS, PREV, NEXT, VALID, DIRTY]]
    lines = int(memory.mem[LINES])
    words[:, 0] -= np.where(words[:, 0] > 0, lines, 0)  # where it stands is the host's business
    known = memory.mem[lines : lines + len(program.line_address) * LINE_WORDS].reshape(-1, LINE_WORDS)
    return [memory.counters(), words, known[:, [L1_NODE, L2_NODE, L2_SET]], memory.mem[[DIRTY_REST]]]


@settings(deadline=None, max_examples=cases(60), suppress_health_check=list(HealthCheck))
@given(program=programs, gpu=gpus(), active=st.integers(1, 3), dirty=st.sampled_from((0.0, 0.4)))
def test_caches_and_counters(program: Program, gpu: Gpu, active: int, dirty: float) -> None:
    # which line a miss replaces depends on what is on its way where the L1 reserves places, and here nothing ever is
    machine = replace(machine_of(program, gpu, active, None, dirty, None), l1_reserves=False)
    packed = Packed(program, machine)
    waited, passed = MemoryArrays(program, machine), MemoryArrays(program, machine)
    now = 0
    for warp, path in enumerate(program.warp_path.tolist()):
        words = packed.code[program.path_start[path] : program.path_start[path + 1]]
        kinds = (words >> KIND_AT) & KIND_MASK
        ways = packed.operations["way"][(words >> OP_AT) & OP_MASK]
        asks = (kinds >= KIND_LOAD) & (kinds <= KIND_SHARED)
        first = int(program.warp_access[warp])
        what = (kinds << WAY_BITS | ways)[asks]
        if what.size:
            wait_for_all(what, first, now, waited.access, waited.tx, waited.mem)
            now += 7 * len(what)
            once = np.ones(1, np.int64)
            pass_rounds(
                what[None, :], np.array([first]), once, 0, 1, 1, passed.access, passed.tx, passed.mem, 5
            )  # fmt: skip
    for one, other in zip(left(program, machine, waited), left(program, machine, passed), strict=True):
        assert np.array_equal(one, other)
