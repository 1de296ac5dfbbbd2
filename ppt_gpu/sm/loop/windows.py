"""Loop skipping on request, approximate: where two windows of time go alike, what follows is taken to go alike.

Exact skipping (loop.skip) needs a state that repeats. Where memory limits, or blocks shift against each other, none
does, though the SM does the same all the time. What repeats exactly is looked for first, since that is passed over to
the end of the loop; it is given up when some instructions have issued in vain.

Then time is cut into windows, each as long as it takes every warp to make some rounds of its loop. Where one issues as
much as those before, to ALIKE, and finds as much in the caches, all warps are moved on by as many whole rounds as they
make in several times what was simulated of these blocks; twice as far each time that the window after a skip is like
those before it. Times to come are later by that, as in loop.advance, and waits are charged as in the window.

The memory operations of the rounds pass the caches (loop.warm), part by part, and a skip ends with the first part that
finds another share there than the windows did. Where a part fills the caches anew, what passed before it does not
matter: then some parts after it are left out, and their counters are those of that part, scaled. Servers say how long
they take for all of it: if that is longer than the rounds take at the rate of the windows, the skip is as much longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.advance import move_ports, move_warp, wind
from ppt_gpu.sm.loop.memory import (
    ATOMIC,
    CODE_FILL,
    CONSTANTS,
    COPIER,
    DRAM,
    INWARD,
    L2_SERVER,
    LAST_RELEASE,
    LSU,
    MSHRS,
    OUTWARD,
    P_AHEAD,
    P_BYTES,
    QUEUE,
    REQUESTS,
    RETURNS,
    WAY_BITS,
    C,
    MemoryArrays,
)
from ppt_gpu.sm.loop.pack import KIND_AT, KIND_MASK, OP_AT, OP_MASK
from ppt_gpu.sm.loop.repeat import repeating
from ppt_gpu.sm.loop.replay import ANSWERED, FREELY
from ppt_gpu.sm.loop.skip import ALIKE as ENTRIES_ALIKE
from ppt_gpu.sm.loop.skip import FIRST_GAP, WORTH, Skipping, loop_length
from ppt_gpu.sm.loop.state import State, sm_at
from ppt_gpu.sm.loop.warm import pass_rounds
from ppt_gpu.sm.program import machine as cm
from ppt_gpu.sm.program.machine import FRACTION, NEVER, ONE
from ppt_gpu.sm.program.program import KIND_LOAD, KIND_SHARED

#: by how much what two windows issue in a cycle may differ
ALIKE = 0.02
#: by how much the shares of sectors that hit, miss, and come from DRAM may differ
SHARES_ALIKE = 0.02
#: rounds of the loop that each warp makes in a window, at least
ROUNDS = 2
FIRST_WINDOW, LONGEST_WINDOW = 512, 1 << 22  # cycles
#: variance of the rounds counted in a window that begins and ends anywhere in a round
PHASES = 1 / 6
#: what is skipped at first: so many times what was simulated of these blocks, at most; so many windows, at least
MOST, LEAST = 4, 0.5
#: parts in which the memory operations of a skip pass the caches
PARTS = 32
#: parts at most that are not put to the caches after one that was
LEAP = 3
#: what comes first, to see whether the caches answer as in the window: of what it asked for, one in so many
PROBE = 4
#: warp instructions in which nothing repeats, until windows are tried; after each time in vain, so much less often
HOPE, LEAST_HOPE, LESS = 1 << 15, 1 << 11, 4
_SERVERS = np.array([LSU, COPIER, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC, REQUESTS, RETURNS])


class _Pause(NamedTuple):
    """The SM at the beginning of a window."""

    now: int
    positions: NDArray[np.int64]  # [warp slots]
    charged: NDArray[np.int64]  # op_stall, then doubled
    counters: NDArray[np.int64]


class WindowSkipping:
    """Approximate loop skipping, where `loop.skip.Skipping` finds nothing."""

    def __init__(self, state: State, memory: MemoryArrays) -> None:
        program = state.program
        self.machine, self.packed, self.memory, self.state = state.machine, state.packed, memory, state
        self.exact = Skipping(state, memory)
        self.sm, self.track, self.warps = self.exact.sm, self.exact.track, self.exact.warps
        tables = state.tables(state.core)
        self.stall, self.doubled, self.scheds = tables["op_stall"], tables["doubled"], tables["scheds"]
        self.run: NDArray[np.int64] = np.zeros(3, np.int64)  # of loop.repeat
        self.hope = HOPE
        self.trying, self.tried_from = True, self.warps["pos"].copy()
        self.length, self.lag, self.most = FIRST_WINDOW, 0, MOST
        self.begin: _Pause | None = None
        self.blocks = 0  # launched and ended, at the beginning of the window
        self.rate, self.shares = 0.0, np.zeros(4)  # issues a cycle, and what caches hold, in windows that were alike
        self.time, self.moved = 0, np.zeros_like(self.tried_from)  # of windows alike of these blocks, and entries
        self.counted, self.windows, self.live = np.zeros_like(memory.counters()), 0, 0  # in them
        self.charged = np.zeros_like(self._charged())  # in them
        self.approximate = 0  # cycles
        self.estimated = 0  # memory operations of which the counters are those of others
        self.sectors = program.line_bytes // program.sector_bytes
        self.units = np.where([name.endswith("bytes") for name in cm.COUNTERS], int(memory.mem[P_BYTES]), 1)

    @property
    def skipped(self) -> int:
        """Cycles."""
        return self.approximate + self.exact.skipped

    def look_around(self, max_cycles: int) -> None:
        """At a pause: skip what repeats, or if the window that ends goes like those before; then another begins."""
        blocks = int(self.track["next_block"] + self.track["ended"])
        if self.trying:
            self._try_exact(max_cycles, blocks)
        elif blocks != self.blocks:
            self._forget()
            self.length = max(self.length // 2, FIRST_WINDOW)
            if self.hope >= LEAST_HOPE:
                self.trying, self.tried_from = True, self.warps["pos"].copy()
                self.exact.gap, self.track["look_at"] = FIRST_GAP, self.track["now"]
                self.exact.look_around(max_cycles)
            else:
                self._begin_window()
        elif self.begin is None or self.track["next_launch"] != NEVER or self._end_window(self.begin, max_cycles):
            self._begin_window()
        self.blocks = blocks

    def _try_exact(self, max_cycles: int, blocks: int) -> None:
        skipped, positions = self.exact.skipped, self.warps["pos"].copy()
        if blocks != self.blocks:
            self.tried_from = positions
        self.exact.look_around(max_cycles)
        if self.exact.skipped - skipped >= WORTH:
            self.tried_from, self.hope = self.warps["pos"].copy(), HOPE
        elif np.abs(positions - self.tried_from).sum() >= self.hope and self.track["mode"] != ANSWERED:
            self.hope //= LESS
            self.trying, self.track["mode"], self.track["target"] = False, FREELY, NEVER
            self._begin_window()

    def _begin_window(self) -> None:
        now = int(self.track["now"])
        self.begin = _Pause(now, self.warps["pos"].copy(), self._charged(), self.memory.counters())
        self.track["look_at"] = now + self.length

    def _end_window(self, begin: _Pause, max_cycles: int) -> bool:
        """Whether the window has ended: it goes on until all warps have made their rounds."""
        now, warps = int(self.track["now"]), self.warps
        alive = np.flatnonzero(self._alive())
        if len(alive) == 0 or not self._in_loop(int(warps["pos"][alive[0]])) or self._instructions_missed(begin.now):
            return True
        moved, time = (warps["pos"] - begin.positions)[alive], now - begin.now
        rounds = float(moved.min()) / self.lag
        if rounds < ROUNDS and time < LONGEST_WINDOW:
            self.length = min(int(time * min(1.1 * ROUNDS / max(rounds, 0.1), 4.0)), LONGEST_WINDOW)
            self.track["look_at"] = begin.now + self.length
            return False
        sector = int(self.memory.mem[P_BYTES])
        rate, counted = int(moved.sum()) / time, self.memory.counters() - begin.counters
        alike = (
            self.live in (0, len(alive))
            and abs(rate - self.rate) <= ALIKE * self.rate
            and _alike(_shares(counted, sector), self.shares)
        )
        if not alike:
            self._forget()
            self.most, self.length = MOST, min(2 * self.length, LONGEST_WINDOW)
        self.windows, self.live = self.windows + 1, len(alive)
        self.time += time
        self.moved[alive] += moved
        self.counted += counted
        self.charged += self._charged() - begin.charged
        self.rate, self.shares = int(self.moved[alive].sum()) / self.time, _shares(self.counted, sector)
        if alike:
            self.length = max(self.length // 2, FIRST_WINDOW)
            made, cycles = self._rounds(alive, max_cycles - 1 - now)
            if cycles >= LEAST * time and made.any():
                self._skip(alive, made, cycles)
        return True

    def _forget(self) -> None:
        """The windows before are not like those to come."""
        self.time, self.windows, self.moved[:], self.counted[:], self.charged[:] = 0, 0, 0, 0, 0

    def _in_loop(self, at: int) -> bool:
        """Are the entries from `at` on those of a loop, of the length found last or of another one?"""
        code, end = self.packed.code, at + ENTRIES_ALIKE
        if self.lag == 0 or not np.array_equal(code[at:end], code[at + self.lag : end + self.lag]):
            self.lag = loop_length(code, at)
        return self.lag > 0

    def _charged(self) -> NDArray[np.int64]:
        """op_stall, then doubled."""
        return np.concatenate((self.stall, self.doubled))

    def _instructions_missed(self, since: int) -> bool:
        """Have instruction lines, or the first constants, come?"""
        mem = self.memory.mem
        return bool(max(mem[CODE_FILL], mem[CONSTANTS]) > since)

    def _alive(self) -> NDArray[np.bool_]:
        """[warp slots] The warp has not exited."""
        k, places = self.machine.schedulers, np.arange(self.state.places)
        masks = self.scheds["alive"]
        return (masks[places % k] >> (places // k)) & 1 != 0

    def _rounds(self, alive: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], int]:
        """(rounds of each live warp, cycles) to skip. All warps of a block make as many, as they meet at barriers and
        use what others of them have brought."""
        left, lag = np.zeros(len(alive), np.int64), self.lag
        rounds_to_go(self.sm, alive, self.run, len(self.packed.code), lag, left)
        numbers, of_warp = np.unique(self.warps["block_slot"][alive], return_inverse=True)
        made = np.bincount(of_warp, weights=self.moved[alive]) / (np.bincount(of_warp) * lag)
        mean = self.moved[alive].sum() / (len(alive) * lag)
        varied = float(np.mean((made - mean) ** 2))
        made = mean + (made - mean) * max(0.0, 1 - PHASES * self.windows / varied if varied else 0.0)
        made[made < 1] = 0  # those that others hardly let on stay where they are
        limit = np.full(len(numbers), NEVER, np.int64)
        np.minimum.at(limit, of_warp, np.maximum(left, 0))
        going = made > 0
        if not going.any():
            return np.zeros(len(alive), np.int64), 0
        cycles = int(min((limit[going] * self.time / made[going]).min(), self.most * self.time, most))
        return np.minimum(np.rint(made * cycles / self.time).astype(np.int64), limit)[of_warp], cycles

    def _skip(self, alive: NDArray[np.int64], rounds: NDArray[np.int64], cycles: int) -> None:
        now = int(self.track["now"])
        going = rounds > 0
        warps = self.warps[alive[going]]
        words = self.packed.code[warps["pos"][:, None] + np.arange(self.lag)]
        kinds = (words >> KIND_AT) & KIND_MASK
        ways = self.packed.operations["way"][(words >> OP_AT) & OP_MASK]
        asks = (kinds >= KIND_LOAD) & (kinds <= KIND_SHARED)
        if len(set(asks.sum(axis=1).tolist())) > 1:  # loops as long as one another that are not the same
            return
        what = (kinds << WAY_BITS | ways)[asks].reshape(len(warps), -1)  # a round is the same from wherever it begins
        self.most *= 2
        if what.size:
            rounds[going], cycles = self._pass_memory(what, warps["access"].copy(), rounds[going], cycles)
        move_on(self.sm, alive, rounds * self.lag, rounds * what.shape[1], cycles, now)
        self._charge(int(rounds.sum()) * self.lag, len(alive) * cycles)
        self.approximate += cycles
        self.track["now"] = now + cycles

    def _pass_memory(
        self, what: NDArray[np.int64], first: NDArray[np.int64], rounds: NDArray[np.int64], cycles: int
    ) -> tuple[NDArray[np.int64], int]:
        """(rounds, cycles), at most as given, of which the memory operations find as much in the caches as those of the
        window did; at least one part of them. Servers have as much to do afterwards as now."""
        memory, mem, now = self.memory, self.memory.mem, int(self.track["now"])
        servers, ahead = mem[_SERVERS].copy(), np.where(_SERVERS == DRAM, mem[P_AHEAD], 0)
        start = np.maximum(servers, now * ONE - ahead)
        mem[_SERVERS] = start
        counters = mem[C : C + len(cm.COUNTERS)]
        turns, done, leap, leapt = int(rounds.max()), 0, 0, (0, 0)
        guessed, busier = np.zeros_like(counters), np.zeros_like(start)
        part = max(turns // PARTS, self._turns_to_forget(rounds, turns))
        probe = max(int(self.moved.max()) // (self.windows * self.lag) // PROBE, 1)
        while done < turns:
            before, busy = memory.counters(), mem[_SERVERS].copy()
            end = min(done + (part if done else probe), turns)
            pass_rounds(what, first, rounds, done, end, turns, memory.access, memory.tx, mem, now)
            found, made = counters - before, _made(rounds, done, end, turns)
            done = end
            if not _alike(_shares(found, int(mem[P_BYTES])), self.shares):
                self.most = MOST
                if done == probe:  # the order in which operations come here makes a difference: seldom, then
                    self.length = min(4 * self.length, LONGEST_WINDOW)
                if leapt[0] < leapt[1]:  # it may be so in what was not put to them: late, but nothing is left out
                    counters -= guessed
                    mem[_SERVERS] -= busier
                    self.estimated -= _made(rounds, *leapt, turns) * what.shape[1]
                    pass_rounds(what, first, rounds, *leapt, turns, memory.access, memory.tx, mem, now)
                break
            leap = min(leap + 1, LEAP) if done > probe and self._forgotten(found) else 0
            leapt = done, max(done, min(done + leap * part, turns - part))  # the last part always passes the caches
            more = _made(rounds, *leapt, turns)
            guessed = found // self.units * more // made * self.units
            busier = (mem[_SERVERS] - busy) * more // made
            counters += guessed
            mem[_SERVERS] += busier
            self.estimated += more * what.shape[1]
            done = leapt[1]
        work = int((mem[_SERVERS] - start).max())
        cycles = max(-(-cycles * done // turns), -(-work >> FRACTION))
        mem[_SERVERS] = servers + cycles * ONE
        for ring, size in ((MSHRS, self.machine.mshrs), (QUEUE, self.machine.queue)):
            mem[mem[ring] : mem[ring] + size] += cycles
        mem[LAST_RELEASE] += cycles
        return rounds * done // turns, cycles

    def _replaced(self, found: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of what `found` [COUNTERS] missed, how often it fills the L1 and the L2; infinite where nothing missed."""
        machine, times = self.machine, []
        for hits, all_, sets, ways, sector in (
            (cm.L1_HITS, cm.L1_ACCESSES, machine.l1_sets, machine.l1_ways, machine.l1_group),
            (cm.L2_HITS, cm.L2_ACCESSES, machine.l2_sets, machine.l2_ways, 1),
        ):
            missed = int(found[all_] - found[hits]) * sector
            times.append(missed / (sets * ways * self.sectors) if missed and sets * ways else np.inf)
        return np.array(times)

    def _forgotten(self, found: NDArray[np.int64]) -> bool:
        """Have the caches been filled anew, or has nothing come to them? Then it does not matter what passed before."""
        return bool((self._replaced(found) >= 1).all())

    def _turns_to_forget(self, rounds: NDArray[np.int64], turns: int) -> int:
        """How many turns fill the caches anew, at what the window missed; a window's at least."""
        assert self.begin is not None
        window = int((self.warps["pos"] - self.begin.positions).clip(0).sum()) / self.lag
        times = float(self._replaced(self.memory.counters() - self.begin.counters).min())
        needed = 1.1 * window / times if 0 < times < np.inf else 0.0
        return int(min(max(needed, window), int(rounds.sum())) / int(rounds.sum()) * turns) + 1

    def _charge(self, issued: int, warp_cycles: int) -> None:
        """Charge the cycles of the live warps as in the windows; each of them once, with those that select them."""
        stall, doubled = self.stall, self.doubled
        split = len(stall)
        waits, moved = np.maximum(self.charged[:split], 0), int(self.moved.sum())
        twice = self.charged[split:] * issued // moved
        to_charge, total = warp_cycles - issued + int(twice.sum()), int(waits.sum())
        share = (waits * (to_charge / total)).astype(np.int64) if total else waits
        share[int(share.argmax())] += to_charge - int(share.sum())
        stall[:] += share
        doubled[:] += twice


