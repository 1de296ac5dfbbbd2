"""How blocks of different length fill the chip: each next block goes to the SM that frees a slot first.

A block has a length in cycles at full residency. With n blocks resident its SM serves each of them at speed f(n),
f(R) = 1 (ppt_gpu.scale.speed): at the end of a launch, or on a chip that is not full, blocks are faster. The compiled
loop and `dispatch_reference` agree exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined


@dataclass(frozen=True)
class Dispatch:
    """A launch on S SMs."""

    cycles: float  # until the last block ended
    sm_end: NDArray[np.float64]  # [S] cycles until the last block of each SM
    sm: NDArray[np.int32]  # [B] SM of each block

    @property
    def balance(self) -> float:
        """Mean end of the SMs that ran a block over the end of the launch: 1 when all end together."""
        used = self.sm_end[self.sm_end > 0]
        return float(used.mean()) / self.cycles if len(used) else 1.0


def dispatch(
    length: NDArray[np.float64], sms: int, resident: int, speed: NDArray[np.float64], start: float = 0.0
) -> Dispatch:
    """Run blocks of `length` cycles, in this order, on `sms` SMs of `resident` slots; `speed` [resident]: f(1)...f(R).

    `start`: cycles that all slots were busy with earlier blocks.
    """
    end, sm = np.zeros(sms), np.zeros(len(length), np.int32)
    left = np.zeros((sms, resident))
    held, now, done = np.zeros(sms, np.int64), np.full(sms, float(start)), np.zeros(sms)
    _dispatch(length.astype(np.float64), speed.astype(np.float64), left, held, now, done, end, sm)
    return Dispatch(float(end.max(initial=start)), end, sm)


@inlined
def _next_end(left: np.ndarray, held: np.ndarray, now: np.ndarray, speed: np.ndarray, s: int) -> float:
    if held[s] == 0:
        return now[s]
    least = left[s, 0]
    for k in range(1, held[s]):
        if left[s, k] < least:
            least = left[s, k]
    return now[s] + least / speed[held[s] - 1]


@entry
def _dispatch(
    length: np.ndarray,  # [B]
    speed: np.ndarray,  # [R]
    left: np.ndarray,  # [S, R] cycles at full residency that are left of each resident block, packed
    held: np.ndarray,  # [S] resident blocks
    now: np.ndarray,  # [S] time to which `left` refers
    done: np.ndarray,  # [S] when the next block of the SM ends
    end: np.ndarray,  # [S] out
    sm: np.ndarray,  # [B] out
) -> None:
    sms, slots = left.shape
    count = len(length)
    block = 0
    for _ in range(slots):  # breadth first
        for s in range(sms):
            if block < count:
                left[s, held[s]] = length[block]
                held[s] += 1
                sm[block] = s
                block += 1
    for s in range(sms):
        done[s] = _next_end(left, held, now, speed, s)
    while True:
        first = -1
        for s in range(sms):
            if held[s] > 0 and (first < 0 or done[s] < done[first]):
                first = s
        if first < 0:
            return
        served = left[first, 0]
        for k in range(1, held[first]):
            if left[first, k] < served:
                served = left[first, k]
        now[first] = done[first]
        end[first] = done[first]
        kept = 0
        for k in range(held[first]):
            rest = left[first, k] - served
            if rest > 0.0:
                left[first, kept] = rest
                kept += 1
        while kept < slots and block < count:
            left[first, kept] = length[block]
            kept += 1
            sm[block] = first
            block += 1
        held[first] = kept
        done[first] = _next_end(left, held, now, speed, first)


def dispatch_reference(
    length: NDArray[np.float64], sms: int, resident: int, speed: NDArray[np.float64]
) -> tuple[list[float], list[int]]:
    """(end of each SM, SM of each block), in plain Python, of a launch in which every block is dispatched."""
    waiting = list(enumerate(float(value) for value in length))
    sm_of = [0] * len(waiting)
    now, ends = [0.0] * sms, [0.0] * sms
    resident_of: list[list[float]] = [[] for _ in range(sms)]

    def start(s: int) -> None:
        block, cycles = waiting.pop(0)
        resident_of[s].append(cycles)
        sm_of[block] = s

    for _ in range(resident):
        for s in range(sms):
            if waiting:
                start(s)
    while any(resident_of):
        busy = [s for s in range(sms) if resident_of[s]]
        ending = {s: now[s] + min(resident_of[s]) / float(speed[len(resident_of[s]) - 1]) for s in busy}
        first = min(busy, key=lambda s: (ending[s], s))
        served = min(resident_of[first])
        now[first] = ends[first] = ending[first]
        resident_of[first] = [left - served for left in resident_of[first] if left - served > 0]
        while waiting and len(resident_of[first]) < resident:
            start(first)
    return ends, sm_of
