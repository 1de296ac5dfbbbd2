"""The critical path of one warp: how soon all its results could be there if it had the SM to itself.

In-order issue, at most `width` entries a cycle, true dependencies, the smallest latency of each operation, branches
and barriers that hold the next entry back, and no contention. No schedule of the SM can beat it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry as compiled_entry

_ONE = np.uint64(1)


class Streams(Protocol):
    """Instruction streams with their waits: a Program, or a Schedule (ppt_gpu.sm.accesses.scoreboard)."""

    @property
    def path_start(self) -> NDArray[np.int64]: ...

    @property
    def entry_op(self) -> NDArray[np.int32]: ...

    @property
    def entry_wait(self) -> NDArray[np.uint64]: ...

    @property
    def entry_slot(self) -> NDArray[np.int8]: ...


def warp_spans(
    program: Streams, least_latency: NDArray[np.int64], hold: NDArray[np.int64], width: int
) -> NDArray[np.int64]:
    """[P] least cycles from the start of a warp on each path to its last result.

    least_latency [O]: the smallest number of cycles from issue to the result. hold [O]: cycles from issue to the
    issue of the next entry, whatever it depends on.
    """
    return _spans(program, least_latency, hold, width, np.zeros(0, np.int64))


def issue_delays(
    program: Streams, least_latency: NDArray[np.int64], hold: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(delays [E], spans [P]) of a warp alone on each path, one entry a cycle at most.

    Delay: cycles from the issue of an entry to that of the next; of the last one, to the last result. They sum to the
    path's span. Arguments as in `warp_spans`.
    """
    issue = np.zeros(len(program.entry_op), np.int64)
    spans = _spans(program, least_latency, hold, 1, issue)
    delays = np.diff(issue, append=0)
    last = program.path_start[1:][np.diff(program.path_start) > 0] - 1
    delays[last] = spans[np.diff(program.path_start) > 0] - issue[last]
    return delays, spans


def _spans(
    program: Streams,
    least_latency: NDArray[np.int64],
    hold: NDArray[np.int64],
    width: int,
    issue: NDArray[np.int64],
) -> NDArray[np.int64]:
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
        issue,
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
    issue: np.ndarray,
    spans: np.ndarray,
) -> None:
    """issue: [E], or empty when nobody asks for it."""
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
            if entry < len(issue):
                issue[entry] = now
            gate = now + hold[op]
            done = now + least_latency[op]
            last = done if done > now else now + 1
            if last > finish:
                finish = last
            if entry_slot[entry] >= 0:
                ready[entry_slot[entry]] = done
        spans[path] = finish
