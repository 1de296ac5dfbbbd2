"""Who waits for whom in a block: arrivals and waits of a trace become events of the program.

Every try_wait and test_wait is taken to wait: tries that failed are not in the path of a loop that only waits, and
whoever looks before it waits in such a loop waits for the same phase.

Blocks of a cluster are taken to do the same: what a block does to the mbarriers of others stands for what they do to
its own. Where the phases do not come out (mbarriers written by plain stores, blocks of a cluster with different parts,
instructions that are only timed), nobody waits for anybody in the simulation, as far as mbarriers go, and the
prediction says so.

The phases of a block's mbarriers and named barriers: its arrivals and waits, gone through as the objects' rules say.

Each warp goes on in its order as far as it comes, then the next one. That yields the phase of every arrival and every
wait, whatever the order in which the functional run had them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.emulator.memory.mbarrier_word import PLACE_BITS
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.machine.code import MachineKernel
from ppt_gpu.ptx.instructions import access_kind, is_barrier, is_bulk, is_named_barrier, is_traced
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.sm.lowering.event_objects import (
    ACCESS,
    ARRIVE,
    ARRIVE_EXPECT,
    AT,
    BLOCK,
    BULK,
    COLUMNS,
    COMPLETE,
    COPIED,
    COPIES,
    COPY,
    COUNT,
    COUNTS,
    DROP,
    DROP_EXPECT,
    EVENT,
    EVENTS,
    EXPECT,
    FINE,
    FOR_BLOCK,
    GROUP_SYNC,
    HEAD,
    INIT,
    IS_AT,
    MANY_OBJECTS,
    MANY_PHASES,
    MOST,
    NAMED_ARRIVE,
    NAMED_SYNC,
    NOBODY,
    NOTHING,
    OBJECT,
    OF_BLOCK,
    PC,
    PLACE,
    ROLE,
    STAYS,
    STUCK,
    TEST,
    UNKNOWN,
    UNSAID,
    UNTOLD,
    USED,
    WAITS,
    WENT,
    WHY,
    WORK,
    by_lane,
    meet,
    tell,
    test,
)
from ppt_gpu.sm.program.program import EVENT_COUNTS, EVENT_LATE, EVENT_WAITS
from ppt_gpu.workload.box import ROW, SIGNAL, SIGNALLED

NUMBERED = 16  # barriers with a number
GROUP = 4  # warps of a warpgroup
_MARGIN = 64  # phases that a step may begin, and more
#: `paths` [W, 4]: of each warp of the trace its first step, the one behind its last, its first access, and where its
#: part of `of` begins
BEGIN, END, ACCESSES, PLACES = range(4)


@called
def _left(paths: np.ndarray, work: np.ndarray) -> int:
    """Warps of the block that have something left to do."""
    left = 0
    for w in range(len(work)):
        left += work[w, IS_AT] < paths[w, END]
    return left


@called
def _do(
    w: int, paths: np.ndarray, step: np.ndarray, base: np.ndarray, pattern: np.ndarray, offset: np.ndarray,
    mask: np.ndarray, objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, work: np.ndarray,
) -> int:  # fmt: skip
    """Warp `w` of the block does a step that is no barrier of the block. Returns what became of it."""
    what, place, counts = step[ROLE], paths[w, PLACES] + step[PLACE], step[COUNTS]
    if what == COPY:
        of[place] = UNTOLD
        return WENT
    if what == GROUP_SYNC:
        word = (NUMBERED + w // GROUP) | (GROUP << PLACE_BITS)
        return meet(objects, head, events, of, work[w], what, place, counts, word, int64(0))
    access = paths[w, ACCESSES] + step[ACCESS]
    row, word = pattern[access], base[access]
    lanes = mask[row]
    if lanes == 0 and (what != BULK or offset[row, SIGNAL] == 0):
        return WENT
    if what in (NAMED_SYNC, NAMED_ARRIVE):
        return meet(objects, head, events, of, work[w], what, place, counts, word, _left(paths, work))
    if what == BULK:
        if (offset[row, ROW] == 0 and lanes != 0) or offset[row, SIGNAL] == 0:
            head[WHY] = UNSAID
            return STAYS
        where, given = (offset[row, SIGNAL] - 1) & OF_BLOCK, offset[row, SIGNALLED]
        return tell(objects, head, events, of, place, counts, where, given)
    if what == TEST:
        return test(objects, head, of, place, word)
    return by_lane(objects, head, events, of, work[w], what, place, counts, word, lanes, offset[row])


@called
def _go_on(
    w: int, paths: np.ndarray, steps: np.ndarray, base: np.ndarray, pattern: np.ndarray, offset: np.ndarray,
    mask: np.ndarray, objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, work: np.ndarray,
) -> bool:  # fmt: skip
    """Warp `w` of the block goes on as far as it comes. Returns whether it did anything."""
    moved = False
    while work[w, IS_AT] < paths[w, END]:
        step = steps[work[w, IS_AT]]
        head[AT] = step[PC]
        if step[ROLE] == BLOCK:
            work[w, WAITS] = FOR_BLOCK
            break
        if head[EVENTS] + _MARGIN > len(events):
            head[WHY] = MANY_PHASES
            break
        became = _do(w, paths, step, base, pattern, offset, mask, objects, head, events, of, work)
        moved |= became != STAYS
        if became != WENT:
            break
        work[w, IS_AT] += 1
    return moved


@called
def _stuck(paths: np.ndarray, steps: np.ndarray, base: np.ndarray, head: np.ndarray, work: np.ndarray) -> None:
    """No warp can go on: the first one that waits for something else than the block's barrier says for what."""
    for w in range(len(work)):
        if work[w, IS_AT] < paths[w, END] and work[w, WAITS] != FOR_BLOCK:
            step = steps[work[w, IS_AT]]
            head[WHY], head[AT], head[OBJECT] = STUCK, step[PC], 0
            if step[ROLE] != GROUP_SYNC:
                head[OBJECT] = base[paths[w, ACCESSES] + step[ACCESS]] & OF_BLOCK
            return


