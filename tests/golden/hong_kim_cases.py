"""The cases by which Hong and Kim explain their model (Figures 5 to 8): equations 1, 3 and 4, and a check by events.

A warp alternates computation periods with memory waiting periods. The processor computes one warp at a time; the
memory serves `mwp` warps at a time.
"""

from __future__ import annotations

import heapq
from collections import deque


def many_memory_warps(n: int, mwp: int, comp_p: float, mem_p: float, periods: int) -> float:
    """Eq 1, for CWP > MWP: Mem_cycles x N / MWP + Comp_p x MWP."""
    return mem_p * periods * n / mwp + comp_p * mwp


def much_computation(n: int, comp_p: float, mem_p: float, periods: int) -> float:
    """Eq 3, for MWP > CWP: Mem_p + Comp_cycles x N."""
    return mem_p + comp_p * periods * n


def few_warps(n: int, comp_p: float, mem_p: float, periods: int) -> float:
    """Eq 4, for MWP = CWP = N: Mem_cycles + Comp_cycles + Comp_p x (MWP - 1)."""
    return mem_p * periods + comp_p * periods + comp_p * (n - 1)


def timeline(n: int, mwp: int, comp_p: float, mem_p: float, periods: int) -> float:
    """The end of the last memory period of `n` warps, first come, first served, at the processor and at the memory."""
    ready: deque[int] = deque(range(n))  # for the processor
    left = [periods] * n  # computation periods of each warp
    slots = [0.0] * mwp  # when each place in the memory is free
    events: list[tuple[float, int, int]] = []  # (time, warp, 1 where it is a computation that ends)
    busy, end = False, 0.0

    def start(now: float) -> None:
        nonlocal busy
        if ready and not busy:
            warp = ready.popleft()
            left[warp] -= 1
            heapq.heappush(events, (now + comp_p, warp, 1))
            busy = True

    start(0.0)
    while events:
        now, warp, computed = heapq.heappop(events)
        if computed:
            busy = False
            served = max(heapq.heappop(slots), now) + mem_p
            heapq.heappush(slots, served)
            heapq.heappush(events, (served, warp, 0))
        else:
            end = now
            if left[warp]:
                ready.append(warp)
        start(now)
    return end
