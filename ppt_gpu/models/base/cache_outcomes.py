"""Functional simulation of L1 and L2: which level answers each memory operation, without time.

The input collector of GPUMech (paper 000, section V-A): the resident warps take turns, one memory operation each; a
block that is done makes place for the next. Caches, sectors and write policies are those of the simulator
(ppt_gpu/sm/README.md, "Memory"): the L1 of one SM and its slice of the L2, in which lines that other SMs or the host
brought are warm. A hit on a line that is still on its way, which takes time to see, is a hit here.

In the compiled loop a cache is four flat arrays, [sets x ways]: line (-1: empty), valid and dirty sector masks, and a
stamp: the last use, or with first-in-first-out replacement the arrival. The way with the smallest stamp is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import entry, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.models.base.access_stream import caches_of
from ppt_gpu.models.base.warp_streams import WarpStreams
from ppt_gpu.sm.loop.memory import IN_LOCAL, WAY, l1_way
from ppt_gpu.sm.program.machine import FRACTION, ONE, WRITE_BACK, WRITE_EVICT, Machine, even_sets, set_index
from ppt_gpu.sm.program.program import FORCED_DRAM, FORCED_L1, KIND_ATOMIC, KIND_LOAD, KIND_STORE, Program

_L1, _L2, _DRAM = range(1, 4)  # ppt_gpu.models.base.cache_outcomes.LEVELS
#: positions in the array of integers that the loop gets; CLOCK counts transactions, REST fractions of a sector
(
    RESIDENT, L1_WAYS, L1_FIFO, L1_WRITE, L1_ALLOCATE, L1_GROUP, L2_WAYS, L2_FIFO, L2_BACK, L2_ALLOCATE, DIRTY, PERFECT,
    CLOCK, REST,
) = range(14)  # fmt: skip


class _Cache(NamedTuple):
    """A cache: the set of each line, and of each place the line (-1: none), masks of sectors, and a stamp."""

    sets: NDArray[np.int32]  # [L]
    tag: Words
    valid: Words
    dirty: Words
    stamp: Words

    @staticmethod
    def of(sets: NDArray[np.int32], places: int) -> _Cache:
        """An empty one."""
        return _Cache(sets, np.full(places, -1, np.int64), *np.zeros((3, places), np.int64))


class _InL2(NamedTuple):
    """What else is in the L2."""

    fresh: Words  # by place: it was never used before
    warm: Words  # [L] masks of the sectors that are there before this SM first asks
    kept: Words  # [L] lines that the uses of others keep there


class _Asked(NamedTuple):
    """The memory operations of the program."""

    block_warp: Words
    warp_access: Words
    access_start: Words
    tx_line: NDArray[np.int32]
    tx_sectors: NDArray[np.uint8]
    ops: Words  # [M] operation
    kind: Words  # [O] KIND_LOAD, KIND_STORE, KIND_ATOMIC; -1: not looked at
    cached: Words  # [O] its way to the L1 (`loop.memory.l1_way`)


class Found(NamedTuple):
    """What `walk` finds, as of CacheOutcomes; totals [3]: L1 sectors, L1 hits, DRAM writes."""

    level: NDArray[np.uint8]
    fetched: NDArray[np.int32]
    l2_sectors: NDArray[np.int32]
    dram_read: NDArray[np.int32]
    written: NDArray[np.int32]
    totals: Words


def walk(
    program: Program,
    machine: Machine,
    ops: Words,
    kind: Words,
    cached: Words,
    resident: int,
    l1_set: NDArray[np.int32],
    l2_set: NDArray[np.int32],
    found: Found,
) -> None:
    """Fill `found`.

    ops [M]: the operation of each memory entry. kind [O]: KIND_LOAD, KIND_STORE, KIND_ATOMIC; -1: not looked at.
    cached [O]: its way to the L1 (`loop.memory.l1_way`).
    """
    m = machine
    numbers = (
        resident, m.l1_ways, m.l1_fifo, m.l1_write, m.l1_allocate, m.l1_group, m.l2_ways, m.l2_fifo, m.l2_back,
        m.l2_allocate, m.dirty, m.perfect, 0, 0,
    )  # fmt: skip
    places = m.l2_sets * m.l2_ways
    _walk(
        np.array(numbers, np.int64),
        _Asked(
            program.block_warp, program.warp_access, program.access_start, program.tx_line, program.tx_sectors, ops,
            kind, cached,
        ),
        _Cache.of(l1_set, m.l1_sets * m.l1_ways),
        _Cache.of(l2_set, places),
        _InL2(np.zeros(places, np.int64), program.line_warm.astype(np.int64), _kept(program)),
        program.warp_access[:-1].copy(), np.full(resident, -1, np.int64), np.zeros(2, np.int64), found,
    )  # fmt: skip


def _kept(program: Program) -> np.ndarray:
    """[L] lines that the uses of others keep in the L2."""
    return program.line_kept.astype(np.int64) if len(program.line_kept) else np.zeros(len(program.line_warm), np.int64)


@merged
def _find(tags: np.ndarray, base: int, ways: int, line: int) -> int:
    """The place of `line` in the set that begins at `base`; -1: not there."""
    found = -1
    for way in range(base, base + ways):
        if tags[way] == line:
            found = way
    return found


@merged
def _victim(tags: np.ndarray, stamps: np.ndarray, base: int, ways: int) -> int:
    """The place that a new line takes: an empty one, else that with the smallest stamp."""
    best = base
    for way in range(base, base + ways):
        if tags[way] < 0:
            best = way
            break
        if stamps[way] < stamps[best]:
            best = way
    return best


@merged
def _below_l1(
    numbers: Words, kind: int, cached: int, line: int, sectors: int, l1: _Cache, totals: Words, pushed: Words
) -> int:
    """The sectors of one transaction that go below the L1. pushed [2]: line and sectors that the L1 writes back."""
    sets, tag, valid, dirty, stamp = l1
    pushed[1] = 0
    ways, group = numbers[L1_WAYS], numbers[L1_GROUP]
    if kind == KIND_LOAD:
        if line >= 0 and cached:  # whole sectors of the L1
            for first in range(0, 8, group):
                mask = ((1 << group) - 1) << first
                if sectors & mask:
                    sectors |= mask
        if line < 0 or cached:
            totals[0] += popcount(sectors) // (1 if line < 0 else group)
        if line == FORCED_L1:
            totals[1] += popcount(sectors)
            return 0
    back = numbers[L1_WRITE] == WRITE_BACK or (numbers[L1_WRITE] == WRITE_EVICT and cached == IN_LOCAL)
    if kind == KIND_STORE and line == FORCED_L1 and back:
        return 0
    if line < 0 or not cached:
        return sectors
    base = sets[line] * ways
    at = _find(tag, base, ways, line)
    if kind == KIND_ATOMIC or (kind == KIND_STORE and numbers[L1_WRITE] == WRITE_EVICT and not back):
        if at >= 0:
            tag[at] = -1
        return sectors
    need = sectors
    if kind == KIND_LOAD:
        if at >= 0:
            need = sectors & ~valid[at]
        totals[1] += (popcount(sectors) - popcount(need)) // group
    if at < 0 and (kind == KIND_LOAD or numbers[L1_ALLOCATE]):
        at = _victim(tag, stamp, base, ways)
        if tag[at] >= 0:
            pushed[0], pushed[1] = tag[at], dirty[at]
        tag[at], valid[at], dirty[at], stamp[at] = line, 0, 0, numbers[CLOCK]
    if at >= 0:
        valid[at] |= sectors
        if not numbers[L1_FIFO]:
            stamp[at] = numbers[CLOCK]
        if kind == KIND_STORE and back:
            dirty[at] |= sectors
            need = 0
    return need


@merged
def _in_l2(
    numbers: Words, kind: int, line: int, sectors: int, l2: _Cache, lines: _InL2, found: Found, access: int
) -> int:
    """The sectors that the L2 lacks. Writes what goes to DRAM into totals[2], what will go there into `written`."""
    sets, tag, valid, dirty, stamp = l2
    fresh, warm, kept = lines
    written, totals = found.written, found.totals
    ways = numbers[L2_WAYS]
    at, missing, base = -1, 0, 0
    if line >= 0:
        base = sets[line] * ways
        at = _find(tag, base, ways, line)
        missing = sectors & ~warm[line]
        if at >= 0:
            missing &= ~valid[at]
        if kept[line] == 0:
            warm[line] &= ~sectors
    elif line == FORCED_DRAM:
        missing = sectors
    keep = numbers[L2_BACK] != 0 and (numbers[L2_ALLOCATE] != 0 or missing == 0)
    if kind == KIND_STORE and (not keep or (line < 0 and missing != 0)):
        totals[2] += popcount(sectors)
        written[access] += popcount(sectors)
    if line < 0 or (at < 0 and kind == KIND_STORE and numbers[L2_ALLOCATE] == 0):
        return missing
    if at < 0:
        at = _victim(tag, stamp, base, ways)
        totals[2] += popcount(dirty[at])
        fresh[at] = tag[at] < 0
        tag[at], valid[at], dirty[at], stamp[at] = line, 0, 0, numbers[CLOCK]
    if fresh[at]:  # in the steady state the place held somebody's sectors, a share of them dirty
        numbers[REST] += popcount(sectors & ~valid[at]) * numbers[DIRTY]
        totals[2] += numbers[REST] >> FRACTION
        numbers[REST] &= ONE - 1
    if not numbers[L2_FIFO]:
        stamp[at] = numbers[CLOCK]
    valid[at] |= sectors
    if kept[line] == 0 and (kind == KIND_ATOMIC or (kind == KIND_STORE and keep)):
        written[access] += popcount(sectors & ~dirty[at])
        dirty[at] |= sectors
    return missing


@entry
def _walk(
    numbers: Words, asks: _Asked, l1: _Cache, l2: _Cache, lines: _InL2, place: Words, slot_block: Words, pushed: Words,
    found: Found,
) -> None:  # fmt: skip
    """place [W]: the next memory entry of each warp; slot_block [resident]: the block in each slot, -1: none."""
    block_warp, warp_access, access_start, tx_line, tx_sectors, ops, kind, cached = asks
    blocks, following, running = len(block_warp) - 1, 0, True
    while running:
        running = False
        for slot in range(len(slot_block)):
            if slot_block[slot] < 0 and following < blocks:
                slot_block[slot] = following
                following += 1
            block, left = slot_block[slot], False
            if block < 0:
                continue
            for warp in range(block_warp[block], block_warp[block + 1]):
                access, end = place[warp], warp_access[warp + 1]
                while access < end and kind[ops[access]] < 0:
                    access += 1
                place[warp] = access + 1
                if access >= end:
                    continue
                left = True
                asked, in_l1 = kind[ops[access]], cached[ops[access]]
                for t in range(access_start[access], access_start[access + 1]):
                    line = int64(tx_line[t])
                    numbers[CLOCK] += 1
                    sectors = int64(tx_sectors[t])
                    need = _below_l1(numbers, asked, in_l1, line, sectors, l1, found.totals, pushed)
                    answer = _L1
                    if need and asked != KIND_STORE:
                        found.fetched[access] += 1
                        answer = _L2
                    if numbers[PERFECT]:
                        need = pushed[1] = 0
                    for part in range(2):
                        if part == 0:
                            below, sectors, does = pushed[0], pushed[1], int64(KIND_STORE)
                        else:
                            below, sectors, does = line, need, asked
                        if sectors == 0:
                            continue
                        found.l2_sectors[access] += popcount(sectors)
                        missing = _in_l2(numbers, does, below, sectors, l2, lines, found, access)
                        if missing and does != KIND_STORE:
                            found.dram_read[access] += popcount(missing)
                            answer = _DRAM
                    if asked != KIND_STORE and answer > found.level[access]:
                        found.level[access] = answer
            if left:
                running = True
            else:
                slot_block[slot] = -1
                running = running or following < blocks


#: who answers: nobody is asked (a store, an access without lanes), or the farthest of the levels asked
LEVELS = ("none", "L1", "L2", "DRAM")
NONE, L1, L2, DRAM = range(len(LEVELS))


@dataclass(frozen=True)
class CacheOutcomes:
    """Of the M memory entries and O static operations of the simulated blocks. Sectors are the program's."""

    entry_op: NDArray[np.int64]  # [M]
    level: NDArray[np.uint8]  # [M] the slowest answer to any of the transactions
    fetched_lines: NDArray[np.int32]  # [M] transactions of loads and atomics that the L1 does not answer: MSHRs
    l2_sectors: NDArray[np.int32]  # [M] sectors asked of or sent to the L2
    dram_read: NDArray[np.int32]  # [M] sectors that come from DRAM
    written: NDArray[np.int32]  # [M] sectors that will have to go to DRAM: newly dirty in the L2, or written through
    l1_sectors: int  # looked up
    l1_hits: int
    dram_write_sectors: int  # that went to DRAM while the blocks ran

    @property
    def write_back(self) -> float:
        """DRAM writes for each sector in `written`: below 1 while the L2 keeps them."""
        written = int(self.written.sum())
        return self.dram_write_sectors / written if written else 0.0


def cache_outcomes(inputs: WarpStreams) -> CacheOutcomes:
    """Run the memory operations of the simulated blocks through the caches of one SM."""
    program = inputs.program
    machine = caches_of(inputs)
    ops = entry_ops(program)
    return simulate_caches(program, machine, ops, inputs.resident_blocks)


def simulate_caches(program: Program, machine: Machine, ops: NDArray[np.int64], resident: int) -> CacheOutcomes:
    """ops [M]: the operation of each memory entry; resident: blocks that the SM holds at once."""
    asks = np.isin(program.op_kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC))
    kind = np.where(asks, program.op_kind, -1).astype(np.int64)
    fetched, below, read, written = np.zeros((4, len(ops)), np.int32)
    level, totals = np.zeros(len(ops), np.uint8), np.zeros(3, np.int64)
    walk(
        program, machine, ops, kind, l1_way(program, machine) & WAY, resident,
        set_index(program, machine.l1_sets, machine.l1_index), even_sets(program, machine.l2_sets),
        Found(level, fetched, below, read, written, totals),
    )  # fmt: skip
    return CacheOutcomes(ops, level, fetched, below, read, written, *(int(total) for total in totals))
