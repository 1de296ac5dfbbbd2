"""Who waits for whom in a block: the phases of its mbarriers and named barriers, from what a trace recorded of them.

Each block's arrivals and waits are gone through as the objects' rules say (PTX ISA, "Parallel Synchronization and
Communication Instructions: mbarrier" and "bar"), each warp in its order, as far as it comes. That yields the phase of
every arrival and every wait, whatever the order in which the functional run had them.

Every try_wait and test_wait is taken to wait: tries that failed are not in the path of a loop that only waits, and
whoever looks before it waits in such a loop waits for the same phase.

Blocks of a cluster are taken to do the same: what a block does to the mbarriers of others stands for what they do to
its own. Where the phases do not come out (mbarriers written by plain stores, blocks of a cluster with different parts,
instructions that are only timed), nobody waits for anybody in the simulation, as far as mbarriers go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined
from ppt_gpu.exec.box import ROW, SIGNAL, SIGNALLED
from ppt_gpu.exec.memory import CLUSTER_SHIFT
from ppt_gpu.exec.sync_word import PLACE_BITS
from ppt_gpu.exec.trace import Trace
from ppt_gpu.ptx.instructions import access_kind, is_barrier, is_bulk, is_named_barrier, is_traced
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.sm.program import EVENT_COUNTS, EVENT_LATE, EVENT_WAITS

#: what an instruction does. ARRIVE, DROP: its word has the count, with EXPECT the bytes; COPIED: arrives when the
#: copies of its warp (COPY) have landed; BULK: its box has the mbarrier and the bytes; GROUP_SYNC: the four warps of a
#: warpgroup come together (wgmma.fence, WARPGROUP.ARRIVE in machine code, before a product that they do together)
(
    NOTHING, INIT, ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED, TEST, COPY, BULK, NAMED_ARRIVE,
    NAMED_SYNC, BLOCK, GROUP_SYNC,
) = range(16)  # fmt: skip
#: EVENT_* of the operation, by role
_BITS = np.zeros(16, np.int8)
_BITS[[ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED]] = EVENT_COUNTS | EVENT_LATE
_BITS[TEST] = EVENT_WAITS
_BITS[[COPY, BULK]] = EVENT_COUNTS | EVENT_LATE
_BITS[NAMED_ARRIVE] = EVENT_COUNTS
_BITS[[NAMED_SYNC, GROUP_SYNC]] = EVENT_COUNTS | EVENT_WAITS
_PLACE = (1 << CLUSTER_SHIFT) - 1
#: mbarriers and named barriers of a block at most
_MOST = 4096
_NUMBERED = 16
_GROUP = 4  # warps of a warpgroup
_UNTOLD = -2  # in `of`: a copy that no arrival has counted yet


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
) -> Events | None:
    """The events of the trace's blocks of `warps` warps; None: there are none, or they do not come out.

    operations [I]: machine operations that each instruction becomes; traced [I]: those with accesses in the trace.
    """
    role = roles(kernel)
    if not role[trace.pc_executed > 0].any():
        return None
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
    fresh = trace.warps + 2 * int(trace.pc_threads[role == INIT].sum()) + _NUMBERED * len(trace.blocks)
    of = np.full(start[-1], -1, np.int32)
    count = np.zeros(int(start[-1]) * 2 + fresh + 64, np.int32)
    done = np.zeros(len(count), np.bool_)
    used = _resolve(
        warps, trace.warp_path, step_start, pc, access, number, role, bits, trace.access_start,
        trace.access_base.view(np.int64), trace.access_pattern, trace.pattern_offset,
        trace.pattern_mask.astype(np.int64), start, of, count, done, np.zeros((_MOST, 7), np.int64),
        np.zeros((3, warps), np.int64),
    )  # fmt: skip
    if used < 0:
        return None
    of[of == _UNTOLD] = -1
    return Events(bits, start, of, count[:used].copy())


# of an mbarrier or named barrier: its place (a named barrier's is negative), the arrivals that a phase needs, those
# missing, missing bytes, parity, the event of the phase that runs, of the one before (-1: none)
_WHERE, _NEEDED, _MISSING, _BYTES, _PARITY, _NOW, _LAST = range(7)


@inlined
def _find(table: np.ndarray, used: int, where: int) -> int:
    for k in range(used):
        if table[k, _WHERE] == where:
            return k
    return -1


@inlined
def _settle(table: np.ndarray, k: int, events: int, done: np.ndarray) -> int:
    """Complete the phase of mbarrier `k` if nothing is missing. Returns how many events there are."""
    if table[k, _MISSING] == 0 and table[k, _BYTES] == 0:
        done[table[k, _NOW]] = True
        table[k, _LAST] = table[k, _NOW]
        table[k, _NOW] = events
        table[k, _PARITY] ^= 1
        table[k, _MISSING] = table[k, _NEEDED]
        return events + 1
    return events


@inlined
def _change(table: np.ndarray, k: int, what: int, given: int) -> None:
    if what in (ARRIVE, DROP, COPIED):
        table[k, _MISSING] -= given
    elif what in (ARRIVE_EXPECT, DROP_EXPECT):
        table[k, _MISSING] -= 1
    if what == DROP:
        table[k, _NEEDED] -= given
    elif what == DROP_EXPECT:
        table[k, _NEEDED] -= 1
    if what in (ARRIVE_EXPECT, DROP_EXPECT, EXPECT):
        table[k, _BYTES] += given
    elif what in (COMPLETE, BULK):
        table[k, _BYTES] -= given


@entry
def _resolve(
    warps: int, warp_path: np.ndarray, step_start: np.ndarray, pcs: np.ndarray, accesses: np.ndarray,
    numbers: np.ndarray, role: np.ndarray, bits: np.ndarray, access_start: np.ndarray, base: np.ndarray,
    pattern: np.ndarray, offset: np.ndarray, mask: np.ndarray, start: np.ndarray, of: np.ndarray, count: np.ndarray,
    done: np.ndarray, table: np.ndarray, work: np.ndarray,
) -> int:  # fmt: skip
    """Fill `of` and `count`. Returns the number of events, -1: a block does not come to its end.

    Of each step of the paths, from step_start: pcs, accesses (its place among those of its warp), numbers (its place
    in the warp's part of `of`).
    """
    events = 0
    step, arrived, copies = work[0], work[1], work[2]
    for first in range(0, len(warp_path), warps):
        used = 0
        for w in range(warps):
            step[w] = step_start[warp_path[first + w]]
            arrived[w] = -1  # -2: at a barrier of the block; else the event of the named barrier at which it is
            copies[w] = start[first + w]
        while True:
            moved = False
            left, waiting = 0, 0
            for w in range(warps):
                end = step_start[warp_path[first + w] + 1]
                while step[w] < end:
                    k = step[w]
                    what, place = role[pcs[k]], start[first + w] + numbers[k]
                    if what == BLOCK:
                        arrived[w] = -2
                        break
                    if events + 64 > len(count):
                        return -1
                    if what == COPY:
                        of[place] = _UNTOLD
                        step[w] += 1
                        moved = True
                        continue
                    if what == GROUP_SYNC:
                        lanes, word, row = -1, (_NUMBERED + w // _GROUP) | (_GROUP << PLACE_BITS), 0
                    else:
                        a = access_start[first + w] + accesses[k]
                        lanes, word, row = mask[pattern[a]], base[a], pattern[a]
                    if lanes == 0:
                        step[w] += 1
                        moved = True
                        continue
                    if what in (NAMED_SYNC, NAMED_ARRIVE, GROUP_SYNC):
                        if arrived[w] < 0:
                            where = -1 - (word & _PLACE)
                            at = _find(table, used, where)
                            if at < 0:
                                if used == len(table):
                                    return -1
                                at = used
                                used += 1
                                table[at, _WHERE], table[at, _MISSING], table[at, _NOW] = where, 0, events
                                events += 1
                            here = table[at, _NOW]
                            table[at, _MISSING] += 1
                            if bits[pcs[k]] != 0:
                                of[place] = here
                                count[here] += 1
                            needed = word >> PLACE_BITS
                            if needed == 0:  # of the whole block: of whoever has something left to do
                                for other in range(warps):
                                    needed += step[other] < step_start[warp_path[first + other] + 1]
                            if table[at, _MISSING] >= needed:
                                done[here] = True
                                table[at, _MISSING], table[at, _NOW] = 0, events
                                events += 1
                            moved = True
                            if what != NAMED_ARRIVE:
                                arrived[w] = here
                        if what != NAMED_ARRIVE:
                            if not done[arrived[w]]:
                                break
                            arrived[w] = -1
                        step[w] += 1
                        continue
                    if what == BULK:
                        where, given = (offset[row, SIGNAL] - 1) & _PLACE, offset[row, SIGNALLED]
                        if offset[row, ROW] == 0 or offset[row, SIGNAL] == 0:
                            return -1
                        at = _find(table, used, where)
                        if at < 0:
                            return -1
                        if bits[pcs[k]] != 0:
                            of[place] = table[at, _NOW]
                            count[table[at, _NOW]] += 1
                        _change(table, at, what, given)
                        events = _settle(table, at, events, done)
                    elif what == TEST:
                        at = _find(table, used, word & _PLACE)
                        if at < 0:
                            return -1
                        if table[at, _PARITY] == word >> PLACE_BITS:
                            break
                        of[place] = table[at, _LAST]
                    else:
                        told = -1
                        for lane in range(32):
                            if not (lanes >> lane) & 1:
                                continue
                            value = word + offset[row, lane]
                            at = _find(table, used, value & _PLACE)
                            if what == INIT:
                                if at < 0:
                                    if used == len(table):
                                        return -1
                                    at = used
                                    used += 1
                                table[at, _WHERE], table[at, _NEEDED] = value & _PLACE, value >> PLACE_BITS
                                table[at, _MISSING], table[at, _BYTES] = value >> PLACE_BITS, 0
                                table[at, _PARITY], table[at, _NOW], table[at, _LAST] = 0, events, -1
                                events += 1
                                continue
                            if at < 0:
                                return -1
                            if told < 0:
                                told = table[at, _NOW]
                            _change(table, at, what, value >> PLACE_BITS)
                            events = _settle(table, at, events, done)
                        if told >= 0 and bits[pcs[k]] != 0:
                            of[place] = told
                            count[told] += 1
                            if what == COPIED:
                                for before in range(copies[w], place):
                                    if of[before] == _UNTOLD:
                                        of[before] = told
                                        count[told] += 1
                    if what == COPIED:
                        copies[w] = place + 1
                    step[w] += 1
                    moved = True
                left += step[w] < end
                waiting += step[w] < end and arrived[w] == -2
            if left == 0:
                break
            if waiting == left:
                for w in range(warps):
                    if arrived[w] == -2:
                        arrived[w] = -1
                        step[w] += 1
            elif not moved:
                return -1
    return events
