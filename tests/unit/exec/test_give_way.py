"""Lanes that wait for others of their warp give way: which path runs next, and where the waiting ones join."""

import numpy as np
import pytest

from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.schedule import FULL_MASK, _give_way

JOIN, OTHER, SPIN, NOWHERE = 7, 3, 2, -1


@pytest.mark.parametrize(
    ("live", "runs", "stack"),
    [
        # nobody stands at the join: the other path runs, the waiting one is put last
        (0b011, (OTHER, 0b010, JOIN), [[JOIN, 0b111, NOWHERE], [SPIN, 0b001, JOIN]]),
        # lane 2 stands there: it goes on, the others meet at the outer join
        (0b111, (JOIN, 0b100, NOWHERE & FULL_MASK), [[OTHER, 0b010, NOWHERE], [SPIN, 0b001, NOWHERE]]),
    ],
)
def test_the_next_path(live: int, runs: tuple[int, int, int], stack: list[list[int]]) -> None:
    row = np.zeros(max(Slot) + 1, np.int64)
    row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC], row[Slot.LIVE], row[Slot.DEPTH] = SPIN, 0b001, JOIN, live, 2
    found = np.zeros((4, 4), np.int32)
    found[:2, :3] = [[JOIN, 0b111, NOWHERE], [OTHER, 0b010, JOIN]]
    found[2, :3] = 99  # left over above the stack
    _give_way(row, found)
    assert (row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC]) == runs
    assert found[:2, :3].tolist() == stack
    assert row[Slot.DEPTH] == 2
