"""Who waits for whom in a block: arrivals and waits of a trace become events of the program (`event_phases`).

Every try_wait and test_wait is taken to wait: tries that failed are not in the path of a loop that only waits, and
whoever looks before it waits in such a loop waits for the same phase.

Blocks of a cluster are taken to do the same: what a block does to the mbarriers of others stands for what they do to
its own. Where the phases do not come out (mbarriers written by plain stores, blocks of a cluster with different parts,
instructions that are only timed), nobody waits for anybody in the simulation, as far as mbarriers go, and the
prediction says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Trace
from ppt_gpu.machine.code import MachineKernel
from ppt_gpu.ptx.instructions import access_kind, is_barrier, is_bulk, is_named_barrier, is_traced
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.sm.event_phases import (
    ARRIVE,
    ARRIVE_EXPECT,
    AT,
    BLOCK,
    BULK,
    COLUMNS,
    COMPLETE,
    COPIED,
    COPY,
    DROP,
    DROP_EXPECT,
    EVENTS,
    EXPECT,
    FINE,
    GROUP_SYNC,
    HEAD,
    INIT,
    MOST,
    NAMED_ARRIVE,
    NAMED_SYNC,
    NOTHING,
    NUMBERED,
    OBJECT,
    STUCK,
    TEST,
    UNKNOWN,
    UNSAID,
    UNTOLD,
    WHY,
    WORK,
    resolve,
)
from ppt_gpu.sm.program import EVENT_COUNTS, EVENT_LATE, EVENT_WAITS

#: EVENT_* of the operation, by role
_BITS = np.zeros(16, np.int8)
_BITS[[ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED]] = EVENT_COUNTS | EVENT_LATE
_BITS[TEST] = EVENT_WAITS
_BITS[[COPY, BULK]] = EVENT_COUNTS | EVENT_LATE
_BITS[NAMED_ARRIVE] = EVENT_COUNTS
_BITS[[NAMED_SYNC, GROUP_SYNC]] = EVENT_COUNTS | EVENT_WAITS


@dataclass(frozen=True)
class Events:
    """As in `ppt_gpu.sm.program.Program`."""

    bits: NDArray[np.int8]  # [I] EVENT_* of each instruction
    start: NDArray[np.int64]  # [W+1]
    of: NDArray[np.int32]  # [V]
    count: NDArray[np.int32]  # [N]


def roles(kernel: Kernel) -> NDArray[np.int8]:
    """[I] what each instruction does. All NOTHING where no warp can wait but at plain barriers of the block."""
    found = np.array([_role(instruction) for instruction in kernel.instructions], np.int8)
    if not (found == COPIED).any():
        found[found == COPY] = NOTHING
    if not np.isin(found, (TEST, NAMED_SYNC)).any():
        found[:] = NOTHING
    return found


def meets(kernel: Kernel, trace: Trace) -> bool:
    """Do warps of the trace wait for others at mbarriers or named barriers?"""
    return bool(roles(kernel)[trace.pc_executed > 0].any())


def _role(i: Instruction) -> int:
    words = i.modifiers
    if i.base == "mbarrier":
        expects = "expect_tx" in words[1:]
        table = {
            "init": INIT, "arrive": ARRIVE_EXPECT if expects else ARRIVE, "expect_tx": EXPECT,
            "arrive_drop": DROP_EXPECT if expects else DROP, "complete_tx": COMPLETE, "test_wait": TEST,
            "try_wait": TEST,
        }  # fmt: skip
        return table.get(words[0], NOTHING)
    if is_named_barrier(i):
        return NAMED_SYNC if is_barrier(i) else NAMED_ARRIVE
    if is_barrier(i):
        return BLOCK
    if i.base == "wgmma" and words[0] == "fence":
        return GROUP_SYNC
    if i.base != "cp" or not is_traced(i):
        return NOTHING
    if is_bulk(i):
        return BULK if any(word.startswith("mbarrier::complete_tx") for word in words) else NOTHING
    if access_kind(i) is None:
        return COPIED
    return COPY


def find_events(
    kernel: Kernel, trace: Trace, warps: int, operations: NDArray[np.int32], traced: NDArray[np.bool_]
) -> Events | str | None:
    """The events of the trace's blocks of `warps` warps; None: there are none; text: why they do not come out.

    operations [I]: machine operations that each instruction becomes; traced [I]: those with accesses in the trace.
    """
    if not meets(kernel, trace):
        return None
    role = roles(kernel)
    bits = np.where(operations > 0, _BITS[role], 0).astype(np.int8)
    chosen = np.flatnonzero((role != NOTHING)[trace.path_pc])
    pc = trace.path_pc[chosen].astype(np.int32)
    step_start = np.searchsorted(chosen, trace.path_start)
    before = np.concatenate(([0], np.cumsum(traced[trace.path_pc])))
    path = np.searchsorted(trace.path_start, chosen, side="right") - 1
    access = before[chosen] - before[trace.path_start[path]]
    counted = np.concatenate(([0], np.cumsum(bits[pc] != 0)))
    number = counted[:-1] - counted[step_start[path]] if len(pc) else counted[:-1]
    lengths = counted[step_start[1:]] - counted[step_start[:-1]]
    start = np.concatenate(([0], np.cumsum(lengths[trace.warp_path]))).astype(np.int64)
    fresh = trace.warps + 2 * int(trace.pc_threads[role == INIT].sum()) + NUMBERED * len(trace.blocks)
    of = np.full(start[-1], -1, np.int32)
    count = np.zeros(int(start[-1]) * 2 + fresh + 64, np.int32)
    head = np.zeros(HEAD, np.int64)
    resolve(
        warps, trace.warp_path, step_start, pc, access, number, role, bits, trace.access_start,
        trace.access_base.view(np.int64), trace.access_pattern, trace.pattern_offset,
        trace.pattern_mask.astype(np.int64), start, of, count, np.zeros(len(count), np.bool_),
        np.zeros((MOST, COLUMNS), np.int64), head, np.zeros((WORK, warps), np.int64),
    )  # fmt: skip
    if head[WHY] != FINE:
        return _why(kernel, role, head)
    of[of == UNTOLD] = -1
    return Events(bits, start, of, count[: head[EVENTS]].copy())


def _why(kernel: Kernel, role: NDArray[np.int8], head: NDArray[np.int64]) -> str:
    """Why the phases do not come out, for the report: the line and the object."""
    pc, found = int(head[AT]), int(head[OBJECT])
    own = kernel.instructions[pc if not isinstance(kernel, MachineKernel) else kernel.origin[pc]]
    named = role[pc] in (NAMED_ARRIVE, NAMED_SYNC)
    thing = f"barrier {found}" if named else f"the mbarrier at byte {found} of shared memory"
    if role[pc] == GROUP_SYNC:
        thing = "the other warps of its warpgroup"
    texts = {
        UNKNOWN: f"no mbarrier.init of the block sets up {thing}",
        UNSAID: "the copy was timed only, and tells no mbarrier",
        STUCK: f"a warp would wait for ever for {thing}",
    }
    reason = texts.get(int(head[WHY]), "the block has too many barriers")
    return (
        f"line {own.line} ({own.opcode}): {reason}; so the simulation has no warp wait at mbarriers and named "
        "barriers but for what it copied itself, and times may be too short"
    )
