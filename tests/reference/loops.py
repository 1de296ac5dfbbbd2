"""Compiled loops of bounds and models in plain Python: chains of warps, intervals, access streams, reuse
distances, windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.warp_chain import Streams
from ppt_gpu.models.caches.reuse_distance import COLD
from ppt_gpu.sm.program.program import Program


def warp_times_reference(
    program: Streams, least_latency: NDArray[np.int64], hold: NDArray[np.int64], width: int
) -> list[tuple[list[int], int]]:
    """Issue times of the entries and the span of every path, in plain Python."""
    found = []
    for first, last in zip(program.path_start[:-1], program.path_start[1:], strict=True):
        issued: list[int] = []
        results: list[int] = []
        ready = dict.fromkeys(range(64), 0)
        for entry in range(first, last):
            op = program.entry_op[entry]
            waits = [ready[slot] for slot in range(64) if int(program.entry_wait[entry]) >> slot & 1]
            in_order = [issued[-1] + int(hold[program.entry_op[entry - 1]])] if issued else []
            width_limit = [issued[-width] + 1] if len(issued) >= width else []
            issued.append(max([0, *waits, *in_order, *width_limit]))
            results.append(issued[-1] + max(int(least_latency[op]), 1))
            slot = int(program.entry_slot[entry])
            if slot >= 0:
                ready[slot] = issued[-1] + int(least_latency[op])
        found.append((issued, max(results, default=0)))
    return found


def intervals_reference(
    trace: list[tuple[float, list[int]]], gap: int = 1, drain: bool = False
) -> tuple[list[float], list[tuple[int, float, int]]]:
    """One warp in plain Python: (latency, producers) of each instruction, in order; the first issues in cycle 1.

    Returns issue cycles, and intervals as (instructions, stall, the producer that it waits for or -1).
    """
    issue: list[float] = []
    done: list[float] = []
    found: list[tuple[int, float, int]] = []
    size = 0
    for number, (latency, sources) in enumerate(trace):
        soonest = issue[-1] + 1 if issue else 1
        latest = max(sources, key=lambda source: done[source], default=-1)
        ready = max(soonest, done[latest] + gap) if sources else soonest
        if ready > soonest and number:
            found.append((size, ready - soonest, latest))
            size = 0
        issue.append(ready)
        done.append(ready + latency)
        size += 1
    if size:
        end = max(range(len(done)), key=done.__getitem__)
        rest = done[end] - issue[-1] - 1 if drain else 0
        found.append((size, rest, end) if rest > 0 else (size, 0, -1))
    return issue, found


def interleaved_reference(program: Program, resident: int) -> list[int]:
    """`interleaved` in plain Python."""
    waiting = [
        [list(range(program.warp_access[w], program.warp_access[w + 1])) for w in range(first, last)]
        for first, last in zip(program.block_warp[:-1], program.block_warp[1:], strict=True)
    ]
    running: list[list[list[int]]] = [[] for _ in range(max(resident, 1))]
    order: list[int] = []
    while waiting or any(any(block) for block in running):
        for slot in range(len(running)):
            while waiting and not any(running[slot]):
                running[slot] = waiting.pop(0)
            order += [warp.pop(0) for warp in running[slot] if warp]
    return order


def reuse_distances_reference(lines: list[int]) -> list[int]:
    """`reuse_distances` with the stack itself, the most recent line first."""
    stack: list[int] = []
    found = []
    for line in lines:
        found.append(stack.index(line) if line in stack else COLD)
        if line in stack:
            stack.remove(line)
        stack.insert(0, line)
    return found


def window_cycles_plain(
    path: NDArray[np.int32], dep_start: NDArray[np.int64], dep_task: NDArray[np.int32], window: int
) -> int:
    """`window_cycles` by its definition, for each operation from all before it: slow, obviously right."""
    started: list[int] = []
    latest: dict[int, int] = {}
    for at, task in enumerate(path.tolist()):
        cycle = 0
        if at >= window:
            cycle = max(started[: at - window + 1]) + 1  # all of these have left
        for edge in range(int(dep_start[task]), int(dep_start[task + 1])):
            producer = int(dep_task[edge])
            if producer in latest:
                cycle = max(cycle, started[latest[producer]] + 1)
        started.append(cycle)
        latest[task] = at
    return max(started) + 1
