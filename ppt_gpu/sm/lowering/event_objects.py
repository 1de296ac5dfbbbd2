"""The mbarriers and named barriers of a block, a row of numbers each, and what arrivals, copies and waits do to them.

Their rules: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier" and "bar". Each phase of an
object is an event: how many operations count for it, and whether it is complete.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.compiled import called
from ppt_gpu.emulator.memory.mbarrier_word import PLACE_BITS
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT

#: what an instruction does. ARRIVE, DROP: its word has the count, with EXPECT the bytes; COPIED: arrives when the
#: copies of its warp (COPY) have landed; BULK: its box has the mbarrier and the bytes; GROUP_SYNC: the four warps of a
#: warpgroup come together (wgmma.fence, WARPGROUP.ARRIVE in machine code, before a product that they do together)
(
    NOTHING, INIT, ARRIVE, DROP, ARRIVE_EXPECT, DROP_EXPECT, EXPECT, COMPLETE, COPIED, TEST, COPY, BULK, NAMED_ARRIVE,
    NAMED_SYNC, BLOCK, GROUP_SYNC,
) = range(16)  # fmt: skip
OF_BLOCK = (1 << CLUSTER_SHIFT) - 1  # of a word: the address in the block's shared memory, or the barrier's number
MOST = 4096  # mbarriers and named barriers of a block

#: of an mbarrier or named barrier: its place (a named barrier's is negative), the arrivals that a phase needs, those
#: missing (of a named barrier: the warps that have come), missing bytes, parity, the event of the phase that runs, of
#: the one before (-1: none)
_WHERE, _NEEDED, _MISSING, _BYTES, _PARITY, _NOW, _LAST = range(7)
COLUMNS = 7
#: `head`: events so far, objects of the block so far; of a block that does not come to its end: why, at which
#: instruction, at which object
EVENTS, USED, WHY, AT, OBJECT = range(5)
HEAD = 5
#: why: nothing is wrong; no mbarrier.init came before; a copy does not say which mbarrier it tells; a phase for which
#: a warp waits does not come; more than MOST objects; more phases than there is room for
FINE, UNKNOWN, UNSAID, STUCK, MANY_OBJECTS, MANY_PHASES = range(6)
#: `events` [., EVENT]: operations that count for it; whether it is complete
COUNT, DONE = range(2)
EVENT = 2
#: `steps` [., STEP]: an instruction, what it does, its access and its place in `of` among those of its warp, whether
#: it counts for events
PC, ROLE, ACCESS, PLACE, COUNTS = range(5)
STEP = 5
#: `work` [warps, WORK]: the step at which a warp is; what it waits for: NOBODY, a barrier of the block, else the event
#: of a named barrier; from where on in `of` its copies are that nobody has counted
IS_AT, WAITS, COPIES = range(3)
WORK = 3
NOBODY, FOR_BLOCK = -1, -2
UNTOLD = -2  # in `of`: a copy that no arrival has counted yet
#: what became of a step
STAYS, ARRIVED, WENT = range(3)


@called
def _find(objects: np.ndarray, head: np.ndarray, where: int) -> int:
    for k in range(head[USED]):
        if objects[k, _WHERE] == where:
            return k
    return -1


@called
def _new(objects: np.ndarray, head: np.ndarray, where: int) -> int:
    """A place for the object, -1: there is none."""
    k = head[USED]
    if k == len(objects):
        head[WHY] = MANY_OBJECTS
        return -1
    head[USED] += 1
    objects[k, _WHERE], objects[k, _MISSING] = where, 0
    _begin(objects, head, k)
    return k


@called
def _begin(objects: np.ndarray, head: np.ndarray, k: int) -> None:
    """The next phase of the object has an event of its own."""
    objects[k, _NOW] = head[EVENTS]
    head[EVENTS] += 1


@called
def _known(objects: np.ndarray, head: np.ndarray, where: int) -> int:
    k = _find(objects, head, where)
    if k < 0:
        head[WHY], head[OBJECT] = UNKNOWN, where
    return k


@called
def _count(objects: np.ndarray, events: np.ndarray, of: np.ndarray, k: int, place: int, counts: int) -> None:
    """The operation with this place in `of` counts for the phase of object `k` that runs."""
    if counts != 0:
        of[place] = objects[k, _NOW]
        events[objects[k, _NOW], COUNT] += 1


@called
def _init(objects: np.ndarray, head: np.ndarray, where: int, needed: int) -> None:
    k = _find(objects, head, where)
    if k < 0:
        k = _new(objects, head, where)
        if k < 0:
            return
    else:
        _begin(objects, head, k)
    objects[k, _NEEDED], objects[k, _MISSING], objects[k, _BYTES] = needed, needed, 0
    objects[k, _PARITY], objects[k, _LAST] = 0, -1


@called
def _arrive(objects: np.ndarray, head: np.ndarray, events: np.ndarray, k: int, what: int, given: int) -> None:
    """What an operation does to mbarrier `k`; its phase is complete if nothing is missing then."""
    if what in (ARRIVE, DROP, COPIED):
        objects[k, _MISSING] -= given
    elif what in (ARRIVE_EXPECT, DROP_EXPECT):
        objects[k, _MISSING] -= 1
    if what == DROP:
        objects[k, _NEEDED] -= given
    elif what == DROP_EXPECT:
        objects[k, _NEEDED] -= 1
    if what in (ARRIVE_EXPECT, DROP_EXPECT, EXPECT):
        objects[k, _BYTES] += given
    elif what in (COMPLETE, BULK):
        objects[k, _BYTES] -= given
    if objects[k, _MISSING] == 0 and objects[k, _BYTES] == 0:
        events[objects[k, _NOW], DONE] = 1
        objects[k, _LAST] = objects[k, _NOW]
        _begin(objects, head, k)
        objects[k, _PARITY] ^= 1
        objects[k, _MISSING] = objects[k, _NEEDED]


@called
def meet(
    objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, mine: np.ndarray, what: int, place: int,
    counts: int, word: int, left: int,
) -> int:  # fmt: skip
    """A warp, whose row of `work` is `mine`, is at a named barrier; `left`: warps that have something left to do."""
    arrived = mine[WAITS] == NOBODY
    if arrived:
        where = -1 - (word & OF_BLOCK)
        k = _find(objects, head, where)
        if k < 0:
            k = _new(objects, head, where)
            if k < 0:
                return STAYS
        here = objects[k, _NOW]
        objects[k, _MISSING] += 1
        _count(objects, events, of, k, place, counts)
        needed = word >> PLACE_BITS
        if objects[k, _MISSING] >= (left if needed == 0 else needed):
            events[here, DONE] = 1
            objects[k, _MISSING] = 0
            _begin(objects, head, k)
        if what == NAMED_ARRIVE:
            return WENT
        mine[WAITS] = here
    if events[mine[WAITS], DONE] != 0:
        mine[WAITS] = NOBODY
        return WENT
    return ARRIVED if arrived else STAYS


@called
def tell(
    objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, place: int, counts: int, where: int,
    given: int,
) -> int:  # fmt: skip
    """A bulk copy tells the mbarrier at `where` of so many bytes."""
    k = _known(objects, head, where)
    if k < 0:
        return STAYS
    _count(objects, events, of, k, place, counts)
    _arrive(objects, head, events, k, BULK, given)
    return WENT


@called
def test(objects: np.ndarray, head: np.ndarray, of: np.ndarray, place: int, word: int) -> int:
    """A warp asks whether the phase of a parity is complete, and stays until it is."""
    k = _known(objects, head, word & OF_BLOCK)
    if k < 0 or objects[k, _PARITY] == word >> PLACE_BITS:
        return STAYS
    of[place] = objects[k, _LAST]
    return WENT


@called
def by_lane(
    objects: np.ndarray, head: np.ndarray, events: np.ndarray, of: np.ndarray, mine: np.ndarray, what: int, place: int,
    counts: int, word: int, lanes: int, away: np.ndarray,
) -> int:  # fmt: skip
    """Each of the lanes sets up an mbarrier, or arrives at one: words `away` from `word`. The first one's phase is the
    warp's."""
    told = -1
    for lane in range(32):
        if not (lanes >> lane) & 1:
            continue
        value = word + away[lane]
        if what == INIT:
            _init(objects, head, value & OF_BLOCK, value >> PLACE_BITS)
            continue
        k = _known(objects, head, value & OF_BLOCK)
        if k < 0:
            return STAYS
        if told < 0:
            told = objects[k, _NOW]
            _count(objects, events, of, k, place, counts)
        _arrive(objects, head, events, k, what, value >> PLACE_BITS)
    if what == COPIED:
        if told >= 0 and counts != 0:
            for before in range(mine[COPIES], place):
                if of[before] == UNTOLD:
                    of[before] = told
                    events[told, COUNT] += 1
        mine[COPIES] = place + 1
    return WENT if head[WHY] == FINE else STAYS