@called
def _of_block(
    paths: np.ndarray, steps: np.ndarray, base: np.ndarray, pattern: np.ndarray, offset: np.ndarray, mask: np.ndarray,
    objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, work: np.ndarray,
) -> None:  # fmt: skip
    """A block, with the `paths` of its warps, from its beginning to its end or to head[WHY]."""
    head[USED] = 0
    for w in range(len(work)):
        work[w, IS_AT], work[w, WAITS], work[w, COPIES] = paths[w, BEGIN], NOBODY, paths[w, PLACES]
    while True:
        moved = False
        waiting = 0
        for w in range(len(work)):
            moved |= _go_on(w, paths, steps, base, pattern, offset, mask, objects, head, events, of, work)
            if head[WHY] != FINE:
                return
            waiting += work[w, WAITS] == FOR_BLOCK
        left = _left(paths, work)
        if left == 0:
            return
        if waiting == left:
            for w in range(len(work)):
                if work[w, WAITS] == FOR_BLOCK:
                    work[w, WAITS] = NOBODY
                    work[w, IS_AT] += 1
        elif not moved:
            _stuck(paths, steps, base, head, work)
            return


@cache
def _compiled() -> Any:

    def of_blocks(
        paths: Any, steps: Any, base: Any, pattern: Any, offset: Any, mask: Any, objects: Any, head: Any, events: Any,
        of: Any, work: Any,
    ) -> None:  # fmt: skip
        for first in range(0, len(paths), len(work)):
            mine = paths[first : first + len(work)]
            _of_block(mine, steps, base, pattern, offset, mask, objects, head, events, of, work)
            if head[WHY] != FINE:
                return

    return entry(of_blocks)


