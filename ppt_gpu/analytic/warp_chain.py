"""The critical path of one warp: how soon all its results could be there if it had the SM to itself.

In-order issue, at most `width` entries a cycle, true dependencies, the smallest latency of each operation, branches
and barriers that hold the next entry back, and no contention. No schedule of the SM can beat it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry as compiled_entry
from ppt_gpu.sm.program import Program

_ONE = np.uint64(1)


def warp_spans(
    program: Program, least_latency: NDArray[np.int64], hold: NDArray[np.int64], width: int
) -> NDArray[np.int64]:
    """[P] least cycles from the start of a warp on each path to its last result.

    least_latency [O]: the smallest number of cycles from issue to the result. hold [O]: cycles from issue to the
    issue of the next entry, whatever it depends on.
    """
    spans = np.zeros(len(program.path_start) - 1, np.int64)
    _warp_spans(
        program.path_start,
        program.entry_op,
        program.entry_wait,
        program.entry_slot,
        np.ascontiguousarray(least_latency, np.int64),
        np.ascontiguousarray(hold, np.int64),
        width,
        np.zeros(64, np.int64),
        spans,
    )
    return spans


@compiled_entry
def _warp_spans(
    path_start: np.ndarray,
    entry_op: np.ndarray,
    entry_wait: np.ndarray,
    entry_slot: np.ndarray,
    least_latency: np.ndarray,
    hold: np.ndarray,
    width: int,
    ready: np.ndarray,
    spans: np.ndarray,
) -> None:
    for path in range(len(spans)):
        for slot in range(len(ready)):
            ready[slot] = 0
        now, used, gate, finish = 0, 0, 0, 0
        for entry in range(path_start[path], path_start[path + 1]):
            op = entry_op[entry]
            soonest = now + 1 if used == width else now
            if gate > soonest:
                soonest = gate
            wait, slot = entry_wait[entry], 0
            while wait:
                if wait & _ONE and ready[slot] > soonest:
                    soonest = ready[slot]
                wait >>= _ONE
                slot += 1
            used = used + 1 if soonest == now else 1
            now = soonest
            gate = now + hold[op]
            done = now + least_latency[op]
            last = done if done > now else now + 1
            if last > finish:
                finish = last
            if entry_slot[entry] >= 0:
                ready[entry_slot[entry]] = done
        spans[path] = finish


def warp_spans_reference(
    program: Program, least_latency: NDArray[np.int64], hold: NDArray[np.int64], width: int
) -> list[int]:
    """`warp_spans` in plain Python, for tests."""
    spans = []
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
        spans.append(max(results, default=0))
    return spans