def _made(rounds: NDArray[np.int64], begin: int, end: int, turns: int) -> int:
    """How many of `rounds` [warps], made in so many turns, are those of the turns from `begin` to `end`."""
    return int((end * rounds // turns - begin * rounds // turns).sum())


def _shares(counted: NDArray[np.int64], sector: int) -> NDArray[np.float64]:
    """Of the sectors that were asked for, as `counted` [COUNTERS] says: the shares that hit in the L1 and missed in the
    L2, and that DRAM read and wrote."""
    asked = max(int(counted[cm.L1_ACCESSES]), int(counted[cm.L2_ACCESSES]), 1)
    moved = counted[[cm.DRAM_READ, cm.DRAM_WRITE]] // sector
    return np.array([counted[cm.L1_HITS], counted[cm.L2_ACCESSES] - counted[cm.L2_HITS], *moved]) / asked


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool((np.abs(one - other) <= SHARES_ALIKE).all())


@entry
def rounds_to_go(words: Words, alive: Words, run: Words, entries: int, lag: int, left: Words) -> None:
    """How many more rounds of `lag` entries each of the live warps makes at most, into `left`."""
    sm = sm_at(words)
    for i in range(len(alive)):
        left[i] = (repeating(sm, run, entries, sm.warps[alive[i]].pos, lag) - 1) // lag


@entry
def move_on(words: Words, alive: Words, entries: Words, accesses: Words, time: int, now: int) -> None:
    """The state of cycle `now`, `time` cycles later, and the live warps so many entries and accesses further on."""
    sm = sm_at(words)
    for i in range(len(alive)):
        warp = sm.warps[alive[i]]
        warp.pos += entries[i]
        warp.access += accesses[i]
        move_warp(sm, alive[i], time, now)
    move_ports(sm, time, now)
    wind(sm, now + time)
