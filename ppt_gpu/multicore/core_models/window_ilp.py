"""Instruction-level parallelism in a window: how many operations of a thread could start in a cycle.

As the tool MICA measures it (Hoste and Eeckhout, IEEE Micro 2007; Blem, section 4.1.1): operations take one cycle,
units are without limit, and an operation enters the window when the one `window` places before it and all before that
have started. In a window of 2 this is 2 minus the probability that an operation depends on the one before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.errors import PptError
from ppt_gpu.tasklist.flat import FlatTaskList

#: windows in the dependence profile of a representation
WINDOWS = (2, 4, 8, 16, 32, 64, 128, 256)


@entry
def window_cycles(
    path: NDArray[np.int32],
    dep_start: NDArray[np.int64],
    dep_task: NDArray[np.int32],
    last: NDArray[np.int64],
    entered: NDArray[np.int64],
) -> Any:
    """Cycles until the last operation has started.

    last [S]: 0; becomes the cycle after the latest start of each task. entered [window]: 0; becomes, in a ring, the
    cycle after which an operation and all before it have started.
    """
    window = len(entered)
    done = np.int64(0)  # the cycle after which all operations so far have started
    for at in range(len(path)):
        task = path[at]
        slot = at % window
        cycle = entered[slot]
        for edge in range(dep_start[task], dep_start[task + 1]):
            ready = last[dep_task[edge]]
            if ready > cycle:
                cycle = ready
        last[task] = cycle + 1
        if cycle + 1 > done:
            done = cycle + 1
        entered[slot] = done
    return done


def window_ilp(flat: FlatTaskList, window: int) -> float:
    """Operations / cycles of one warp of `flat` in a window. Raises PptError for a window below 1, or no operations."""
    if window < 1 or not len(flat.path):
        raise PptError(f"a window of {window} over {len(flat.path)} operations")
    last = np.zeros(len(flat.tasks), np.int64)
    entered = np.zeros(window, np.int64)
    cycles = window_cycles(flat.path, flat.dep_start, flat.dep_task, last, entered)
    return len(flat.path) / int(cycles)


def profile(flat: FlatTaskList) -> dict[int, float]:
    """ILP by window, for all of WINDOWS."""
    return {window: window_ilp(flat, window) for window in WINDOWS}
