"""Plain versions of the compiled passes of `moments` and `in_flight`; tests hold them equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.in_flight import Asked
from ppt_gpu.sm.scoreboard import Schedule
from ppt_gpu.sm.sharing import Touches


def reference_waits_before(plan: Schedule, recorded: NDArray[np.bool_], loads: NDArray[np.bool_]) -> list[int]:
    """As `moments.waits_before`, of all paths; recorded, loads [O]."""
    found = []
    for begin, end in zip(plan.path_start[:-1], plan.path_start[1:], strict=True):
        depth, producers = 0, dict[int, int]()  # of each slot: how deep the load in it stands
        for i in range(begin, end):
            for slot in [slot for slot in producers if int(plan.entry_wait[i]) >> slot & 1]:
                depth = max(depth, producers.pop(slot) + 1)
            if recorded[plan.entry_op[i]]:
                found.append(depth)
            producers.pop(int(plan.entry_slot[i]), None)
            if plan.entry_slot[i] >= 0 and loads[plan.entry_op[i]]:
                producers[int(plan.entry_slot[i])] = depth
    return found


def reference_asked(touches: Touches, used: Sequence[int], first: Sequence[int]) -> Asked:
    """As `in_flight.asked`."""
    counts = np.zeros((2, len(used)), np.int64)
    for line in range(len(used)):
        for sm in range(len(touches.stands_for)):
            its = (touches.line == line) & (touches.sm == sm) & (touches.sectors & used[line] != 0)
            counts[:, line] += its.any(), (its & (touches.moment < first[line])).any()
    return Asked(*counts)
