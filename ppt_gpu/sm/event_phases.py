"""The phases of a block's mbarriers and named barriers: its arrivals and waits, gone through as the objects' rules say.

Each warp goes on in its order as far as it comes, then the next one (PTX ISA, "Parallel Synchronization and
Communication Instructions: mbarrier" and "bar"). That yields the phase of every arrival and every wait, whatever the
order in which the functional run had them.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.compiled import called, entry
from ppt_gpu.exec.box import ROW, SIGNAL, SIGNALLED
from ppt_gpu.exec.memory import CLUSTER_SHIFT
from ppt_gpu.exec.sync_word import PLACE_BITS

#: what an instruction does. ARRIVE, DROP: its word has the count, with EXPECT the bytes; COPIED: arrives when the
#: copies of its warp (COPY) have landed; BULK: its box has the mbarrier and the bytes; GROUP_SYNC: the four warps of a
#: warpgroup come together (wgmma.fence, WARPGROUP.ARRIVE in machine code, before a product that they do together)
(
    NOTHING, INIT, ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED, TEST, COPY, BULK, NAMED_ARRIVE,
    NAMED_SYNC, BLOCK, GROUP_SYNC,
) = range(16)  # fmt: skip
PLACE = (1 << CLUSTER_SHIFT) - 1  # of a word: the address, or the number of the barrier
NUMBERED = 16  # barriers with a number
GROUP = 4  # warps of a warpgroup
UNTOLD = -2  # in `of`: a copy that no arrival has counted yet
MOST = 4096  # mbarriers and named barriers of a block

# of an mbarrier or named barrier: its place (a named barrier's is negative), the arrivals that a phase needs, those
# missing, missing bytes, parity, the event of the phase that runs, of the one before (-1: none)
_WHERE, _NEEDED, _MISSING, _BYTES, _PARITY, _NOW, _LAST = range(7)
COLUMNS = 7
# `head`: events so far, objects of the block so far; of a block that does not come to its end: why, at which
# instruction, at which object
EVENTS, USED, WHY, AT, OBJECT = range(5)
HEAD = 5
#: why: nothing is wrong; no mbarrier.init came before; a copy does not say which mbarrier it tells; a phase for which
#: a warp waits does not come; more than MOST objects, or more phases than arrivals
FINE, UNKNOWN, UNSAID, STUCK, TOO_MANY = range(5)
# `work` [., warps]: the step at which a warp is; what it waits for: nothing, a barrier of the block, else the event of
# a named barrier; from where on in `of` its copies are that nobody has counted
STEP, WAITS, COPIES = range(3)
WORK = 3
_NONE, _BLOCK = -1, -2
# what became of a step
_STAYS, _ARRIVED, _DONE = range(3)


@called
def _find(table: np.ndarray, head: np.ndarray, where: int) -> int:
    for k in range(head[USED]):
        if table[k, _WHERE] == where:
            return k
    return -1


@called
def _new(table: np.ndarray, head: np.ndarray, where: int) -> int:
    """A place for the object, -1: there is none."""
    k = head[USED]
    if k == len(table):
        head[WHY], head[OBJECT] = TOO_MANY, where
        return -1
    head[USED] += 1
    table[k, _WHERE], table[k, _MISSING] = where, 0
    _begin(table, head, k)
    return k


@called
def _begin(table: np.ndarray, head: np.ndarray, k: int) -> None:
    """The next phase of the object has an event of its own."""
    table[k, _NOW] = head[EVENTS]
    head[EVENTS] += 1


@called
def _count(table: np.ndarray, k: int, pc: int, place: int, bits: np.ndarray, of: np.ndarray, count: np.ndarray) -> None:
    if bits[pc] != 0:
        of[place] = table[k, _NOW]
        count[table[k, _NOW]] += 1


@called
def _arrive(table: np.ndarray, head: np.ndarray, done: np.ndarray, k: int, what: int, given: int) -> None:
    """What an operation does to mbarrier `k`; its phase is complete if nothing is missing then."""
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
    if table[k, _MISSING] == 0 and table[k, _BYTES] == 0:
        done[table[k, _NOW]] = True
        table[k, _LAST] = table[k, _NOW]
        _begin(table, head, k)
        table[k, _PARITY] ^= 1
        table[k, _MISSING] = table[k, _NEEDED]


@called
def _init(table: np.ndarray, head: np.ndarray, where: int, needed: int) -> None:
    k = _find(table, head, where)
    if k < 0:
        k = _new(table, head, where)
        if k < 0:
            return
    else:
        _begin(table, head, k)
    table[k, _NEEDED], table[k, _MISSING], table[k, _BYTES] = needed, needed, 0
    table[k, _PARITY], table[k, _LAST] = 0, -1


@called
def _known(table: np.ndarray, head: np.ndarray, where: int) -> int:
    k = _find(table, head, where)
    if k < 0:
        head[WHY], head[OBJECT] = UNKNOWN, where
    return k


@called
def _meet(
    w: int, what: int, pc: int, place: int, word: int, left: int, bits: np.ndarray, of: np.ndarray,
    count: np.ndarray, done: np.ndarray, table: np.ndarray, head: np.ndarray, waits: np.ndarray,
) -> int:  # fmt: skip
    """Warp `w` is at a named barrier; `left`: warps that have something left to do."""
    arrived = waits[w] == _NONE
    if arrived:
        where = -1 - (word & PLACE)
        k = _find(table, head, where)
        if k < 0:
            k = _new(table, head, where)
            if k < 0:
                return _STAYS
        here = table[k, _NOW]
        table[k, _MISSING] += 1
        _count(table, k, pc, place, bits, of, count)
        needed = word >> PLACE_BITS
        if table[k, _MISSING] >= (left if needed == 0 else needed):
            done[here] = True
            table[k, _MISSING] = 0
            _begin(table, head, k)
        if what == NAMED_ARRIVE:
            return _DONE
        waits[w] = here
    if done[waits[w]]:
        waits[w] = _NONE
        return _DONE
    return _ARRIVED if arrived else _STAYS


@called
def _tell(
    what: int, pc: int, place: int, where: int, given: int, bits: np.ndarray, of: np.ndarray, count: np.ndarray,
    done: np.ndarray, table: np.ndarray, head: np.ndarray,
) -> int:  # fmt: skip
    """A bulk copy tells the mbarrier at `where`."""
    k = _known(table, head, where)
    if k < 0:
        return _STAYS
    _count(table, k, pc, place, bits, of, count)
    _arrive(table, head, done, k, what, given)
    return _DONE


@called
def _test(place: int, word: int, of: np.ndarray, table: np.ndarray, head: np.ndarray) -> int:
    k = _known(table, head, word & PLACE)
    if k < 0 or table[k, _PARITY] == word >> PLACE_BITS:
        return _STAYS
    of[place] = table[k, _LAST]
    return _DONE


@called
def _by_lane(
    w: int, what: int, pc: int, place: int, word: int, lanes: int, row: int, offset: np.ndarray, bits: np.ndarray,
    of: np.ndarray, count: np.ndarray, done: np.ndarray, table: np.ndarray, head: np.ndarray, copies: np.ndarray,
) -> int:  # fmt: skip
    """Each of the lanes sets up an mbarrier, or arrives at one. The first one's phase is the warp's."""
    told = -1
    for lane in range(32):
        if not (lanes >> lane) & 1:
            continue
        value = word + offset[row, lane]
        if what == INIT:
            _init(table, head, value & PLACE, value >> PLACE_BITS)
            continue
        k = _known(table, head, value & PLACE)
        if k < 0:
            return _STAYS
        if told < 0:
            told = table[k, _NOW]
            _count(table, k, pc, place, bits, of, count)
        _arrive(table, head, done, k, what, value >> PLACE_BITS)
    if what == COPIED:
        if told >= 0 and bits[pc] != 0:
            for before in range(copies[w], place):
                if of[before] == UNTOLD:
                    of[before] = told
                    count[told] += 1
        copies[w] = place + 1
    return _DONE if head[WHY] == FINE else _STAYS


@called
def _left(warps: int, first: int, step: np.ndarray, warp_path: np.ndarray, step_start: np.ndarray) -> int:
    """Warps of the block that have something left to do."""
    left = 0
    for w in range(warps):
        left += step[w] < step_start[warp_path[first + w] + 1]
    return left


@called
def _go_on(
    w: int, warps: int, first: int, warp_path: np.ndarray, step_start: np.ndarray, pcs: np.ndarray,
    accesses: np.ndarray, numbers: np.ndarray, role: np.ndarray, bits: np.ndarray, access_start: np.ndarray,
    base: np.ndarray, pattern: np.ndarray, offset: np.ndarray, mask: np.ndarray, start: np.ndarray, of: np.ndarray,
    count: np.ndarray, done: np.ndarray, table: np.ndarray, head: np.ndarray, step: np.ndarray, waits: np.ndarray,
    copies: np.ndarray,
) -> bool:  # fmt: skip
    """Warp `w` of the block goes on as far as it comes. Returns whether it did anything."""
    moved = False
    end = step_start[warp_path[first + w] + 1]
    while step[w] < end:
        k = step[w]
        pc = pcs[k]
        what, place = role[pc], start[first + w] + numbers[k]
        head[AT] = pc
        if what == BLOCK:
            waits[w] = _BLOCK
            break
        if head[EVENTS] + 64 > len(count):
            head[WHY] = TOO_MANY
            break
        lanes, word, row = -1, 0, 0
        if what == GROUP_SYNC:
            word = (NUMBERED + w // GROUP) | (GROUP << PLACE_BITS)
        elif what != COPY:
            access = access_start[first + w] + accesses[k]
            row = pattern[access]
            lanes, word = mask[row], base[access]
        became = _DONE
        if what == COPY:
            of[place] = UNTOLD
        elif lanes == 0:
            became = _DONE
        elif what in (NAMED_SYNC, NAMED_ARRIVE, GROUP_SYNC):
            left = _left(warps, first, step, warp_path, step_start)
            became = _meet(w, what, pc, place, word, left, bits, of, count, done, table, head, waits)
        elif what == BULK and (offset[row, ROW] == 0 or offset[row, SIGNAL] == 0):
            head[WHY], became = UNSAID, _STAYS
        elif what == BULK:
            where, given = (offset[row, SIGNAL] - 1) & PLACE, offset[row, SIGNALLED]
            became = _tell(what, pc, place, where, given, bits, of, count, done, table, head)
        elif what == TEST:
            head[OBJECT] = word & PLACE
            became = _test(place, word, of, table, head)
        else:
            became = _by_lane(w, what, pc, place, word, lanes, row, offset, bits, of, count, done, table, head, copies)
        moved |= became != _STAYS
        if became != _DONE:
            break
        step[w] += 1
    return moved


@called
def _stuck(
    warps: int, first: int, warp_path: np.ndarray, step_start: np.ndarray, pcs: np.ndarray, accesses: np.ndarray,
    role: np.ndarray, access_start: np.ndarray, base: np.ndarray, step: np.ndarray, waits: np.ndarray, head: np.ndarray,
) -> None:  # fmt: skip
    """No warp can go on: the first one that waits for something else than the block's barrier says for what."""
    for w in range(warps):
        k = step[w]
        if k < step_start[warp_path[first + w] + 1] and waits[w] != _BLOCK:
            head[WHY], head[AT], head[OBJECT] = STUCK, pcs[k], 0
            if role[pcs[k]] != GROUP_SYNC:
                head[OBJECT] = base[access_start[first + w] + accesses[k]] & PLACE
            return


