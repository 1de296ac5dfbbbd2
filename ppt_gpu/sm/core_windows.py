"""Loop skipping on request, approximate: where two windows of time go alike, what follows is taken to go alike.

Exact skipping (core_skip) needs a state that repeats. Where memory limits, or blocks shift against each other, none
does, though the SM does the same all the time. So time is cut into windows, each as long as it takes every block to
make some rounds of its loop. Where one issues as much as the one before, to ALIKE, all warps are moved on by as many
whole rounds as they make in a few times what was simulated of these blocks, every block at its own rate. Times to come
are later by that, as in core_advance, and waits are charged as in the window.

The memory operations of the rounds are not left out: all of them are put to the memory system, evenly over the time, so
that counters, contents of caches and servers are those of all rounds. What it answers is not looked at. If it serves
them more slowly than in the windows, it is behind afterwards, and the warps wait for it then.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import called, entry
from ppt_gpu.sm.core_advance import move_ports, move_warp, wind
from ppt_gpu.sm.core_bits import fingerprint, int64, pointer
from ppt_gpu.sm.core_lsu import issue_global, issue_shared
from ppt_gpu.sm.core_machine import NEVER, Machine
from ppt_gpu.sm.core_memory import (
    CODE_FILL,
    CODE_FREE,
    CONSTANTS,
    CYCLES_AT,
    CYCLES_MASK,
    FIRST_MASK,
    WAY_BITS,
    MemoryArrays,
)
from ppt_gpu.sm.core_pack import KIND_AT, KIND_MASK, OP_AT, OP_MASK, OP_ROW, USES_L1, Packed
from ppt_gpu.sm.core_repeat import repeating
from ppt_gpu.sm.core_skip import ENDED, LOOK_AT, NEXT_BLOCK, NEXT_LAUNCH, NOW, TARGET, TRACK_WORDS, loop_length
from ppt_gpu.sm.core_state import (
    ACCESS,
    ALIVE,
    AT_WARPS,
    BLOCK_SLOT,
    PLACES,
    POS,
    WARP_SHIFT,
    State,
)
from ppt_gpu.sm.program import KIND_LOAD, KIND_SHARED, Program

#: by how much what two windows issue in a cycle may differ
ALIKE = 0.01
#: rounds of the loop that each block makes in a window, at least
ROUNDS = 2
FIRST_WINDOW, LONGEST_WINDOW = 512, 1 << 22  # cycles
#: what is skipped at once: so many times what was simulated of these blocks, at most; so many windows, at least
MOST, LEAST = 4, 2


class _Pause(NamedTuple):
    """The SM at the beginning of a window."""

    now: int
    positions: NDArray[np.int64]  # [warp slots]
    charged: NDArray[np.int64]  # op_stall, then doubled


class WindowSkipping:
    """Approximate loop skipping in one run, in place of `core_skip.Skipping`. `enabled` False: it never looks."""

    def __init__(
        self, program: Program, machine: Machine, packed: Packed, memory: MemoryArrays, state: State, enabled: bool
    ) -> None:
        self.machine, self.packed, self.waits, self.memory, self.state = (
            machine, packed, program.entry_wait, memory, state,
        )  # fmt: skip
        self.track: NDArray[np.int64] = np.zeros(TRACK_WORDS, np.int64)
        self.track[TARGET] = NEVER
        self.track[LOOK_AT] = FIRST_WINDOW if enabled else NEVER
        self.snap = self.log = np.zeros(0, np.int64)  # of exact skipping
        self.run: NDArray[np.int64] = np.zeros(3, np.int64)  # of core_repeat
        self.length = FIRST_WINDOW
        self.begin: _Pause | None = None
        self.blocks = -1  # launched and ended, at the beginning of the window
        self.rate = 0.0  # issues a cycle in the last window
        self.time, self.moved = 0, np.zeros_like(self._warps()[:, POS])  # of all windows of these blocks, and entries
        self.skipped = 0  # cycles

    def look_around(self, max_cycles: int) -> None:
        """At a pause: skip if the window that ends goes like the last one. Then another begins."""
        blocks = int(self.track[NEXT_BLOCK] + self.track[ENDED])
        if self.begin is not None and blocks == self.blocks and self.track[NEXT_LAUNCH] == NEVER:
            self._end_window(self.begin, max_cycles)
        else:  # blocks came or went: shorter windows may fit in between
            self.length = max(self.length // 2, FIRST_WINDOW)
            self.time, self.moved[:] = 0, 0
        state = self.state
        now, charged = int(self.track[NOW]), np.concatenate((state.op_stall, state.doubled))
        self.begin, self.blocks = _Pause(now, self._warps()[:, POS].copy(), charged), blocks
        self.track[LOOK_AT] = now + self.length

    def _end_window(self, begin: _Pause, max_cycles: int) -> None:
        now, warps = int(self.track[NOW]), self._warps()
        alive = np.flatnonzero(self._alive())
        moved = (warps[:, POS] - begin.positions)[alive]
        lag = loop_length(self.packed.code, int(warps[alive[0], POS])) if len(alive) else 0
        if lag == 0 or self._instructions_missed(begin.now):
            return
        time, last = now - begin.now, self.rate
        self.rate = int(moved.sum()) / time
        self.time += time
        self.moved[alive] += moved
        if int(moved.min()) < ROUNDS * lag or abs(self.rate - last) > ALIKE * last:
            self.length = min(2 * self.length, LONGEST_WINDOW)
            return
        rounds, cycles = self._rounds(alive, lag, max_cycles - 1 - now)
        if cycles >= LEAST * time:
            self._skip(begin, alive, lag, rounds, cycles)

    def _warps(self) -> NDArray[np.int64]:
        return self.state.warps.reshape(-1, 1 << WARP_SHIFT)

    def _instructions_missed(self, since: int) -> bool:
        """Have instruction lines, or the first constants, come?"""
        mem = self.memory.mem
        return bool(max(mem[CODE_FILL], mem[CONSTANTS]) > since)

    def _alive(self) -> NDArray[np.bool_]:
        """[warp slots]"""
        k = self.machine.schedulers
        masks = self.state.scheds.reshape(k, -1)[:, ALIVE]
        places = np.arange(int(self.state.layout[PLACES]))
        return (masks[places % k] >> (places // k)) & 1 != 0

    def _rounds(self, alive: NDArray[np.int64], lag: int, most: int) -> tuple[NDArray[np.int64], int]:
        """(rounds of each live warp, cycles) to skip. All warps of a block make as many, as they meet at barriers."""
        left = np.zeros(len(alive), np.int64)
        make_rounds_to_go()(
            self.state.core, self.state.layout, alive, self.run, self.packed.code, self.waits, lag, left
        )
        numbers, of_warp = np.unique(self._warps()[alive, BLOCK_SLOT], return_inverse=True)
        count = np.bincount(of_warp)
        rate = np.bincount(of_warp, weights=self.moved[alive]) / (count * self.time * lag)  # rounds a cycle
        limit = np.full(len(numbers), NEVER, np.int64)
        np.minimum.at(limit, of_warp, left)
        cycles = int(min((limit / rate).min(), MOST * self.time, most))
        return np.minimum(np.rint(rate * cycles).astype(np.int64), limit)[of_warp], cycles

    def _skip(self, begin: _Pause, alive: NDArray[np.int64], lag: int, rounds: NDArray[np.int64], cycles: int) -> None:
        machine, state, memory, now = self.machine, self.state, self.memory, int(self.track[NOW])
        warps = self._warps()[alive]
        words = self.packed.code[warps[:, POS, None] + np.arange(lag)]
        kinds = (words >> KIND_AT) & KIND_MASK
        ways = self.packed.op_table.reshape(-1, OP_ROW)[(words >> OP_AT) & OP_MASK, USES_L1]
        asks = (kinds >= KIND_LOAD) & (kinds <= KIND_SHARED)
        if len(set(asks.sum(axis=1).tolist())) > 1:  # loops as long as one another that are not the same
            return
        what = (kinds << WAY_BITS | ways)[asks].reshape(len(alive), -1)  # a round is the same from wherever it begins
        if what.size:
            make_put_rounds()(what, warps[:, ACCESS].copy(), rounds, memory.access, memory.tx, memory.mem, now, cycles)
        make_move_on()(
            machine.schedulers, machine.policy, state.core, state.layout, state.wheel, state.occupied, state.scheds,
            alive, rounds * lag, rounds * what.shape[1], cycles, now,
        )  # fmt: skip
        self._charge(begin, int(rounds.sum()) * lag, len(alive) * cycles)
        self.skipped += cycles
        memory.mem[CODE_FREE] += cycles
        self.track[NOW] = now + cycles

    def _charge(self, begin: _Pause, issued: int, warp_cycles: int) -> None:
        """Charge the cycles of the live warps as in the window; each of them once, with those that select them."""
        state = self.state
        moved = int((self._warps()[:, POS] - begin.positions).clip(0).sum()) - issued
        waits = np.maximum(state.op_stall - begin.charged[: len(state.op_stall)], 0)
        twice = (state.doubled - begin.charged[len(state.op_stall) :]) * issued // moved
        to_charge, total = warp_cycles - issued + int(twice.sum()), int(waits.sum())
        share = waits * to_charge // total if total else waits
        share[int(share.argmax())] += to_charge - int(share.sum())
        state.op_stall[:] += share
        state.doubled[:] += twice


@cache
def make_rounds_to_go() -> Any:
    """_rounds_to_go, compiled."""
    SOURCES = fingerprint()

    def rounds_to_go(core: Any, layout: Any, alive: Any, run: Any, code: Any, waits: Any, lag: int, left: Any) -> None:
        _ = SOURCES
        for i in range(len(alive)):
            position = core[layout[AT_WARPS] + (alive[i] << WARP_SHIFT) + POS]
            left[i] = (repeating(code, waits, run, position, lag) - 1) // lag

    return entry(rounds_to_go)


@cache
def make_put_rounds() -> Any:
    """_put_rounds, compiled."""
    SOURCES = fingerprint()

    def put_rounds(what: Any, first: Any, rounds: Any, accesses: Any, tx: Any, mem: Any, now: int, cycles: int) -> None:
        _ = SOURCES
        _put_rounds(what, first, rounds, accesses, tx, mem, now, cycles)

    return entry(put_rounds)


@called
def _put_rounds(what: Any, first: Any, rounds: Any, accesses: Any, tx: Any, mem: Any, now: int, cycles: int) -> None:
    """Put the memory operations of `rounds` [live warps] to the memory system, evenly over `cycles`.

    `what` [live warps, operations of a round], as core_replay writes them; `first` [live warps]: the next access. The
    warps take turns, those with more rounds more often.
    """
    accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
    live, operations = what.shape
    turns, step = int64(0), int64(0)
    for i in range(live):
        turns = max(turns, rounds[i])
    steps = turns * operations
    for turn in range(turns):
        for operation in range(operations):
            when = now + 1 + cycles * step // steps
            step += 1
            for i in range(live):
                number = turn * rounds[i] // turns
                if (turn + 1) * rounds[i] // turns == number:
                    continue
                access, kind = first[i] + number * operations + operation, what[i, operation] >> WAY_BITS
                if kind == KIND_SHARED:
                    issue_shared(mem, when, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
                else:
                    issue_global(
                        kind,
                        what[i, operation] & ((1 << WAY_BITS) - 1),
                        when,
                        accesses[access],
                        accesses[access + 1] & FIRST_MASK,
                        tx,
                        mem,
                    )


@cache
def make_move_on() -> Any:
    """_move_on, compiled."""
    SOURCES = fingerprint()

    def move_on(
        K: int, POLICY: int, core: Any, layout: Any, wheel: Any, occupied: Any, scheds: Any, alive: Any, entries: Any,
        accesses: Any, time: int, now: int,
    ) -> None:  # fmt: skip
        _ = SOURCES
        _move_on(K, POLICY, core, layout, wheel, occupied, scheds, alive, entries, accesses, time, now)

    return entry(move_on)


@called
def _move_on(
    K: int, POLICY: int, core: Any, layout: Any, wheel: Any, occupied: Any, scheds: Any, alive: Any, entries: Any,
    accesses: Any, time: int, now: int,
) -> None:  # fmt: skip
    """The state of cycle `now`, `time` cycles later, and the live warps so many entries and accesses further on."""
    for i in range(len(alive)):
        place = alive[i]
        at = layout[AT_WARPS] + (place << WARP_SHIFT)
        core[at + POS] += entries[i]
        core[at + ACCESS] += accesses[i]
        move_warp(K, POLICY, core, layout, place, time, now)
    move_ports(K, core, layout, time, now)
    wind(K, core, layout, wheel, occupied, scheds, now + time)
