"""The memory system of the plain reference: dictionaries and lists, one function a step. See README.md, "Memory"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppt_gpu.sm.program.machine import (
    COUNTERS,
    DRAM_QUIET,
    DRAM_READ,
    DRAM_WRITE,
    FRACTION,
    L1_ACCESSES,
    L1_HITS,
    L2_ACCESSES,
    L2_HITS,
    L2_READ,
    L2_WRITE,
    ONE,
    SHARED_ACCESSES,
    SHARED_PASSES,
    WRITE_BACK,
    WRITE_EVICT,
    Machine,
    even_sets,
    keeps_stores,
    set_index,
    uses_l1,
)  # fmt: skip
from ppt_gpu.sm.program.program import (
    FORCED_DRAM,
    FORCED_L1,
    KIND_ATOMIC,
    KIND_LOAD,
    KIND_SHARED,
    Program,
    copies_of,
    posted_by,
)


def whole(time: int) -> int:
    """Server time to the next whole cycle."""
    return -(-time >> FRACTION)


@dataclass
class Line:
    """A cached line; masks have one bit a sector. `fill`: cycle at which the sectors of `filling` arrive."""

    line: int
    valid: int = 0
    near: int = 0  # sectors that the part of the L2 next to the SM has
    dirty: int = 0
    fill: int = 0
    filling: int = 0
    merged: int = 0  # requests that the pending fill serves
    fresh: bool = False  # stands in a way never used before

    def request(self, now: int, done: int, sectors: int) -> None:
        """`sectors` are on their way and arrive at `done`."""
        pending = self.fill > now
        self.filling = (self.filling if pending else 0) | sectors
        self.fill = max(self.fill, done)
        self.valid |= sectors


class Tags:
    """A set-associative tag store; every set is a list, next victim first."""

    def __init__(self, sets: int, ways: int, fifo: bool) -> None:
        self.sets: list[list[Line]] = [[] for _ in range(sets)]
        self.ways, self.fifo = ways, fifo

    def find(self, at: int, line: int) -> Line | None:
        for entry in self.sets[at]:
            if entry.line == line:
                if not self.fifo:
                    self.sets[at].remove(entry)
                    self.sets[at].append(entry)
                return entry
        return None

    def allocate(self, at: int, line: int, which: int = 0) -> tuple[Line, Line | None]:
        """A new entry, and the line that it replaced, if all ways have one: the next victim, or another."""
        victim = self.sets[at].pop(which) if len(self.sets[at]) == self.ways else None
        entry = Line(line, fresh=victim is None)
        self.sets[at].append(entry)
        return entry, victim

    def drop(self, at: int, line: int) -> None:
        self.sets[at] = [entry for entry in self.sets[at] if entry.line != line]


class Memory:
    """Everything behind the issue of a memory operation. Times inside are in 1/65536 cycle."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self.program, self.m = program, machine
        self.l1 = Tags(machine.l1_sets, machine.l1_ways, machine.l1_fifo)
        self.l2 = Tags(machine.l2_sets, machine.l2_ways, machine.l2_fifo)
        self.l1_set = set_index(program, machine.l1_sets, machine.l1_index)
        self.l2_set = even_sets(program, machine.l2_sets)
        self.op_l1, self.op_copies = uses_l1(program, machine), copies_of(program)
        self.op_keeps, self.op_posted = keeps_stores(program, machine), posted_by(program)
        self.warm = dict(enumerate(program.line_warm.tolist()))
        self.coming = dict(enumerate(program.line_coming.tolist()))
        self.kept = set(np.flatnonzero(program.line_kept).tolist())
        self.mshr_release = [0] * machine.mshrs  # cycles
        self.lsu = self.l2_server = self.inward = self.outward = self.atomic = 0
        self.dram = -machine.dram_left
        self.requests = self.returns = self.copier = 0
        self.dirty_rest = 0
        self.releases: list[int] = []  # cycles at which places of the load/store queue become free
        self.counters = [0] * len(COUNTERS)

    def queue_full(self, cycle: int) -> bool:
        return sum(release > cycle for release in self.releases) >= self.m.queue

    def idle(self) -> int:
        """The cycle from which no server is busy."""
        below = (self.l2_server, self.inward, self.outward, self.dram, self.atomic)
        return whole(max(self.lsu, self.copier, self.requests, self.returns, *below))

    # --- the load/store unit ---------------------------------------------------------------------------------

    def issue(self, cycle: int, op: int, access: int) -> int:
        """A memory operation issued in `cycle`: cycle at which its result is there."""
        kind = int(self.program.op_kind[op])
        cycles = int(self.program.access_cycles[access])
        start = max(cycle * ONE, self.lsu)
        if kind == KIND_SHARED:
            self.counters[SHARED_PASSES] += cycles
            self.counters[SHARED_ACCESSES] += 1
            self.lsu = start + cycles * ONE
            self._release(whole(self.lsu))
            return whole(start) + max(cycles - 1, 0) + self.m.shared_latency
        first, last = (int(x) for x in self.program.access_start[access : access + 2])
        if self.op_copies[op]:
            return self._copy(cycle, first, last)
        cached = bool(self.op_l1[op])
        time, done, posted = start, whole(start) + self.m.l1_latency, -1
        conflict = self._same_address(start, access) if kind == KIND_ATOMIC and last > first else 0
        for index in range(first, last):
            line, sectors = int(self.program.tx_line[index]), int(self.program.tx_sectors[index])
            if index > first:
                time += self.m.tx_cost
            if kind == KIND_LOAD:
                time, arrived = self._load(time, line, sectors, cached)
                done = max(done, arrived)
            elif kind == KIND_ATOMIC:
                time, arrived = self._atomic(time, line, sectors, cached, conflict)
                done = max(done, arrived)
            else:
                time, accepted = self._store(time, line, sectors, cached, bool(self.op_keeps[op]))
                posted = max(posted, accepted)
        count = last - first
        rest = cycles * ONE - max(count - 1, 0) * self.m.tx_cost
        self.lsu = time + max(rest, self.m.tx_cost if count else 0)
        self._release(whole(max(self.lsu, posted)))
        if kind == KIND_LOAD or (kind == KIND_ATOMIC and not (self.op_posted[op] and not self.m.store_ack)):
            return done
        if not self.m.store_ack:
            return cycle + self.m.store_latency
        return cycle if posted < 0 else whole(posted) + self._round_trip()

    def _copy(self, cycle: int, first: int, last: int) -> int:
        """A load that the copy engine does: cycle at which its last sector is there."""
        time = max(cycle * ONE, self.copier)
        done = whole(time) + self.m.l1_latency
        for index in range(first, last):
            line, sectors = int(self.program.tx_line[index]), int(self.program.tx_sectors[index])
            if line == FORCED_L1:
                arrived = whole(time) + self.m.l1_latency
            elif self.m.perfect:
                time, arrived = self._perfect_miss(time, sectors)
            else:
                time, leaving = self._leave(time, sectors)
                wait = max(leaving, self._return(time, sectors))
                arrived = self._l2_read(time, line, sectors, wait, False)
            done = max(done, arrived)
            time += self.m.tx_cost
        self.copier = time
        return done

    def constant(self, cycle: int) -> int:
        """A constant read that passes the load/store unit: the cycle in which it does."""
        start = max(cycle * ONE, self.lsu)
        self.lsu = start + ONE
        self._release(whole(self.lsu))
        return whole(start)

    def _round_trip(self) -> int:
        """Cycles from a request that finds everything idle to its answer from the L2."""
        return self.m.l1_latency + self.m.miss_latency if self.m.perfect else self.m.l2_latency

    def _release(self, cycle: int) -> None:
        """Places of the queue become free in order."""
        self.releases.append(max(cycle, self.releases[-1] if self.releases else 0))
        del self.releases[: -self.m.queue]

    def _same_address(self, time: int, access: int) -> int:
        """Wait that updates of one address cause: for earlier operations, and for one another."""
        updates = int(self.program.access_atomic[access]) if len(self.program.access_atomic) else 1
        wait = max(0, self.atomic - time)
        self.atomic = max(self.atomic, time) + updates * self.m.atomic_busy
        return wait + (updates - 1) * self.m.atomic_cost

    # --- in and out of the SM ----------------------------------------------------------------------------------

    def _leave(self, time: int, sectors: int) -> tuple[int, int]:
        """Send the requests of a transaction: (when the load/store unit can go on, wait of the last request)."""
        cost = self.m.request_cost
        if cost == 0:
            return time, 0
        time = max(time, self.requests - self.m.request_queue * cost)
        self.requests = max(self.requests, time) + self._l1_sectors(sectors) * cost
        return time, max(self.requests - cost - time, 0)

    def _return(self, time: int, sectors: int) -> int:
        """Wait of the last sector for the port through which data come back to the warps."""
        cost = self.m.request_cost
        if cost == 0:
            return 0
        self.returns = max(self.returns, time) + self._l1_sectors(sectors) * cost
        return max(self.returns - cost - time, 0)

    def _l1_sectors(self, sectors: int) -> int:
        return -(-sectors.bit_count() // self.m.l1_group)

    # --- L1 --------------------------------------------------------------------------------------------------

    def _load(self, time: int, line: int, sectors: int, cached: bool) -> tuple[int, int]:
        """One transaction: (when it left the load/store unit, cycle of arrival)."""
        m = self.m
        if line < 0:
            self.counters[L1_ACCESSES] += sectors.bit_count()
            if line == FORCED_L1:
                self.counters[L1_HITS] += sectors.bit_count()
                return time, whole(time) + m.l1_latency
        if line < 0 or not cached:
            return self._perfect_miss(time, sectors) if m.perfect else self._miss(time, line, sectors)
        sectors = self._whole_l1_sectors(sectors)
        entry = self.l1.find(self.l1_set[line], line)
        missing = sectors & ~(entry.valid if entry else 0)
        self.counters[L1_ACCESSES] += sectors.bit_count() // m.l1_group
        self.counters[L1_HITS] += (sectors & ~missing).bit_count() // m.l1_group
        done = 0
        if entry and sectors & entry.filling & ~missing and entry.fill > time >> FRACTION:
            if entry.merged >= m.merges:
                time = max(time, entry.fill * ONE)
            else:
                entry.merged += 1
                wait = self._return(time, sectors & entry.filling & ~missing)
                done = max(entry.fill, whole(time + wait) + m.l1_latency)
        done = max(done, whole(time) + m.l1_latency)
        if not missing:
            return time, done
        if entry is None:
            time = self._reserved(time, line)
            entry, victim = self.l1.allocate(self.l1_set[line], line, self._victim(time, line))
            if victim and victim.dirty and not m.perfect:
                self._l2_write(time, victim.line, victim.dirty)
        time, arrived = self._perfect_miss(time, missing) if m.perfect else self._miss(time, line, missing)
        if entry.fill <= time >> FRACTION:
            entry.merged = 0
        entry.merged += 1
        entry.request(time >> FRACTION, arrived, missing)
        return time, max(done, arrived)

    def _reserved(self, time: int, line: int) -> int:
        """When a missing line gets a place in the L1, where lines on their way are not replaced: as it leaves."""
        m, lines = self.m, self.l1.sets[self.l1_set[line]]
        if not m.l1_reserves:
            return time
        if len(lines) == self.l1.ways:
            time = max(time, min(entry.fill for entry in lines) * ONE)
        if m.perfect:
            return time
        time = max(time, min(self.mshr_release) * ONE)
        return max(time, self.requests - m.request_queue * m.request_cost) if m.request_cost else time

    def _victim(self, time: int, line: int) -> int:
        """The place of the line that goes, in its full set: the next one, that is not on its way where that counts."""
        lines = self.l1.sets[self.l1_set[line]]
        there = (place for place, entry in enumerate(lines) if entry.fill <= time >> FRACTION)
        return next(there, len(lines) - 1) if self.m.l1_reserves else 0

    def _whole_l1_sectors(self, sectors: int) -> int:
        group, result = self.m.l1_group, 0
        for first in range(0, 8, group):
            mask = ((1 << group) - 1) << first
            result |= mask if sectors & mask else 0
        return result

    def _perfect_miss(self, time: int, sectors: int, wait: int = 0) -> tuple[int, int]:
        """As `_miss`, where everything below the L1 is perfect."""
        time, leaving = self._leave(time, sectors)
        wait = max(wait, leaving, self._return(time, sectors))
        return time, whole(time + wait) + self._round_trip()

    def _miss(self, time: int, line: int, sectors: int, wait: int = 0, atomic: bool = False) -> tuple[int, int]:
        """Take the MSHR that is free first, hold it until the data is there."""
        earliest = min(range(self.m.mshrs), key=self.mshr_release.__getitem__)
        time = max(time, self.mshr_release[earliest] * ONE)
        time, leaving = self._leave(time, sectors)
        wait = max(wait, leaving, self._return(time, sectors))
        done = self._l2_read(time, line, sectors, wait, atomic)
        self.mshr_release[earliest] = done
        return time, done

    def _store(self, time: int, line: int, sectors: int, cached: bool, keeps: bool) -> tuple[int, int]:
        """(When it left the load/store unit, server time at which it is accepted below, -1 when it stays in the L1)."""
        m = self.m
        back = m.l1_write == WRITE_BACK or keeps
        if line == FORCED_L1 and back:
            return time, -1
        if line >= 0 and cached:
            if m.l1_write == WRITE_EVICT and not back:
                self.l1.drop(self.l1_set[line], line)
            else:
                entry = self.l1.find(self.l1_set[line], line)
                if entry is None and m.l1_allocate:
                    entry, victim = self.l1.allocate(self.l1_set[line], line, self._victim(time, line))
                    if victim and victim.dirty and not m.perfect:
                        self._l2_write(time, victim.line, victim.dirty)
                if entry:
                    entry.valid |= sectors
                    if back:
                        entry.dirty |= sectors
                        return time, -1
        time, wait = self._leave(time, sectors)
        return time, max(time + wait, 0 if m.perfect else self._l2_write(time, line, sectors))

    def _atomic(self, time: int, line: int, sectors: int, cached: bool, wait: int) -> tuple[int, int]:
        if line >= 0 and cached:
            self.l1.drop(self.l1_set[line], line)
        if self.m.perfect:
            return self._perfect_miss(time, sectors, wait)
        self.outward = max(self.outward, time) + sectors.bit_count() * self.m.icnt_cost
        return self._miss(time, line, sectors, wait, True)

    # --- L2, interconnect, DRAM ------------------------------------------------------------------------------

    def _l2_read(self, time: int, line: int, sectors: int, wait: int, atomic: bool) -> int:
        """Cycle at which the data of a load or atomic is back at the SM."""
        m, count = self.m, sectors.bit_count()
        self.counters[L2_ACCESSES] += count
        self.counters[L2_READ] += count * m.sector_bytes
        wait = max(wait, self.l2_server - time, self.inward - time)
        self.l2_server = max(self.l2_server, time) + count * m.l2_cost
        self.inward = max(self.inward, time) + count * m.icnt_cost
        latency = m.l2_latency + (m.l2_far if self._l2_comes_from_far(line, sectors) else 0)
        entry, missing, coming = self._l2_look_up(line, sectors)
        late = missing | coming
        if late:
            latency = m.dram_latency + self._dram_loaded(time)
            wait = max(wait, self.dram - time)
        if missing:
            absent = missing.bit_count()
            self._dram_busy(time, absent, self.counters[DRAM_WRITE])
            self.counters[DRAM_READ] += absent * m.dram_group * m.sector_bytes
        done = whole(time + wait) + latency
        if line < 0:
            return done
        if entry is None:
            entry = self._l2_allocate(time, line)
        elif sectors & entry.filling & ~late and entry.fill > time >> FRACTION:
            done = max(done, entry.fill)
        self._l2_fresh(time, entry, sectors)
        if late:
            entry.request(time >> FRACTION, done, late)
        entry.valid |= sectors
        entry.near |= sectors
        entry.dirty |= sectors if atomic and line not in self.kept else 0
        return done

    def _l2_write(self, time: int, line: int, sectors: int) -> int:
        """Server time at which L2 (and DRAM, a latency's worth of writes ahead) has accepted the sectors."""
        m, count = self.m, sectors.bit_count()
        self.counters[L2_ACCESSES] += count
        self.counters[L2_WRITE] += count * m.sector_bytes
        self.outward = max(self.outward, time) + count * m.icnt_cost
        self.l2_server = max(self.l2_server, time) + count * m.l2_write_cost
        dram = self.dram
        self._l2_comes_from_far(line, sectors)
        entry, missing, _ = self._l2_look_up(line, sectors)
        keep = m.l2_back and (m.l2_allocate or not missing)
        if not keep or (line < 0 and missing):
            self._dram_write(time, count)
        if line >= 0 and (entry or m.l2_allocate):
            if entry is None:
                entry = self._l2_allocate(time, line)
            self._l2_fresh(time, entry, sectors)
            entry.valid |= sectors
            entry.near |= sectors
            if keep and line not in self.kept:
                entry.dirty |= sectors
        accepted = max(self.outward, self.l2_server)
        return accepted if self.dram == dram else max(accepted, self.dram - m.dram_latency * ONE)

    def _l2_comes_from_far(self, line: int, sectors: int) -> bool:
        """Does the L2 have some of the sectors, but not its part next to the SM, where the lines used last are?"""
        used = [] if line < 0 else self.l2.sets[self.l2_set[line]]
        for newer, entry in enumerate(reversed(used)):
            if entry.line == line:
                entry.near &= -1 if newer < self.m.l2_near else 0
                return sectors & entry.valid & ~entry.near != 0
        return False

    def _l2_look_up(self, line: int, sectors: int) -> tuple[Line | None, int, int]:
        """The entry, the sectors that it lacks, and those that others fetch right now.

        A sector that somebody else brought or fetches counts as there, once."""
        coming = 0
        if line < 0:
            missing = sectors if line == FORCED_DRAM else 0
            entry = None
        else:
            entry = self.l2.find(self.l2_set[line], line)
            missing = sectors & ~(entry.valid if entry else 0)
            warm = self.warm.get(line, 0)
            coming = self.coming.get(line, 0) & missing & warm
            self.warm[line] = warm if line in self.kept else warm & ~sectors
            self.coming[line] = self.coming.get(line, 0) & ~sectors
            missing &= ~warm
        self.counters[L2_HITS] += (sectors & ~missing).bit_count()
        return entry, missing, coming

    def _l2_allocate(self, time: int, line: int) -> Line:
        entry, victim = self.l2.allocate(self.l2_set[line], line)
        if victim and victim.dirty:
            self._dram_write(time, victim.dirty.bit_count())
        return entry

    def _l2_fresh(self, time: int, entry: Line, sectors: int) -> None:
        """In the steady state the way held somebody's sectors, a share of them dirty."""
        if entry.fresh:
            self.dirty_rest += (sectors & ~entry.valid).bit_count() * self.m.dirty
            count = (self.dirty_rest >> FRACTION) // self.m.dram_group * self.m.dram_group
            self._dram_write(time, count)
            self.dirty_rest -= count << FRACTION

    def _dram_write(self, time: int, count: int) -> None:
        """DRAM takes `count` sectors of a line."""
        if count:
            bursts = -(-count // self.m.dram_group)
            self._dram_busy(time, bursts, self.counters[DRAM_READ])
            self.counters[DRAM_WRITE] += bursts * self.m.dram_group * self.m.sector_bytes

    def _dram_busy(self, time: int, count: int, others: int) -> None:
        """DRAM serves `count` bursts in one direction; `others`: bytes that it has moved in the other one."""
        all_bytes = self.counters[DRAM_READ] + self.counters[DRAM_WRITE]
        cost = count * self.m.dram_cost + (count * self.m.dram_turn * others // all_bytes if others else 0)
        self.dram = max(self.dram, time - self.m.dram_ahead) + cost

    def _dram_loaded(self, time: int) -> int:
        """Cycles by which a read is later because of what else DRAM does."""
        moved, written = self.counters[DRAM_READ] + self.counters[DRAM_WRITE], self.counters[DRAM_WRITE]
        if not moved:
            return 0
        work = moved // (self.m.sector_bytes * self.m.dram_group) * self.m.dram_work
        used = min(work * 1024 // (time + DRAM_QUIET * ONE), 1024)
        writes = written * 1024 // moved
        return self.m.dram_loaded * (1024**2 + 4 * writes * (1024 - writes)) * used**2 >> 40
