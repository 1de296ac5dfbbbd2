"""The phases of a block's mbarriers and named barriers: its arrivals and waits, gone through as the objects' rules say.

Each warp goes on in its order as far as it comes, then the next one. That yields the phase of every arrival and every
wait, whatever the order in which the functional run had them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.emulator.memory.mbarrier_word import PLACE_BITS
from ppt_gpu.sm.lowering.event_objects import (
    ACCESS,
    AT,
    BLOCK,
    BULK,
    COPIES,
    COPY,
    COUNTS,
    EVENTS,
    FINE,
    FOR_BLOCK,
    GROUP_SYNC,
    IS_AT,
    MANY_PHASES,
    NAMED_ARRIVE,
    NAMED_SYNC,
    NOBODY,
    OBJECT,
    OF_BLOCK,
    PC,
    PLACE,
    ROLE,
    STAYS,
    STUCK,
    TEST,
    UNSAID,
    UNTOLD,
    USED,
    WAITS,
    WENT,
    WHY,
    by_lane,
    meet,
    tell,
    test,
)
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
