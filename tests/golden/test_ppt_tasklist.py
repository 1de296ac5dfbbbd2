"""PPT GPU module, figure 5: A[tid] += 10; B[tid] += 10 as a task list (SPEC.md section 5.1)."""

from __future__ import annotations

import numpy as np
from goldens import golden

from ppt_gpu.common.paths import data_dir
from ppt_gpu.tasklist.flat import flatten, producers
from ppt_gpu.tasklist.graph import measures
from ppt_gpu.tasklist.text import read_tasklist

NAMES = {"load.global": "GLOB_MEM_ACCESS", "store.global": "GLOB_MEM_ACCESS", "fp32.add": "fALU"}


def test_figure_5() -> None:
    flat = flatten(read_tasklist(data_dir("tasklists") / "fig5.tl"))
    start, producer = producers(flat)
    found = [[NAMES[task.op], *producer[start[i] : start[i + 1]].tolist()] for i, task in enumerate(flat.tasks)]
    assert found == golden("ppt.fig5")["expected"]["tasklist"]


def test_the_two_halves_of_figure_5_are_independent() -> None:
    """Six tasks, the longest chain has three: ILP 2. Task 4 issues before task 3 is complete."""
    flat = flatten(read_tasklist(data_dir("tasklists") / "fig5.tl"))
    load, add, store = 230, 9, 1  # K40 in the original code: ram_cycles 230, ALU 9 (golden ppt.hw.lanl)
    found = measures(flat, np.array([load, add, store] * 2))
    assert found.critical_tasks == 3
    assert found.ilp == 2.0
    assert found.critical_path == load + add + store
    # in order: load at 0, add at 230, store at 239; the second load follows at 240, the second store at 479
    assert found.in_order == 2 * (load + add + store)
    assert found.mlp == 1.0  # the first add holds the second load back
