"""Blocks dispatched to SMs in plain Python, one start or end after another: what the compiled loop must agree with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.scale.levels.dispatch import AT_ONCE, Starts


def dispatch_reference(
    length: NDArray[np.float64], sms: int, resident: int, speed: NDArray[np.float64], starts: Starts = AT_ONCE
) -> tuple[list[float], list[int], list[float], list[float]]:
    """(end of each SM; SM, start and end of each block), of a launch in which every block is dispatched."""
    waiting = list(enumerate(float(value) for value in length))
    sm_of, start_of, end_of = [0] * len(waiting), [0.0] * len(waiting), [0.0] * len(waiting)
    now, ends = [0.0] * sms, [0.0] * sms
    resident_of: list[list[tuple[float, int]]] = [[] for _ in range(sms)]
    coming_of: list[list[tuple[float, float, int]]] = [[] for _ in range(sms)]

    def give(s: int, time: float) -> None:
        block, cycles = waiting.pop(0)
        coming_of[s].append((time, cycles, block))
        sm_of[block] = s

    for slot in range(resident):
        for s in range(sms):
            if waiting:
                give(s, starts.ramp * slot)
    while True:
        starting = {s: min(time for time, _, _ in coming_of[s]) for s in range(sms) if coming_of[s]}
        ending = {
            s: now[s] + min(resident_of[s])[0] / float(speed[len(resident_of[s]) - 1])
            for s in range(sms)
            if resident_of[s]
        }
        if not starting and not ending:
            return ends, sm_of, start_of, end_of
        events = {s: min(starting.get(s, np.inf), ending.get(s, np.inf)) for s in starting | ending}
        s = min(events, key=lambda s: (events[s], s))
        if starting.get(s, np.inf) <= events[s]:
            first = min(coming_of[s], key=lambda start: start[0])
            coming_of[s].remove(first)
            served = (first[0] - now[s]) * float(speed[len(resident_of[s]) - 1]) if resident_of[s] else 0.0
            resident_of[s] = [(max(left - served, 0.0), block) for left, block in resident_of[s]] + [first[1:]]
            now[s] = start_of[first[2]] = first[0]
            continue
        served = min(resident_of[s])[0]
        now[s] = ends[s] = events[s]
        ended = [block for left, block in resident_of[s] if left - served <= 0]
        for block in ended:
            end_of[block] = now[s]
        resident_of[s] = [(left - served, block) for left, block in resident_of[s] if left - served > 0]
        for _ in range(min(len(ended), len(waiting))):
            give(s, now[s] + starts.gap)
