"""The compiled loops behind `emulator.races.races`: accesses between barriers, and pairs of them that conflict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT
from ppt_gpu.emulator.races.accesses import NOTHING, READS, SHARED, Recorded
from ppt_gpu.emulator.trace.digest_patterns import distances

#: what an instruction on a path is: a recorded access, a barrier of the whole block, what lets others know that a warp
#: came this far, and what may wait for that; and that others cannot tell halves of the access apart (atomic, volatile)
TRACED, BARRIER, RELEASES, ACQUIRES, STRONG = 1, 2, 4, 8, 16
#: of an access: something acquires before it, something releases after it, up to the barriers around
ACQUIRED, RELEASED = 1, 2
#: columns of a conflict: block, byte, then warp and place in M of the earlier access and of the later one
BLOCK, BYTE, FIRST_WARP, FIRST, SECOND_WARP, SECOND = range(6)
MOST_CONFLICTS = 512  # kept of a launch
PER_PAIR = 4  # of them, of each pair of instructions
KNOWN = 1 << 12  # entries of the caches of stretches looked at, and of pairs of instructions found
_KEPT = 2  # writes, and reads, that are kept of each granule: of different warps
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@entry
def between_barriers(
    path: int, path_start: NDArray[np.int64], path_pc: NDArray[np.int32], flags: NDArray[np.uint8],
    start: NDArray[np.int64], stretch: NDArray[np.int32], since: NDArray[np.int32], order: NDArray[np.uint8],
) -> int:  # fmt: skip
    """For the accesses of one path: barriers before each, instructions since the last of them, ACQUIRED | RELEASED."""
    m = start[path]
    barriers = acquired = 0
    last = path_start[path]
    for e in range(path_start[path], path_start[path + 1]):
        flag = flags[path_pc[e]]
        if flag & TRACED:
            stretch[m] = barriers
            since[m] = e - last
            order[m] = acquired
            m += 1
        if flag & ACQUIRES:
            acquired = ACQUIRED
        if flag & BARRIER:
            barriers += 1
            last = e + 1
            acquired = 0
    released = 0
    for e in range(path_start[path + 1] - 1, path_start[path] - 1, -1):
        flag = flags[path_pc[e]]
        if flag & BARRIER:
            released = 0
        if flag & TRACED:
            m -= 1
            order[m] |= released
        if flag & RELEASES:
            released = RELEASED
    return barriers


class OnPaths(NamedTuple):
    """The memory instructions on paths [M], and what each instruction of the kernel does [I]."""

    start: NDArray[np.int64]  # [P+1] where those of each path begin
    pc: NDArray[np.int32]  # [M]
    size: NDArray[np.int64]  # [I] bytes that a lane moves
    stretch: NDArray[np.int32]  # [M] as of `between_barriers`, and the next two
    since: NDArray[np.int32]
    order: NDArray[np.uint8]
    roles: NDArray[np.int8]  # [I]
    flags: NDArray[np.uint8]  # [I]


class Looking(NamedTuple):
    """What `conflicts` remembers from one block to the next."""

    at: NDArray[np.int64]  # [warps] how far each warp is
    known: NDArray[np.int64]  # digests of stretches that have been looked at
    stamp: NDArray[np.int64]  # [granules] the stretch of which `kept` are
    kept: NDArray[np.int64]  # [granules, 4 * _KEPT] warp and place in M, first of writes, then of reads
    own: NDArray[np.int64]  # [granules] the last turn of a warp that stored there
    clock: NDArray[np.int64]  # [2] stretches and turns so far
    pairs: NDArray[np.int64]  # of instructions, and how many conflicts of each have been found
    found: NDArray[np.int64]  # [MOST_CONFLICTS, 6]


@entry
def conflicts(
    first: int, end: int, recorded: Recorded, on_paths: OnPaths, looking: Looking, block: int, shift: int, count: int
) -> int:
    """Warps `first` to `end`, one block: append to `found` what conflicts between two barriers; returns its new length.

    Shared memory is divided into granules of 1 << `shift` bytes. A stretch that is like an earlier one is skipped, and
    so is one in which nobody writes, or all accesses are atomic or volatile.
    """
    warp_path, access_start, space, base, line, rows, away = recorded
    start, pc, size, stretch, _, _, roles, flags = on_paths
    at, known, clock = looking.at, looking.known, looking.clock
    for w in range(first, end):
        at[w - first] = start[warp_path[w]]
    now = -1
    more = True
    while more:
        now += 1
        more = False
        digest = writes = weak = 0
        for w in range(first, end):
            p = warp_path[w]
            behind = access_start[w] - start[p]
            m = at[w - first]
            while m < start[p + 1] and stretch[m] == now:
                if roles[pc[m]] != NOTHING and space[m + behind] == SHARED:
                    digest = (digest ^ base[m + behind] ^ (line[m + behind] * 0x10001 + pc[m]) * _MIX) * _MIX
                    digest ^= digest >> 29
                    writes += roles[pc[m]] != READS
                    weak += flags[pc[m]] & STRONG == 0
                m += 1
            digest = (digest + 1) * _MIX
            more |= m < start[p + 1]
            at[w - first] = m
        slot = digest >> 32 & (KNOWN - 1)
        if writes == 0 or weak == 0 or known[slot] == digest:
            continue
        known[slot] = digest
        clock[0] += 1
        for w in range(first, end):
            clock[1] += 1
            p = warp_path[w]
            begin = at[w - first]
            while begin > start[p] and stretch[begin - 1] == now:
                begin -= 1
            for m in range(begin, at[w - first]):
                k = m + access_start[w] - start[p]
                if roles[pc[m]] == NOTHING or space[k] != SHARED or base[k] >> CLUSTER_SHIFT != 0:
                    continue
                mask = distances(rows, line[k], away, 0)
                for lane in range(32):
                    if mask >> lane & 1 == 0:
                        continue
                    byte = base[k] + away[0, lane]
                    for g in range(byte >> shift, ((byte + size[pc[m]] - 1) >> shift) + 1):
                        count = _touch(g, w, m, first, on_paths, looking, block, shift, count)
    return count


@merged
def _touch(
    g: int, w: int, m: int, first: int, on_paths: OnPaths, looking: Looking, block: int, shift: int, count: int
) -> int:
    """Warp `w` accesses granule `g` at place `m`: hold it against what is kept of the granule, then keep it."""
    _, pc, _, _, since, order, roles, flags = on_paths
    _, _, stamp, kept, own, clock, pairs, found = looking
    reads = roles[pc[m]] == READS
    strong = flags[pc[m]] & STRONG
    if stamp[g] != clock[0]:
        stamp[g] = clock[0]
        for j in range(4 * _KEPT):
            kept[g, j] = -1
    if reads and own[g] == clock[1]:
        return count
    for j in range(_KEPT if reads else 2 * _KEPT):
        other = kept[g, 2 * j]
        n = kept[g, 2 * j + 1]
        if other < 0 or other == w or (strong and flags[pc[n]] & STRONG):
            continue
        if (order[m] & RELEASED and order[n] & ACQUIRED) or (order[n] & RELEASED and order[m] & ACQUIRED):
            continue
        earlier = since[n] < since[m] or (since[n] == since[m] and roles[pc[n]] != READS)
        a = n if earlier else m
        b = m if earlier else n
        key = pc[a] * len(flags) + pc[b] + 1
        slot = key * _MIX >> 40 & (KNOWN - 1)
        if pairs[slot, 0] != key:
            pairs[slot, 0] = key
            pairs[slot, 1] = 0
        if pairs[slot, 1] < PER_PAIR and count < len(found):
            pairs[slot, 1] += 1
            found[count, BLOCK] = block
            found[count, BYTE] = g << shift
            found[count, FIRST_WARP] = (other if earlier else w) - first
            found[count, FIRST] = a
            found[count, SECOND_WARP] = (w if earlier else other) - first
            found[count, SECOND] = b
            count += 1
    if not reads and not strong:
        own[g] = clock[1]
    j = _KEPT if reads else 0
    stop = j + _KEPT
    while j < stop and kept[g, 2 * j] >= 0 and kept[g, 2 * j] != w:
        j += 1
    if j < stop and (kept[g, 2 * j] < 0 or flags[pc[kept[g, 2 * j + 1]]] & STRONG):
        kept[g, 2 * j] = w
        kept[g, 2 * j + 1] = m
    return count
