"""The memory system for the compiled loop: tags, MSHRs, servers. Same steps as `reference_memory`, flat arrays.

`m` holds parameters, server times and counters; a cache is an array of nodes, one for each way, chained in each set
from the next victim to the newest; `lines` says at which node a line is, so nothing is searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.sm import core_machine as cm
from ppt_gpu.sm.core_bits import popcount
from ppt_gpu.sm.core_machine import FRACTION, ONE, WRITE_BACK, WRITE_EVICT, Machine, set_index
from ppt_gpu.sm.program import FORCED_DRAM, FORCED_L1, KIND_ATOMIC, KIND_LOAD, Program

# m: parameters
_PARAMETERS = (
    "tx_cost", "shared_latency", "atomic_cost", "l1_fifo", "l1_write", "l1_allocate", "l1_latency", "l1_group", "mshrs",
    "merges", "l2_fifo", "l2_back", "l2_allocate", "l2_latency", "l2_cost", "icnt_cost", "dram_cost", "dram_latency",
    "dirty", "perfect", "sector_bytes", "queue",
)  # fmt: skip
(
    P_TX, P_SHARED, P_ATOMIC, P_L1_FIFO, P_L1_WRITE, P_L1_ALLOCATE, P_L1_LATENCY, P_L1_GROUP, P_MSHRS,
    P_MERGES, P_L2_FIFO, P_L2_BACK, P_L2_ALLOCATE, P_L2_LATENCY, P_L2, P_ICNT, P_DRAM, P_DRAM_LATENCY,
    P_DIRTY, P_PERFECT, P_BYTES, P_QUEUE,
) = range(len(_PARAMETERS))  # fmt: skip
# m: servers (time from which each is free), rings, carried fraction
(
    LSU, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC, DIRTY_REST, MSHR_HEAD, QUEUE_HEAD, LAST_RELEASE, NOW,
) = range(len(_PARAMETERS), len(_PARAMETERS) + 11)  # fmt: skip
C = len(_PARAMETERS) + 11  # m: counters
SIZE = C + len(cm.COUNTERS)
C_L1, C_L1_HIT, C_L2, C_L2_HIT = C + cm.L1_ACCESSES, C + cm.L1_HITS, C + cm.L2_ACCESSES, C + cm.L2_HITS
C_DRAM_READ, C_DRAM_WRITE = C + cm.DRAM_READ, C + cm.DRAM_WRITE
C_L2_READ, C_L2_WRITE = C + cm.L2_READ, C + cm.L2_WRITE
C_PASSES, C_SHARED = C + cm.SHARED_PASSES, C + cm.SHARED_ACCESSES
# columns of a node; a node without a line has LINE -1
LINE, PREV, NEXT, VALID, DIRTY, FILL, FILLING, MERGED = range(8)
FRESH = MERGED  # of an L2 node: stands in a way never used before
# columns of `lines`
L1_NODE, L2_NODE, L1_SET, L2_SET, WARM = range(5)
VICTIM, NEWEST = range(2)  # columns of `ends`


class MemoryArrays:
    """The arrays of one run."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self.m = np.zeros(SIZE, np.int64)
        for index, name in enumerate(_PARAMETERS):
            self.m[index] = int(getattr(machine, name))
        self.lines = np.empty((len(program.line_address), 5), np.int32)
        self.lines[:, (L1_NODE, L2_NODE)] = -1
        self.lines[:, L1_SET] = set_index(program, machine.l1_sets, machine.l1_hash)
        self.lines[:, L2_SET] = set_index(program, machine.l2_sets, True)
        self.lines[:, WARM] = np.where(program.line_warm, 0xFF, 0)
        self.l1, self.l1_ends = _empty_cache(machine.l1_sets, machine.l1_ways)
        self.l2, self.l2_ends = _empty_cache(machine.l2_sets, machine.l2_ways)
        self.mshr = np.zeros(machine.mshrs, np.int64)
        self.queue = np.zeros(machine.queue, np.int64)
        atomic = program.access_atomic
        self.updates = atomic.astype(np.int32) if len(atomic) else np.ones(len(program.access_cycles), np.int32)

    def counters(self) -> NDArray[np.int64]:
        return self.m[C : C + len(cm.COUNTERS)].copy()

    def idle(self) -> int:
        """The cycle from which no server is busy."""
        return -(-int(self.m[[LSU, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC]].max()) >> FRACTION)


