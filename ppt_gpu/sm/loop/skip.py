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

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import called
from ppt_gpu.sm.loop.advance import advance
from ppt_gpu.sm.loop.memory import CODE_FILL, CONSTANTS, MemoryArrays
from ppt_gpu.sm.loop.repeat import rounds_left
from ppt_gpu.sm.loop.replay import ANSWERED, FREELY, LOGGING, RECORDS, replay
from ppt_gpu.sm.loop.state import Logged, Sm, State
from ppt_gpu.sm.program.machine import NEVER

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
    """Loop skipping in one run. `sm`: what the loop gets."""

    approximate = estimated = 0  # of loop.windows: this skips nothing of which it does not know that it repeats

    def __init__(self, state: State, memory: MemoryArrays) -> None:
        self.state, self.memory, self.code = state, memory, state.packed.code
        #: the state as it was at the copy; words of `state.core`
        self.copy: NDArray[np.int64] = np.zeros_like(state.core)
        self.log: NDArray[np.void] = np.zeros(RECORDS, Logged.dtype)
        asked = memory.access, memory.tx, memory.mem
        self.sm, self.then = state.sm(state.core, *asked, self.log, self.copy), state.sm(self.copy, *asked)
        self.warps, self.track = state.tables(state.core)["warps"], state.track
        self.track["look_at"] = FIRST_GAP
        self.run: NDArray[np.int64] = np.zeros(3, np.int64)  # of loop.repeat
        self.gap = FIRST_GAP
        self.blocks = -1  # launched and ended, at the copy
        self.positions = self.warps["pos"].copy()
        self.skipped = 0  # cycles

    def look_around(self, max_cycles: int) -> None:
        """At a pause: copy the state, skip, or look again later."""
        track, now = self.track, int(self.track["now"])
        at = int(self.warps["pos"][track["anchor"]])
        copied, blocks = track["copied_at"] < NEVER, int(track["next_block"] + track["ended"])
        if track["mode"] == ANSWERED:
            track["target"], track["look_at"] = NEVER, now + self.gap
        elif track["target"] > at or (copied and blocks != self.blocks):
            self._choose_anchor(now)
        elif not copied:
            self._copy(at, loop_length(self.code, at), now + self.gap)
        else:
            rounds = self._rounds_left(at - int(track["copied_from"]), max_cycles)
            if rounds > 0:
                self._repeat(at, rounds)
            elif track["mode"] == LOGGING or now >= track["look_at"]:
                self._choose_anchor(now)
            else:  # in vain: not so often
                track["stride"] *= 2
                track["target"] = at + track["stride"]

    def _choose_anchor(self, now: int) -> None:
        """The warp that has just issued; its next issue is the moment of the copy."""
        positions = self.warps["pos"].copy()
        if np.abs(positions - self.positions).sum() < OFTEN_ENOUGH:
            self.gap = min(2 * self.gap, LAST_GAP)
        track, self.positions = self.track, positions
        track["anchor"], track["copied_at"], track["mode"] = track["issued"], NEVER, FREELY
        track["target"], track["look_at"] = self.warps["pos"][track["issued"]] + 1, now + self.gap

    def _copy(self, at: int, lag: int, look_at: int) -> None:
        """Copy the state, unless the anchor is in no loop (`lag` 0)."""
        track = self.track
        track["look_at"], track["target"], track["copied_at"] = look_at, NEVER, NEVER
        if lag > 0:
            self.copy[:] = self.state.core
            self.blocks = int(track["next_block"] + track["ended"])
            track["copied_at"], track["copied_from"], track["lag"] = track["now"], at, lag
            track["stride"] = -(-STEP // lag) * lag
            track["target"] = at + track["stride"]

    def _rounds_left(self, lag: int, max_cycles: int) -> int:
        """How often what happened since the copy can happen again, as far as the entries know."""
        track, mem = self.track, self.memory.mem
        before, now = int(track["copied_at"]), int(track["now"])
        if track["next_launch"] != NEVER or lag % track["lag"] != 0:
            return 0
        if max(mem[CODE_FILL], mem[CONSTANTS]) > before:  # the instruction cache changes
            return 0
        rounds = rounds_left(self.sm, self.then, self.run, len(self.code), before, now)
        return min(int(rounds), (max_cycles - 1 - now) // (now - before))

    def _repeat(self, at: int, rounds: int) -> None:
        """Go on by `rounds` rounds if no memory is used; else log the next round, then go on as far as possible."""
        track, before, now = self.track, int(self.track["copied_at"]), int(self.track["now"])
        if (self.warps["access"] != self.state.tables(self.copy)["warps"]["access"]).any():
            if track["mode"] != LOGGING:
                lag = at - int(track["copied_from"])
                self._copy(at, lag, 3 * now - 2 * before)
                track["mode"], track["logged"], track["target"] = LOGGING, 0, at + lag
                return
            rounds = replay(self.sm, self.then, now - before, rounds)
        skipped = rounds * (now - before)
        if rounds > 0:
            advance(self.sm, self.then, rounds, before, now)
        self.skipped += skipped
        self.gap = FIRST_GAP if skipped >= WORTH else min(2 * self.gap, LAST_GAP)
        track["now"], track["target"], track["look_at"] = now + skipped, NEVER, now + skipped + self.gap


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
def looks_the_same(sm: Sm, now: int) -> bool:
    """At `target`: whether it is worth to pause; if not, the next `target` is set."""
    track = sm.track[0]
    at, passed = sm.warps[track.anchor].pos, now - track.copied_at
    if track.copied_at == NEVER or track.mode == LOGGING:
        return True
    aligned = (at - track.copied_from) % track.lag == 0
    same = aligned
    for k in range(sm.schedulers):
        same = same and sm.scheds[k].ready == sm.copied_scheds[k].ready
    for place in range(sm.places):
        if not same:
            break
        warp, then = sm.warps[place], sm.copied_warps[place]
        same = warp.pos == then.pos or warp.ready - then.ready == passed
    if not same:
        track.target = at + (track.stride if aligned else 1)
    return same
