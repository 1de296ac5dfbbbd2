"""The one pass over a flattened task list behind `ppt_gpu.tasklist.graph`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry


def measure_plain(
    path: NDArray[np.int32],
    dep_start: NDArray[np.int64],
    dep_task: NDArray[np.int32],
    latency: NDArray[np.int64],
    is_load: NDArray[np.bool_],
) -> Any:
    """Dataflow limit and in-order issue of one warp in one sweep, O(entries + dependencies).

    Returns (longest [E]: dependency depth in cycles at completion, its best producer [E] (-1: none),
    depth in tasks, last completion of in-order issue, load latency summed, cycles with a load outstanding).
    """
    entries, statics = len(path), len(latency)
    longest = np.zeros(entries, np.int64)
    best = np.full(entries, -1, np.int64)
    last = np.full(statics, -1, np.int64)  # most recent execution of each static task
    depth = np.zeros(statics, np.int64)
    done = np.zeros(statics, np.int64)  # in-order completion of that execution
    deepest = finish = issue = busy = load_sum = load_end = np.int64(0)
    for e in range(entries):
        task = path[e]
        begin, level, ready = np.int64(0), np.int64(0), issue
        for k in range(dep_start[task], dep_start[task + 1]):
            producer = dep_task[k]
            at = last[producer]
            if at < 0:
                continue
            if best[e] < 0 or longest[at] > begin:
                begin, best[e] = longest[at], at
            level = max(level, depth[producer])
            ready = max(ready, done[producer])
        longest[e] = begin + latency[task]
        last[task] = e
        depth[task] = level + 1
        deepest = max(deepest, level + 1)
        done[task] = ready + latency[task]
        finish = max(finish, done[task])
        issue = ready + 1
        if is_load[task]:
            load_sum += latency[task]
            busy += max(np.int64(0), done[task] - max(ready, load_end))
            load_end = max(load_end, done[task])
    return longest, best, deepest, finish, load_sum, busy


measure = entry(measure_plain, _nrt=True)
