"""Loop skipping: when a state of the SM repeats, what happened since happens again, so it need not be simulated.

From time to time the state is copied. Whenever one warp, the anchor, then comes to a place that looks like the one at
which it was, the state is compared (loop.repeat); if it is the same, all goes on by as many rounds as the loops and the
memory system (loop.replay) allow (loop.advance). The result is the same to the last cycle. Copies become rarer by
doubling (R. P. Brent, An improved Monte Carlo factorization algorithm, BIT 20, 1980), so that where nothing repeats
looking costs next to nothing, and where something does it is found within twice the time that it takes.

The compiled loop pauses when it is time for a copy, or when the state looks like the copied one at a glance; the rest
is decided here, and compiled only when it is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import called
from ppt_gpu.sm.loop.advance import make_advance
from ppt_gpu.sm.loop.memory import CODE_FILL, CONSTANTS, PLACE, MemoryArrays
from ppt_gpu.sm.loop.pack import Packed
from ppt_gpu.sm.loop.repeat import make_rounds_left
from ppt_gpu.sm.loop.replay import ANSWERED, FREELY, LOGGED, LOGGING, MODE, RECORD_SHIFT, RECORDS, make_replay
from ppt_gpu.sm.loop.state import (
    ACCESS,
    AT_SCHEDS,
    AT_SLOTS,
    AT_WARPS,
    PLACES,
    POS,
    READY,
    READY_MASK,
    SCHED_SHIFT,
    WARP_SHIFT,
    State,
)
from ppt_gpu.sm.program.machine import NEVER, Machine
from ppt_gpu.sm.program.program import Program

# `track`, after the words of loop.replay. The loop compares when the anchor, whose warp's offset this is, has come to
# TARGET, and pauses at LOOK_AT. The copy: of cycle COPIED_AT (NEVER: none yet, TARGET is the moment for one), with the
# anchor at FROM, which looks the same every LAG entries; STRIDE, a multiple of that, lies between two comparisons.
ANCHOR, TARGET, LOOK_AT, COPIED_AT, FROM, LAG, STRIDE = range(4, 11)
# the loop's variables while it pauses; ISSUED: offset of the warp that issued last. NOTHING_DUE, of a whole chip only:
# no warp wakes and no block comes unless others let it
NOW, NEXT_BLOCK, ENDED, IDLE, NEXT_LAUNCH, ISSUED, NOTHING_DUE = range(11, 18)
TRACK_WORDS = 18
FIRST_GAP, LAST_GAP = 256, 1 << 20  # cycles until the first copy; between two copies at most
#: copies become rarer until about so many warp instructions are between two of them
OFTEN_ENOUGH = 1 << 17
#: entries of the anchor between two comparisons, at least
STEP = 64
#: a skip of so many cycles is worth looking again soon
WORTH = 1 << 14
#: entries that must be the same to call it a loop; loops of up to FURTHEST entries are found
ALIKE, FURTHEST = 24, 4096


class Skipping:
    """Loop skipping in one run. `enabled` False: it never looks."""

    approximate = estimated = 0  # of loop.windows: this skips nothing of which it does not know that it repeats

    def __init__(
        self, program: Program, machine: Machine, packed: Packed, memory: MemoryArrays, state: State, enabled: bool
    ) -> None:
        self.machine, self.code, self.waits, self.memory, self.state = (
            machine, packed.code, program.entry_wait, memory, state,
        )  # fmt: skip
        self.track: NDArray[np.int64] = np.zeros(TRACK_WORDS, np.int64)
        self.track[TARGET] = NEVER
        self.track[LOOK_AT] = FIRST_GAP if enabled else NEVER
        self.snap: NDArray[np.int64] = np.zeros(len(state.core) if enabled else 0, np.int64)
        self.log: NDArray[np.int64] = np.zeros(RECORDS << RECORD_SHIFT if enabled else 0, np.int64)
        self.run: NDArray[np.int64] = np.zeros(3, np.int64)  # of loop.repeat
        self.gap = FIRST_GAP
        self.blocks = -1  # launched and ended, at the copy
        self.positions = self._warps()[:, POS].copy()
        self.skipped = 0  # cycles

    def look_around(self, max_cycles: int) -> None:
        """At a pause: copy the state, skip, or look again later."""
        track, now = self.track, int(self.track[NOW])
        at = int(self.state.warps[track[ANCHOR] + POS])
        copied, blocks = track[COPIED_AT] < NEVER, int(track[NEXT_BLOCK] + track[ENDED])
        if track[MODE] == ANSWERED:
            track[TARGET], track[LOOK_AT] = NEVER, now + self.gap
        elif track[TARGET] > at or (copied and blocks != self.blocks):
            self._choose_anchor(now)
        elif not copied:
            self._copy(at, loop_length(self.code, at), now + self.gap)
        else:
            rounds = self._rounds_left(at - int(track[FROM]), max_cycles)
            if rounds > 0:
                self._repeat(at, rounds)
            elif track[MODE] == LOGGING or now >= track[LOOK_AT]:
                self._choose_anchor(now)
            else:  # in vain: not so often
                track[STRIDE] *= 2
                track[TARGET] = at + track[STRIDE]

    def _warps(self) -> NDArray[np.int64]:
        return self.state.warps.reshape(-1, 1 << WARP_SHIFT)

    def _choose_anchor(self, now: int) -> None:
        """The warp that has just issued; its next issue is the moment of the copy."""
        positions = self._warps()[:, POS].copy()
        if np.abs(positions - self.positions).sum() < OFTEN_ENOUGH:
            self.gap = min(2 * self.gap, LAST_GAP)
        track, self.positions = self.track, positions
        track[ANCHOR], track[COPIED_AT], track[MODE] = track[ISSUED], NEVER, FREELY
        track[TARGET], track[LOOK_AT] = self.state.warps[track[ISSUED] + POS] + 1, now + self.gap

    def _copy(self, at: int, lag: int, look_at: int) -> None:
        """Copy the state, unless the anchor is in no loop (`lag` 0)."""
        track = self.track
        track[LOOK_AT], track[TARGET], track[COPIED_AT] = look_at, NEVER, NEVER
        if lag > 0:
            self.snap[:] = self.state.core
            self.blocks = int(track[NEXT_BLOCK] + track[ENDED])
            track[COPIED_AT], track[FROM], track[LAG] = track[NOW], at, lag
            track[STRIDE] = -(-STEP // lag) * lag
            track[TARGET] = at + track[STRIDE]

    def _rounds_left(self, lag: int, max_cycles: int) -> int:
        """How often what happened since the copy can happen again, as far as the entries know."""
        track, state, machine = self.track, self.state, self.machine
        before, now = int(track[COPIED_AT]), int(track[NOW])
        if track[NEXT_LAUNCH] != NEVER or lag % track[LAG] != 0:
            return 0
        mem = self.memory.mem
        if max(mem[CODE_FILL], mem[CONSTANTS]) > before:  # the instruction cache changes
            return 0
        rounds = make_rounds_left()(
            machine.schedulers, machine.policy, state.core, self.snap, state.layout, self.run, self.code, self.waits,
            before, now,
        )  # fmt: skip
        return min(int(rounds), (max_cycles - 1 - now) // (now - before))

    def _repeat(self, at: int, rounds: int) -> None:
        """Go on by `rounds` rounds if no memory is used; else log the next round, then go on as far as possible."""
        track, state, memory = self.track, self.state, self.memory
        before, now = int(track[COPIED_AT]), int(track[NOW])
        begin, end = (int(place) for place in state.layout[[AT_WARPS, AT_SLOTS]])
        if (state.warps[ACCESS :: 1 << WARP_SHIFT] != self.snap[begin + ACCESS : end : 1 << WARP_SHIFT]).any():
            if track[MODE] != LOGGING:
                lag = at - int(track[FROM])
                self._copy(at, lag, 3 * now - 2 * before)
                track[MODE], track[LOGGED], track[TARGET] = LOGGING, 0, at + lag
                return
            rounds = make_replay()(
                track, self.log, state.core, self.snap, state.layout, memory.access, memory.tx, memory.mem,
                now - before, rounds,
            )  # fmt: skip
        skipped = rounds * (now - before)
        if rounds > 0:
            make_advance()(
                self.machine.schedulers, self.machine.policy, state.core, self.snap, state.layout, state.wheel,
                state.occupied, state.scheds, rounds, before, now,
            )  # fmt: skip
        self.skipped += skipped
        self.gap = FIRST_GAP if skipped >= WORTH else min(2 * self.gap, LAST_GAP)
        track[NOW], track[TARGET], track[LOOK_AT] = now + skipped, NEVER, now + skipped + self.gap


def loop_length(entries: NDArray[np.int64], at: int) -> int:
    """The least distance at which the packed entries look like those from `at` on; 0: none."""
    code = entries[at : at + FURTHEST + ALIKE]
    if len(code) == 0:  # a warp without entries
        return 0
    found = np.flatnonzero(code[1 : len(code) - ALIKE] == code[0]) + 1
    for entry in range(1, ALIKE):
        if len(found) == 0:
            return 0
        found = found[code[found + entry] == code[entry]]
    return int(found[0]) if len(found) else 0


@called
def looks_the_same(K: int, warps: Any, scheds: Any, snap: Any, layout: Any, track: Any, now: int) -> bool:
    """At TARGET: whether it is worth to pause; if not, the next TARGET is set."""
    at, passed = warps[(track[ANCHOR] & PLACE) + POS], now - track[COPIED_AT]
    if track[COPIED_AT] == NEVER or track[MODE] == LOGGING:
        return True
    aligned = (at - track[FROM]) % track[LAG] == 0
    same = aligned
    for k in range(K):
        was = layout[AT_SCHEDS] + (k << SCHED_SHIFT)
        same = same and scheds[(k << SCHED_SHIFT) + READY_MASK] == snap[was + READY_MASK]
    for place in range(layout[PLACES]):
        if not same:
            break
        me, was = place << WARP_SHIFT, layout[AT_WARPS] + (place << WARP_SHIFT)
        same = warps[me + POS] == snap[was + POS] or warps[me + READY] - snap[was + READY] == passed
    if not same:
        track[TARGET] = at + (track[STRIDE] if aligned else 1)
    return same
