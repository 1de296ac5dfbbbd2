"""The compiled loops behind `emulator.races.asynchronous`: what warps know of copies, and reads that are too early.

Places in time: `stretch` counts the barriers of the block before an instruction, `step` the instructions of its warp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.memory.mbarrier_word import PLACE
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT
from ppt_gpu.emulator.races.accesses import READS, SHARED, UPDATES, Recorded
from ppt_gpu.emulator.races.race_loops import ACQUIRES, BARRIER, TRACED
from ppt_gpu.emulator.trace.digest_patterns import distances

#: what an instruction is to copies: it issues one, ends a group of them, waits for groups or for an mbarrier, or lets
#: an mbarrier tell when those so far are complete
COPY, COMMIT, WAIT_GROUPS, WAIT_BARRIER, TELL = range(1, 6)
ANY = -2  # of an mbarrier: it may be any
NEVER = 1 << 40
#: columns of a copy: its warp, instruction, stretch and step, ACQUIRED: something the warp waited for before, in that
#: stretch; the mbarrier that is told, -1 for none; its group; and the first stretch at whose end somebody knows
WARP, PC, STRETCH, STEP, ACQUIRED, TOLD, GROUP, KNOWN = range(8)
COLUMNS = 8
#: columns of a wait for an mbarrier
W_WARP, W_STRETCH, W_STEP, W_PLACE = range(4)


@entry
def follow_warp(
    warp: int, first: int, end: int, path_pc: NDArray[np.int32], kind: NDArray[np.uint8], given: NDArray[np.int64],
    flags: NDArray[np.uint8], access: int, recorded: Recorded,
    copies: NDArray[np.int64], own: NDArray[np.int64], copy: int, last: int, waits: NDArray[np.int64], count: int,
) -> int:  # fmt: skip
    """Follow the path of a warp, steps `first` to `end`: fill in its copies, from `copy` to `last`, and its waits.

    own[copy, warp] is the step from which a warp knows that the copy is complete. Returns the number of waits; -1 when
    the path has other copies than were noted.
    """
    base, line, rows, away = recorded.base, recorded.line, recorded.rows, recorded.away
    stretch = group = 0
    acquired = False
    waited = oldest = copy  # copies below `oldest` are complete
    for e in range(first, end):
        pc = path_pc[e]
        what = kind[pc]
        if what == COPY and copy < last:
            if copies[copy, PC] != pc:
                return -1
            copies[copy, STRETCH] = stretch
            copies[copy, STEP] = e
            copies[copy, ACQUIRED] = acquired
            copies[copy, GROUP] = group
            copy += 1
        elif what == COMMIT:
            group += 1
        elif what == WAIT_GROUPS:
            while oldest < copy and (given[pc] < 0 or copies[oldest, GROUP] < group - given[pc]):
                if copies[oldest, TOLD] == -1:
                    own[oldest, warp] = e
                    copies[oldest, KNOWN] = stretch
                oldest += 1
        elif what == TELL:
            while waited < copy:
                if copies[waited, TOLD] == -1 and own[waited, warp] == NEVER:
                    copies[waited, TOLD] = ANY
                waited += 1
        elif what == WAIT_BARRIER:
            if count == len(waits):
                return -1
            distances(rows, line[access], away, 0)
            place = base[access] & PLACE
            for lane in range(32):
                if away[0, lane] != 0:
                    place = ANY
            waits[count, W_WARP] = warp
            waits[count, W_STRETCH] = stretch
            waits[count, W_STEP] = e
            waits[count, W_PLACE] = place
            count += 1
        if flags[pc] & ACQUIRES:
            acquired = True
        if flags[pc] & BARRIER:
            stretch += 1
            acquired = False
        if flags[pc] & TRACED:
            access += 1
    return count


@entry
def meet_barriers(copies: NDArray[np.int64], own: NDArray[np.int64], waits: NDArray[np.int64], count: int) -> int:
    """Copies that mbarriers are told of are known to whoever waited there since. Returns how many copies those are."""
    told = 0
    for c in range(len(copies)):
        if copies[c, TOLD] == -1:
            continue
        told += 1
        for k in range(count):
            if waits[k, W_PLACE] != copies[c, TOLD] and waits[k, W_PLACE] != ANY and copies[c, TOLD] != ANY:
                continue
            warp, step, stretch = waits[k, W_WARP], waits[k, W_STEP], waits[k, W_STRETCH]
            if warp == copies[c, WARP]:
                if step < copies[c, STEP]:
                    continue
            elif stretch < copies[c, STRETCH]:
                continue
            if step < own[c, warp]:
                own[c, warp] = step
            if stretch < copies[c, KNOWN]:
                copies[c, KNOWN] = stretch
    return told


@entry
def chain_places(
    copies: NDArray[np.int64], size: NDArray[np.int64], mask: NDArray[np.int64], places: NDArray[np.int32], shift: int,
    head: NDArray[np.int32], follows: NDArray[np.int32], of: NDArray[np.int32],
) -> int:  # fmt: skip
    """For each granule of 1 << `shift` bytes a chain of the copies that write it, the latest issued first.

    `head` [granules] and `follows` [links] are links + 1, 0 for none; of [links] is the copy of each link. Returns the
    number of links; those behind the room for them are left out.
    """
    used = 0
    for c in range(len(copies)):
        if size[c] == 0:
            continue
        for lane in range(32):
            if mask[c] >> lane & 1 == 0:
                continue
            start = np.int64(places[c, lane])
            for g in range(start >> shift, ((start + size[c] - 1) >> shift) + 1):
                if used < len(of) and g < len(head):
                    of[used] = c
                    follows[used] = head[g]
                    used += 1
                    head[g] = used
    return used


@entry
def early_reads(
    warp: int, first: int, end: int, path_pc: NDArray[np.int32], flags: NDArray[np.uint8], roles: NDArray[np.int8],
    access: int, recorded: Recorded, size: NDArray[np.int64],
    copies: NDArray[np.int64], own: NDArray[np.int64], shift: int, head: NDArray[np.int32], follows: NDArray[np.int32],
    of: NDArray[np.int32], found: NDArray[np.int64],
) -> int:  # fmt: skip
    """Reads of a warp of what it cannot know to be there. found [I, 3]: the first of each instruction: the copy, or -1,
    the byte, and the warp that reads. Returns how many are new.

    A copy of another warp counts from the stretch in which it was issued on, unless that warp had waited for something
    before; and a warp knows what another knew at a barrier of the block, or when it waits for anything itself.
    """
    space, base, line, rows, away = recorded[2:]
    stretch = new = 0
    acquired = False
    for e in range(first, end):
        pc = path_pc[e]
        if flags[pc] & TRACED:
            reads = roles[pc] == READS or roles[pc] == UPDATES
            if reads and space[access] == SHARED and base[access] >> CLUSTER_SHIFT == 0 and found[pc, 0] < 0:
                mask = distances(rows, line[access], away, 0)
                for lane in range(32):
                    if mask >> lane & 1 == 0 or found[pc, 0] >= 0:
                        continue
                    start = base[access] + away[0, lane]
                    for g in range(start >> shift, ((start + size[pc] - 1) >> shift) + 1):
                        link = head[g]
                        while link > 0 and found[pc, 0] < 0:
                            c = of[link - 1]
                            link = follows[link - 1]
                            if own[c, warp] < e or copies[c, KNOWN] < stretch:
                                continue
                            if copies[c, KNOWN] == stretch and acquired:
                                continue
                            if copies[c, WARP] == warp:
                                if e < copies[c, STEP]:
                                    continue
                            elif stretch < copies[c, STRETCH] or (
                                stretch == copies[c, STRETCH] and (acquired or copies[c, ACQUIRED] != 0)
                            ):
                                continue
                            found[pc, 0] = c
                            found[pc, 1] = max(start, g << shift)
                            found[pc, 2] = warp
                            new += 1
            access += 1
        if flags[pc] & ACQUIRES:
            acquired = True
        if flags[pc] & BARRIER:
            stretch += 1
            acquired = False
    return new
