"""Nugteren's reuse-distance model in plain Python, with lists for trees and heaps; see `nugteren_loop`."""

from __future__ import annotations

from ppt_gpu.models.caches.nugteren import FakeCache, WarpLines


class _Warp:
    def __init__(self, accesses: list[list[int]]) -> None:
        self.accesses = accesses  # positions in the stream of lines
        self.begun: list[int] = []  # what is left of an access that found no MSHR
        self.waits = 0

    @property
    def goes_on(self) -> bool:
        return bool(self.begun or self.accesses)


def fake_time_distances_reference(lines: WarpLines, cache: FakeCache, resident: int) -> list[int]:
    """`nugteren_loop.fake_time_distances`."""
    found = [-1] * len(lines.line)
    stacks: dict[int, list[int]] = {}
    flying: list[tuple[int, int, int, _Warp]] = []  # time, order, position, warp
    outstanding: list[int] = []  # lines of misses on their way
    now = order = 0
    blocks = len(lines.block_warp) - 1
    for first in range(0, blocks, max(resident, 1)):
        last = min(first + max(resident, 1), blocks)
        warps = [_Warp(_accesses(lines, w)) for w in range(lines.block_warp[first], lines.block_warp[last])]
        pool = [warp for warp in warps if warp.goes_on]
        while pool or flying:
            if not pool:
                now = max(now, min(flying, key=lambda one: one[:2])[0])
            for done in sorted((one for one in flying if one[0] <= now), key=lambda one: one[:2]):
                flying.remove(done)
                line, warp = int(lines.line[done[2]]), done[3]
                if not 0 <= found[done[2]] < cache.ways:
                    outstanding.remove(line)
                stack = stacks.setdefault(int(cache.sets[line]), [])
                if line in stack:
                    stack.remove(line)
                stack.insert(0, line)
                warp.waits -= 1
                if warp.waits == 0 and not warp.begun and warp.accesses:
                    pool.append(warp)
            if not pool:
                continue
            warp = pool.pop(0)
            requests = warp.begun or warp.accesses.pop(0)
            warp.begun = []
            for place, request in enumerate(requests):
                line = int(lines.line[request])
                stack = stacks.get(int(cache.sets[line]), [])
                distance = stack.index(line) if line in stack else -1
                hit = 0 <= distance < cache.ways
                if not hit and line not in outstanding and len(set(outstanding)) >= cache.mshrs:
                    warp.begun = requests[place:]
                    break
                if not hit:
                    outstanding.append(line)
                found[request] = distance
                delay = cache.hit_latency if hit else cache.latency + int(cache.extra[request])
                flying.append((now + delay, order, request, warp))
                order, warp.waits = order + 1, warp.waits + 1
            if warp.begun or (warp.waits == 0 and warp.accesses):
                pool.append(warp)
            now += 1
    return found


def _accesses(lines: WarpLines, warp: int) -> list[list[int]]:
    return [
        list(range(lines.access_start[access], lines.access_start[access + 1]))
        for access in range(lines.warp_access[warp], lines.warp_access[warp + 1])
    ]
