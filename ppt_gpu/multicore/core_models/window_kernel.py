"""The pass over a task list behind `ppt_gpu.multicore.core_models.window_ilp`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry


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
