"""The critical path of one warp: how soon it could issue its last instruction if it had the SM to itself.

In-order issue, at most `width` entries a cycle, true dependencies, the smallest latency of each operation, and no
contention. No schedule of the SM can beat it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.sm.program import Program


def issue_spans(program: Program, least_latency: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """[P] least cycles from the first to after the last issue of each path.

    least_latency [O]: the smallest number of cycles from issue to the issue of a dependent.
    """
    return _issue_spans(
        program.path_start,
        program.entry_op,
        program.entry_wait,
        program.entry_slot,
        np.ascontiguousarray(least_latency, np.int64),
        width,
    )


@njit(cache=True)
def _issue_spans(
    path_start: np.ndarray,
    entry_op: np.ndarray,
    entry_wait: np.ndarray,
    entry_slot: np.ndarray,
    least_latency: np.ndarray,
    width: int,
) -> np.ndarray:
    spans = np.zeros(len(path_start) - 1, np.int64)
    ready = np.empty(64, np.int64)
    for path in range(len(path_start) - 1):
        ready[:] = 0
        now, used = np.int64(0), 0
        for entry in range(path_start[path], path_start[path + 1]):
            soonest = now + 1 if used == width else now
            wait, slot = entry_wait[entry], 0
            while wait:
                if wait & np.uint64(1):
                    soonest = max(soonest, ready[slot])
                wait >>= np.uint64(1)
                slot += 1
            used = used + 1 if soonest == now else 1
            now = soonest
            if entry_slot[entry] >= 0:
                ready[entry_slot[entry]] = now + least_latency[entry_op[entry]]
        spans[path] = now + 1 if path_start[path + 1] > path_start[path] else 0
    return spans


def issue_spans_reference(program: Program, least_latency: NDArray[np.int64], width: int) -> list[int]:
    """`issue_spans` in plain Python, for tests: issue cycles as a list, one rule a line."""
    spans = []
    for first, last in zip(program.path_start[:-1], program.path_start[1:], strict=True):
        issued: list[int] = []
        ready = dict.fromkeys(range(64), 0)
        for entry in range(first, last):
            waits = [ready[slot] for slot in range(64) if int(program.entry_wait[entry]) >> slot & 1]
            in_order = issued[-1:] + [cycle + 1 for cycle in issued[-width:][:1] if len(issued) >= width]
            issued.append(max([0, *waits, *in_order]))
            slot = int(program.entry_slot[entry])
            if slot >= 0:
                ready[slot] = issued[-1] + int(least_latency[program.entry_op[entry]])
        spans.append(issued[-1] + 1 if issued else 0)
    return spans