def _empty_cache(sets: int, ways: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(nodes, first and last node of every set's chain)."""
    count = max(1, sets * ways)
    nodes = np.zeros((count, 8), np.int64)
    nodes[:, LINE] = -1
    numbers = np.arange(count)
    nodes[:, PREV] = np.where(numbers % max(ways, 1) == 0, -1, numbers - 1)
    nodes[:, NEXT] = np.where((numbers + 1) % max(ways, 1) == 0, -1, numbers + 1)
    first = np.arange(max(1, sets), dtype=np.int32) * ways
    return nodes, np.stack([first, first + max(ways, 1) - 1], axis=1).astype(np.int32)


# --- chains ------------------------------------------------------------------------------------------------------


@njit(_nrt=False)
def _unlink(nodes: Any, ends: Any, at: int, node: int) -> None:
    before, after = nodes[node, PREV], nodes[node, NEXT]
    if before >= 0:
        nodes[before, NEXT] = after
    else:
        ends[at, VICTIM] = after
    if after >= 0:
        nodes[after, PREV] = before
    else:
        ends[at, NEWEST] = before


@njit(_nrt=False)
def _renew(nodes: Any, ends: Any, at: int, node: int) -> None:
    """Make `node` the newest of its set."""
    newest = ends[at, NEWEST]
    if newest != node:
        _unlink(nodes, ends, at, node)
        newest = ends[at, NEWEST]
        nodes[newest, NEXT] = node
        nodes[node, PREV] = newest
        nodes[node, NEXT] = -1
        ends[at, NEWEST] = node


@njit(_nrt=False)
def _drop(nodes: Any, ends: Any, at: int, node: int) -> None:
    """Empty `node` and make it the next victim of its set."""
    nodes[node, LINE] = -1
    victim = ends[at, VICTIM]
    if victim != node:
        _unlink(nodes, ends, at, node)
        victim = ends[at, VICTIM]
        nodes[victim, PREV] = node
        nodes[node, NEXT] = victim
        nodes[node, PREV] = -1
        ends[at, VICTIM] = node


@njit(_nrt=False)
def _claim(nodes: Any, ends: Any, lines: Any, column: int, at: int, node: int, line: int) -> None:
    """Give `node`, the victim of its set, to `line`."""
    old = nodes[node, LINE]
    if old >= 0:
        lines[old, column] = -1
    lines[line, column] = node
    nodes[node, LINE] = line
    nodes[node, VALID] = 0
    nodes[node, DIRTY] = 0
    nodes[node, FILL] = 0
    nodes[node, FILLING] = 0
    nodes[node, MERGED] = 0
    _renew(nodes, ends, at, node)


@njit(_nrt=False)
def _request(nodes: Any, node: int, now: int, done: int, sectors: int) -> None:
    if nodes[node, FILL] > now:
        nodes[node, FILLING] |= sectors
    else:
        nodes[node, FILLING] = sectors
    nodes[node, FILL] = max(nodes[node, FILL], done)
    nodes[node, VALID] |= sectors


@njit(_nrt=False)
def whole(time: int) -> int:
    return (time + (ONE - 1)) >> FRACTION


# --- L2, interconnect, DRAM --------------------------------------------------------------------------------------


@njit(_nrt=False)
def _dram_write(m: Any, time: int, count: int) -> None:
    m[C_DRAM_WRITE] += count * m[P_BYTES]
    m[DRAM] = max(m[DRAM], time) + count * m[P_DRAM]


@njit(_nrt=False)
def _l2_keep(m: Any, lines: Any, l2: Any, ends: Any, time: int, line: int, sectors: int) -> int:
    """The node of `line`, allocated if need be, with `sectors` valid. Replaced dirty sectors go to DRAM."""
    node = lines[line, L2_NODE]
    if node < 0:
        at = lines[line, L2_SET]
        node = ends[at, VICTIM]
        fresh = l2[node, LINE] < 0
        if not fresh and l2[node, DIRTY]:
            _dram_write(m, time, popcount(l2[node, DIRTY]))
        _claim(l2, ends, lines, L2_NODE, at, node, line)
        l2[node, FRESH] = fresh
    if l2[node, FRESH] and m[P_DIRTY]:
        rest = m[DIRTY_REST] + popcount(sectors & ~l2[node, VALID]) * m[P_DIRTY]
        if rest >> FRACTION:
            _dram_write(m, time, rest >> FRACTION)
        m[DIRTY_REST] = rest & (ONE - 1)
    return node


@njit(_nrt=False)
def _l2_missing(m: Any, lines: Any, l2: Any, ends: Any, line: int, sectors: int) -> int:
    """Sectors that the L2 lacks; the line becomes the newest of its set."""
    if line < 0:
        missing = sectors if line == FORCED_DRAM else 0
    else:
        node = lines[line, L2_NODE]
        missing = sectors
        if node >= 0:
            missing &= ~l2[node, VALID]
            if not m[P_L2_FIFO]:
                _renew(l2, ends, lines[line, L2_SET], node)
        warm = np.int64(lines[line, WARM])
        if warm:
            lines[line, WARM] = warm & ~sectors
            missing &= ~warm
    m[C_L2_HIT] += popcount(sectors & ~missing)
    return missing


@njit(_nrt=False)
def _l2_read(m: Any, lines: Any, l2: Any, ends: Any, time: int, line: int, sectors: int, wait: int, atomic: bool) -> int:
    """Cycle at which the data of a load or atomic is back at the SM."""
    count = popcount(sectors)
    m[C_L2] += count
    m[C_L2_READ] += count * m[P_BYTES]
    wait = max(wait, m[L2_SERVER] - time, m[INWARD] - time)
    m[L2_SERVER] = max(m[L2_SERVER], time) + count * m[P_L2]
    m[INWARD] = max(m[INWARD], time) + count * m[P_ICNT]
    present = line >= 0 and lines[line, L2_NODE] >= 0
    missing = _l2_missing(m, lines, l2, ends, line, sectors)
    latency = m[P_L2_LATENCY]
    if missing:
        absent = popcount(missing)
        m[C_DRAM_READ] += absent * m[P_BYTES]
        wait = max(wait, m[DRAM] - time)
        m[DRAM] = max(m[DRAM], time) + absent * m[P_DRAM]
        latency = m[P_DRAM_LATENCY]
    done = whole(time + wait) + latency
    if line >= 0:
        now = time >> FRACTION
        node = _l2_keep(m, lines, l2, ends, time, line, sectors)
        if present and (sectors & l2[node, FILLING] & ~missing) and l2[node, FILL] > now:
            done = max(done, l2[node, FILL])
        if missing:
            _request(l2, node, now, done, missing)
        l2[node, VALID] |= sectors
        if atomic:
            l2[node, DIRTY] |= sectors
    return done


@njit(_nrt=False)
def _l2_write(m: Any, lines: Any, l2: Any, ends: Any, time: int, line: int, sectors: int) -> int:
    """Server time at which L2 (and DRAM, a latency's worth of writes ahead) has accepted the sectors."""
    count = popcount(sectors)
    m[C_L2] += count
    m[C_L2_WRITE] += count * m[P_BYTES]
    m[OUTWARD] = max(m[OUTWARD], time) + count * m[P_ICNT]
    m[L2_SERVER] = max(m[L2_SERVER], time) + count * m[P_L2]
    before = m[C_DRAM_WRITE]
    missing = _l2_missing(m, lines, l2, ends, line, sectors)
    keep = m[P_L2_BACK] != 0 and (m[P_L2_ALLOCATE] != 0 or missing == 0)
    if not keep or (line < 0 and missing != 0):
        _dram_write(m, time, count)
    if line >= 0 and (m[P_L2_ALLOCATE] != 0 or lines[line, L2_NODE] >= 0):
        node = _l2_keep(m, lines, l2, ends, time, line, sectors)
        l2[node, VALID] |= sectors
        if keep:
            l2[node, DIRTY] |= sectors
    accepted = max(m[OUTWARD], m[L2_SERVER])
    if m[C_DRAM_WRITE] != before:
        accepted = max(accepted, m[DRAM] - m[P_DRAM_LATENCY] * ONE)
    return accepted


# --- L1 and the load/store unit ----------------------------------------------------------------------------------


@njit(_nrt=False)
def _miss(
    m: Any, lines: Any, l2: Any, ends: Any, mshr: Any, time: int, line: int, sectors: int, wait: int, atomic: bool
) -> int:
    """Take the MSHR that is free first and hold it until the data is there. m[NOW]: when the unit went on.

    `mshr` is a ring in order of release, so a new one usually goes to the end.
    """
    head = m[MSHR_HEAD]
    time = max(time, mshr[head] * ONE)
    m[NOW] = time
    done = _l2_read(m, lines, l2, ends, time, line, sectors, wait, atomic)
    size = len(mshr)
    place = head
    for _ in range(size - 1):
        before = place - 1 if place > 0 else size - 1
        if mshr[before] <= done:
            break
        mshr[place] = mshr[before]
        place = before
    mshr[place] = done
    m[MSHR_HEAD] = head + 1 if head + 1 < size else 0
    return done


@njit(_nrt=False)
def _load(
    m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, mshr: Any, time: int, line: int, sectors: int,
    cached: bool,
) -> int:  # fmt: skip
    """Cycle of arrival of one transaction. m[NOW]: when it left the load/store unit."""
    m[NOW] = time
    done = whole(time) + m[P_L1_LATENCY]
    if line < 0:
        m[C_L1] += popcount(sectors)
        if line == FORCED_L1:
            m[C_L1_HIT] += popcount(sectors)
            return done
    if line < 0 or not cached:
        if m[P_PERFECT]:
            return done
        return _miss(m, lines, l2, l2_ends, mshr, time, line, sectors, 0, False)
    group = m[P_L1_GROUP]
    if group > 1:
        wanted, sectors = sectors, 0
        for first in range(0, 8, group):
            mask = ((1 << group) - 1) << first
            if wanted & mask:
                sectors |= mask
    at, node = lines[line, L1_SET], np.int64(lines[line, L1_NODE])
    missing = sectors
    if node >= 0:
        missing &= ~l1[node, VALID]
        if not m[P_L1_FIFO]:
            _renew(l1, l1_ends, at, node)
    have = sectors & ~missing
    m[C_L1] += popcount(sectors) // group
    m[C_L1_HIT] += popcount(have) // group
    if have and (have & l1[node, FILLING]) and l1[node, FILL] > time >> FRACTION:
        if l1[node, MERGED] >= m[P_MERGES]:
            time = max(time, l1[node, FILL] * ONE)
            m[NOW] = time
            done = whole(time) + m[P_L1_LATENCY]
        else:
            l1[node, MERGED] += 1
            done = max(done, l1[node, FILL])
    if missing:
        if node < 0:
            node = _l1_place(m, lines, l1, l1_ends, l2, l2_ends, time, line)
        if m[P_PERFECT]:
            l1[node, VALID] |= missing
        else:
            arrived = _miss(m, lines, l2, l2_ends, mshr, time, line, missing, 0, False)
            now = m[NOW] >> FRACTION
            if l1[node, FILL] <= now:
                l1[node, MERGED] = 0
            l1[node, MERGED] += 1
            _request(l1, node, now, arrived, missing)
            done = max(done, arrived)
    return done


@njit(_nrt=False)
def _l1_place(m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, time: int, line: int) -> int:
    """An L1 node for `line`; dirty sectors of the line it replaces go to the L2."""
    at = lines[line, L1_SET]
    node = np.int64(l1_ends[at, VICTIM])
    victim, dirty = l1[node, LINE], l1[node, DIRTY]
    if victim >= 0 and dirty != 0 and m[P_PERFECT] == 0:
        _l2_write(m, lines, l2, l2_ends, time, victim, dirty)
    _claim(l1, l1_ends, lines, L1_NODE, at, node, line)
    return node


@njit(_nrt=False)
def _store(
    m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, time: int, line: int, sectors: int, cached: bool
) -> int:
    """Server time at which the store is accepted below."""
    send = m[P_PERFECT] == 0
    if line == FORCED_L1 and m[P_L1_WRITE] == WRITE_BACK:
        send = False
    if line >= 0 and cached:
        at, node = lines[line, L1_SET], np.int64(lines[line, L1_NODE])
        if m[P_L1_WRITE] == WRITE_EVICT:
            if node >= 0:
                lines[line, L1_NODE] = -1
                _drop(l1, l1_ends, at, node)
        else:
            if node >= 0:
                if not m[P_L1_FIFO]:
                    _renew(l1, l1_ends, at, node)
            elif m[P_L1_ALLOCATE]:
                node = _l1_place(m, lines, l1, l1_ends, l2, l2_ends, time, line)
            if node >= 0:
                l1[node, VALID] |= sectors
                if m[P_L1_WRITE] == WRITE_BACK:
                    l1[node, DIRTY] |= sectors
                    send = False
    if not send:
        return 0
    return _l2_write(m, lines, l2, l2_ends, time, line, sectors)


@njit(_nrt=False)
def _atomic(
    m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, mshr: Any, time: int, line: int, sectors: int,
    cached: bool, wait: int,
) -> int:  # fmt: skip
    """Cycle of arrival of one transaction of an atomic."""
    m[NOW] = time
    if line >= 0 and cached and lines[line, L1_NODE] >= 0:
        node = np.int64(lines[line, L1_NODE])
        lines[line, L1_NODE] = -1
        _drop(l1, l1_ends, lines[line, L1_SET], node)
    if m[P_PERFECT]:
        return whole(time + wait) + m[P_L1_LATENCY]
    m[OUTWARD] = max(m[OUTWARD], time) + popcount(sectors) * m[P_ICNT]
    return _miss(m, lines, l2, l2_ends, mshr, time, line, sectors, wait, True)


@njit(_nrt=False)
def _leave_queue(m: Any, queue: Any, cycle: int) -> int:
    """Note when this operation's queue place becomes free; returns the cycle from which the queue has a place."""
    cycle = max(cycle, m[LAST_RELEASE])
    m[LAST_RELEASE] = cycle
    head = m[QUEUE_HEAD]
    queue[head] = cycle
    head = head + 1 if head + 1 < m[P_QUEUE] else 0
    m[QUEUE_HEAD] = head
    return queue[head]


@njit(_nrt=False)
def issue_shared(m: Any, queue: Any, cycle: int, passes: int) -> tuple[int, int]:
    """A shared-memory operation issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    start = max(cycle * ONE, m[LSU])
    m[C_PASSES] += passes
    m[C_SHARED] += 1
    m[LSU] = start + passes * ONE
    place = _leave_queue(m, queue, whole(m[LSU]))
    return whole(start) + max(passes - 1, 0) + m[P_SHARED], place


@njit(_nrt=False)
def issue_global(
    kind: int, cached: bool, cycle: int, first: int, last: int, cycles: int, updates: int, tx_line: Any, tx_sectors: Any,
    m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, mshr: Any, queue: Any,
) -> tuple[int, int]:  # fmt: skip
    """A load, store or atomic issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    start = max(cycle * ONE, m[LSU])
    time, done, posted, wait = start, whole(start) + m[P_L1_LATENCY], 0, 0
    if kind == KIND_ATOMIC and last > first:
        wait = max(0, m[ATOMIC] - start) + (updates - 1) * m[P_ATOMIC]
        m[ATOMIC] = max(m[ATOMIC], start) + updates * m[P_ATOMIC]
    for index in range(first, last):
        line, sectors = np.int64(tx_line[index]), np.int64(tx_sectors[index])
        if index > first:
            time += m[P_TX]
        if kind == KIND_LOAD:
            done = max(done, _load(m, lines, l1, l1_ends, l2, l2_ends, mshr, time, line, sectors, cached))
            time = m[NOW]
        elif kind == KIND_ATOMIC:
            arrived = _atomic(m, lines, l1, l1_ends, l2, l2_ends, mshr, time, line, sectors, cached, wait)
            done = max(done, arrived)
            time = m[NOW]
        else:
            posted = max(posted, _store(m, lines, l1, l1_ends, l2, l2_ends, time, line, sectors, cached))
    count = last - first
    rest = cycles * ONE - max(count - 1, 0) * m[P_TX]
    if count:
        rest = max(rest, m[P_TX])
    m[LSU] = time + max(rest, 0)
    place = _leave_queue(m, queue, whole(max(m[LSU], posted)))
    return (done if kind == KIND_LOAD or kind == KIND_ATOMIC else cycle), place
