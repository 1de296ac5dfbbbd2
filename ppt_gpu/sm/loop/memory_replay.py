"""A run under another memory system: the same run, where that answers what it was asked as the first one did.

The scheduling of warps depends on the memory system by its answers only. So the operations of a recorded run
(loop.record) are put to the other one, in the same order and cycles; while the answers are the same, the run would have
gone the same way. What the memory system counts is then that of the other one. It costs a fraction of the run where
memory is seldom used, as by kernels that compute.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64, pointer
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.sm.loop.code import constant, line_fill
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, WAY_BITS, MemoryArrays
from ppt_gpu.sm.loop.raw import DONE, Raw
from ppt_gpu.sm.loop.record import CODE_LINE_READ, CONSTANT_READ, Answers
from ppt_gpu.sm.program.machine import Machine
from ppt_gpu.sm.program.program import KIND_SHARED, Program

#: fields of a Machine that only the memory system reads, and so no scheduler
BEHIND = frozenset((
    "tx_cost", "shared_latency", "atomic_cost", "atomic_busy", "queue",
    "l1_ways", "l1_fifo", "l1_write", "l1_allocate", "l1_index", "l1_latency", "l1_group", "mshrs", "merges",
    "l2_sets", "l2_ways", "l2_fifo", "l2_back", "l2_allocate", "l2_latency", "l2_cost", "l2_write_cost", "l2_near",
    "l2_far", "icnt_cost", "dram_cost", "dram_group", "dram_latency", "dram_turn", "dram_work",
    "dram_loaded", "dram_ahead", "dram_left", "dirty", "request_cost",
    "request_queue", "miss_latency", "store_ack", "store_latency", "code_l2", "code_dram",
))  # fmt: skip


@dataclass(frozen=True)
class RecordedRun:
    """What a run yielded, but for what the memory system counts."""

    block_start: NDArray[np.int64]  # [B]
    block_end: NDArray[np.int64]  # [B]
    warp_cycles: NDArray[np.int64]  # [reasons]
    op_stall: NDArray[np.int64]  # [O, reasons]
    answers: Answers


def run_name(machine: Machine, resident: int) -> str:
    """Equal for runs of one program that go the same way as long as the memory system answers the same."""
    seen = [getattr(machine, field.name) for field in fields(machine) if field.name not in BEHIND]
    return digest(*seen, resident)[:32]


def recorded(raw: Raw) -> RecordedRun | None:
    """The run, if everything that it asked for was written down."""
    if raw.status != DONE or raw.answers is None:
        return None
    return RecordedRun(raw.block_start, raw.block_end, raw.warp_cycles, raw.op_stall, raw.answers)


def run_again(program: Program, machine: Machine, run: RecordedRun) -> Raw | None:
    """What `run_core` yields on `machine`, which has the `run_name` of the recorded run; None: it goes another way."""
    began = time.thread_time()
    memory, asked = MemoryArrays(program, machine), run.answers
    same = make_again()(
        asked.when, asked.what, asked.number, asked.done, asked.place, memory.access, memory.tx, memory.mem
    )
    if not same:
        return None
    cycles = max(int(run.block_end.max(initial=0)), memory.idle())
    return Raw(
        DONE, cycles, run.block_start, run.block_end, run.warp_cycles, run.op_stall, memory.counters(),
        time.thread_time() - began,
    )  # fmt: skip


@cache
def make_again() -> Any:
    """_again, compiled."""

    def again(when: Any, what: Any, number: Any, done: Any, place: Any, accesses: Any, tx: Any, mem: Any) -> bool:
        return _again(when, what, number, done, place, accesses, tx, mem)

    return entry(again)


@called
def _again(when: Any, what: Any, number: Any, done: Any, place: Any, accesses: Any, tx: Any, mem: Any) -> bool:
    """Whether the memory system of `mem` answers as before."""
    accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
    for at in range(len(when)):
        result, free = _answer(when[at], what[at], number[at], accesses, tx, mem)
        if result != done[at] or max(free, when[at]) != place[at]:
            return False
    return True


@called
def _answer(when: int, what: int, number: int, accesses: Any, tx: Any, mem: Any) -> tuple[int, int]:
    if what == CODE_LINE_READ:
        return line_fill(mem, number, when), int64(0)
    if what == CONSTANT_READ:
        return constant(mem, when)
    if what >> WAY_BITS == KIND_SHARED:
        return issue_shared(mem, when, (accesses[number] >> CYCLES_AT) & CYCLES_MASK)
    kind, way = what >> WAY_BITS, what & ((1 << WAY_BITS) - 1)
    return issue_global(kind, way, when, accesses[number], accesses[number + 1] & FIRST_MASK, tx, mem)