@entry
def resolve(
    warps: int, warp_path: np.ndarray, step_start: np.ndarray, pcs: np.ndarray, accesses: np.ndarray,
    numbers: np.ndarray, role: np.ndarray, bits: np.ndarray, access_start: np.ndarray, base: np.ndarray,
    pattern: np.ndarray, offset: np.ndarray, mask: np.ndarray, start: np.ndarray, of: np.ndarray, count: np.ndarray,
    done: np.ndarray, table: np.ndarray, head: np.ndarray, work: np.ndarray,
) -> None:  # fmt: skip
    """Fill `of`, `count` and `head`; with head[WHY] not FINE, a block does not come to its end.

    Of each step of the paths, from step_start: pcs, accesses (its place among those of its warp), numbers (its place
    in the warp's part of `of`). table [MOST, COLUMNS], head [HEAD], work [WORK, warps], done [as count]: zeros.
    """
    step, waits, copies = work[STEP], work[WAITS], work[COPIES]
    for first in range(0, len(warp_path), warps):
        head[USED] = 0
        for w in range(warps):
            step[w], waits[w], copies[w] = step_start[warp_path[first + w]], _NONE, start[first + w]
        while True:
            moved = False
            waiting = 0
            for w in range(warps):
                moved |= _go_on(
                    w, warps, first, warp_path, step_start, pcs, accesses, numbers, role, bits, access_start, base,
                    pattern, offset, mask, start, of, count, done, table, head, step, waits, copies,
                )  # fmt: skip
                if head[WHY] != FINE:
                    return
                waiting += waits[w] == _BLOCK
            left = _left(warps, first, step, warp_path, step_start)
            if left == 0:
                break
            if waiting == left:
                for w in range(warps):
                    if waits[w] == _BLOCK:
                        waits[w] = _NONE
                        step[w] += 1
            elif not moved:
                _stuck(
                    warps, first, warp_path, step_start, pcs, accesses, role, access_start, base, step, waits, head
                )  # fmt: skip
                return