def resolve(
    paths: np.ndarray, steps: np.ndarray, base: np.ndarray, pattern: np.ndarray, offset: np.ndarray, mask: np.ndarray,
    objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, work: np.ndarray,
) -> None:  # fmt: skip
    """Fill `of`, `events` and `head`; with head[WHY] not FINE, a block does not come to its end.

    base, pattern [A]: of the accesses of the trace; offset, mask: of its patterns. objects [MOST, COLUMNS], head
    [HEAD], work [warps of a block, WORK], events [., EVENT]: zeros.
    """
    _compiled()(paths, steps, base, pattern, offset, mask, objects, head, events, of, work)


#: EVENT_* of the operation, by role
_BITS = np.zeros(16, np.int8)
_BITS[[ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED]] = EVENT_COUNTS | EVENT_LATE
_BITS[TEST] = EVENT_WAITS
_BITS[[COPY, BULK]] = EVENT_COUNTS | EVENT_LATE
_BITS[NAMED_ARRIVE] = EVENT_COUNTS
_BITS[[NAMED_SYNC, GROUP_SYNC]] = EVENT_COUNTS | EVENT_WAITS


@dataclass(frozen=True)
class Events:
    """As in `ppt_gpu.sm.program.program.Program`."""

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
    paths, steps, start = _steps(trace, role, bits, traced)
    phases = trace.warps + 2 * int(trace.pc_threads[role == INIT].sum()) + NUMBERED * len(trace.blocks)
    of = np.full(start[-1], -1, np.int32)
    events = np.zeros((int(start[-1]) * 2 + phases + 64, EVENT), np.int32)
    head = np.zeros(HEAD, np.int64)
    resolve(
        paths, steps, trace.access_base.view(np.int64), trace.access_pattern, trace.pattern_offset,
        trace.pattern_mask.astype(np.int64), np.zeros((MOST, COLUMNS), np.int64), head, events, of,
        np.zeros((warps, WORK), np.int64),
    )  # fmt: skip
    if head[WHY] != FINE:
        return _why(kernel, role, head)
    of[of == UNTOLD] = -1
    return Events(bits, start, of, events[: head[EVENTS], COUNT].copy())


def _steps(
    trace: Trace, role: NDArray[np.int8], bits: NDArray[np.int8], traced: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """`paths` and `steps` as `event_phases` has them, and Events.start."""
    chosen = np.flatnonzero((role != NOTHING)[trace.path_pc])
    pc = trace.path_pc[chosen]
    first = np.searchsorted(chosen, trace.path_start)
    before = np.concatenate(([0], np.cumsum(traced[trace.path_pc])))
    path = np.searchsorted(trace.path_start, chosen, side="right") - 1
    counts = bits[pc] != 0
    counted = np.concatenate(([0], np.cumsum(counts)))
    access, number = before[chosen] - before[trace.path_start[path]], counted[:-1] - counted[first[path]]
    lengths = counted[first[1:]] - counted[first[:-1]]
    start = np.concatenate(([0], np.cumsum(lengths[trace.warp_path]))).astype(np.int64)
    begin, end = first[:-1][trace.warp_path], first[1:][trace.warp_path]
    paths = np.stack((begin, end, trace.access_start[:-1], start[:-1]), axis=1)
    return paths.astype(np.int64), np.stack((pc, role[pc], access, number, counts), axis=1).astype(np.int64), start


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
        UNSAID: "the trace does not say which mbarrier the copy tells",
        STUCK: f"a warp would wait for ever for {thing}",
        MANY_OBJECTS: f"the block has more than {MOST} mbarriers and named barriers",
        MANY_PHASES: "the lanes of a warp complete phases one after another, too many to follow",
    }
    return (
        f"line {own.line} ({own.opcode}): {texts[int(head[WHY])]}; so the simulation has no warp wait at mbarriers and "
        "named barriers but for what it copied itself, and times may be too short"
    )
