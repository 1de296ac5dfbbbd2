"""How blocks of different length fill the chip: each next block goes to the SM that frees a slot first.

A block has a length in cycles at full residency. With n blocks resident its SM serves each of them at speed f(n),
f(R) = 1 (`irregular`): at the end of a launch, on a chip that is not full, or while slots wait for their
next block, which starts some cycles after the one before has ended, blocks are faster. The compiled loop and
`tests/reference/dispatch.py` agree exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged


@dataclass(frozen=True)
class Dispatch:
    """A launch on S SMs."""

    cycles: float  # until the last block ended
    sm_end: NDArray[np.float64]  # [S] cycles until the last block of each SM
    sm: NDArray[np.int32]  # [B] SM of each block
    block_start: NDArray[np.float64]  # [B] cycle
    block_end: NDArray[np.float64]  # [B] cycle

    @property
    def balance(self) -> float:
        """Mean end of the SMs that ran a block over the end of the launch: 1 when all end together."""
        used = self.sm_end[self.sm_end > 0]
        return float(used.mean()) / self.cycles if len(used) else 1.0


@dataclass(frozen=True)
class Starts:
    """When slots take blocks: slot j its first one at j * `ramp`, the next ones `gap` cycles after its last ended."""

    gap: float = 0.0
    ramp: float = 0.0


AT_ONCE = Starts()


def dispatch(
    length: NDArray[np.float64],
    sms: int,
    resident: int,
    speed: NDArray[np.float64],
    start: float = 0.0,
    starts: Starts = AT_ONCE,
) -> Dispatch:
    """Run blocks of `length` cycles, in this order, on `sms` SMs of `resident` slots; `speed` [resident]: f(1)...f(R).

    `start`: cycles that all slots were busy with earlier blocks.
    """
    end, sm = np.zeros(sms), np.zeros(len(length), np.int32)
    chip = (np.zeros((sms, resident)), np.zeros(sms, np.int64), np.zeros((sms, resident)), np.zeros((sms, resident)))
    coming = (np.zeros(sms, np.int64), np.zeros((sms, resident), np.int64), np.zeros((sms, resident), np.int64))
    now, event = np.full(sms, float(start)), np.zeros(sms)
    times = (now, event, float(starts.gap), float(starts.ramp))
    block = (np.zeros(len(length)), np.zeros(len(length)))
    _dispatch(length.astype(np.float64), speed.astype(np.float64), *chip, *coming, *times, end, sm, *block)
    return Dispatch(float(end.max(initial=start)), end, sm, *block)


def turn(length: float, speed: NDArray[np.float64], starts: Starts) -> float:
    """Cycles from the start of a block to that of the next one in its slot, where all are of `length`.

    Each of R slots holds a block for all of its turn but the gap, whatever the others do; n of them do so with
    binomial probability and serve n f(n) together: turn = R length / mean of n f(n).
    """
    slots = len(speed)
    held = np.arange(slots + 1)
    ways = np.array([comb(slots, n) for n in held], np.float64)
    served = held * np.concatenate(([0.0], speed))
    shortest, longest = starts.gap, starts.gap + length
    for _ in range(50):
        middle = (shortest + longest) / 2.0
        share = 1.0 - starts.gap / middle
        together = float(ways * share**held * (1.0 - share) ** (slots - held) @ served)
        shortest, longest = (middle, longest) if slots * length > together * middle else (shortest, middle)
    return longest


@merged
def _smallest(values: np.ndarray, s: int, count: int) -> int:
    """Of the first `count` in row `s`: which is the smallest, the first of those."""
    least = 0
    for k in range(1, count):
        if values[s, k] < values[s, least]:
            least = k
    return least


@merged
def _next_event(
    left: np.ndarray, held: np.ndarray, due: np.ndarray, coming: np.ndarray, now: np.ndarray, speed: np.ndarray, s: int
) -> float:
    """When the next block of SM `s` ends or starts; infinite when it has none."""
    when = np.inf
    if held[s] > 0:
        when = now[s] + left[s, _smallest(left, s, held[s])] / speed[held[s] - 1]
    if coming[s] > 0:
        when = min(when, due[s, _smallest(due, s, coming[s])])
    return when


@merged
def _start(
    left: np.ndarray,
    held: np.ndarray,
    due: np.ndarray,
    work: np.ndarray,
    coming: np.ndarray,
    held_block: np.ndarray,
    due_block: np.ndarray,
    now: np.ndarray,
    speed: np.ndarray,
    block_start: np.ndarray,
    s: int,
    k: int,
) -> None:
    """The k-th coming block of SM `s` starts; those that it holds have been served until then."""
    time = due[s, k]
    for n in range(held[s]):
        left[s, n] = max(left[s, n] - (time - now[s]) * speed[held[s] - 1], 0.0)
    now[s] = time
    left[s, held[s]] = work[s, k]
    held_block[s, held[s]] = due_block[s, k]
    block_start[due_block[s, k]] = time
    held[s] += 1
    coming[s] -= 1
    for n in range(k, coming[s]):
        due[s, n] = due[s, n + 1]
        work[s, n] = work[s, n + 1]
        due_block[s, n] = due_block[s, n + 1]


@entry
def _dispatch(
    length: np.ndarray,  # [B]
    speed: np.ndarray,  # [R]
    left: np.ndarray,  # [S, R] cycles at full residency that are left of each resident block, packed
    held: np.ndarray,  # [S] resident blocks
    due: np.ndarray,  # [S, R] when blocks that were given to the SM start, packed
    work: np.ndarray,  # [S, R] the lengths of those
    coming: np.ndarray,  # [S] how many they are
    held_block: np.ndarray,  # [S, R] ids of resident blocks
    due_block: np.ndarray,  # [S, R] ids of those that are coming
    now: np.ndarray,  # [S] time to which `left` refers
    event: np.ndarray,  # [S] when the next block of the SM ends or starts
    gap: float,
    ramp: float,
    end: np.ndarray,  # [S] out
    sm: np.ndarray,  # [B] out
    block_start: np.ndarray,  # [B] out
    block_end: np.ndarray,  # [B] out
) -> None:
    sms, slots = left.shape
    count = len(length)
    block = 0
    for slot in range(slots):  # breadth first
        for s in range(sms):
            if block < count:
                due[s, slot] = now[s] + ramp * slot
                work[s, slot] = length[block]
                due_block[s, slot] = block
                coming[s] += 1
                sm[block] = s
                block += 1
    for s in range(sms):
        event[s] = _next_event(left, held, due, coming, now, speed, s)
    while True:
        s = int(np.argmin(event))
        if event[s] == np.inf:
            return
        first = _smallest(due, s, coming[s])
        if coming[s] > 0 and due[s, first] <= event[s]:
            _start(left, held, due, work, coming, held_block, due_block, now, speed, block_start, s, first)
        else:
            served = left[s, _smallest(left, s, held[s])]
            now[s] = event[s]
            end[s] = event[s]
            kept = 0
            for k in range(held[s]):
                rest = left[s, k] - served
                if rest > 0.0:
                    left[s, kept] = rest
                    held_block[s, kept] = held_block[s, k]
                    kept += 1
                    continue
                block_end[held_block[s, k]] = event[s]
                if block < count:
                    due[s, coming[s]] = event[s] + gap
                    work[s, coming[s]] = length[block]
                    due_block[s, coming[s]] = block
                    coming[s] += 1
                    sm[block] = s
                    block += 1
            held[s] = kept
        event[s] = _next_event(left, held, due, coming, now, speed, s)
