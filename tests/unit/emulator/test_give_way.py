"""Lanes that wait for others of their warp give way: which path runs next, and where the waiting ones join."""

import numpy as np
import pytest

from ppt_gpu.emulator.analysis.divergence import Path, give_way
from ppt_gpu.emulator.analysis.spin_loops import Waiting
from ppt_gpu.emulator.memory.warp_context import FULL_MASK, Slot
from ppt_gpu.emulator.run.schedule import let_others_run

JOIN, OTHER, SPIN, NOWHERE = 7, 3, 2, -1
WAITING = Waiting(*((False,) * 9 for _ in range(6)))


def spinning():
    return Path(SPIN, 0b001, JOIN, 16)


def test_a_pending_path_runs_before_lanes_at_the_join():
    stack = [Path(JOIN, 0b111, NOWHERE, 16), Path(OTHER, 0b010, JOIN, 16)]
    assert give_way(spinning(), stack, 0b111, 0, split=True) == Path(OTHER, 0b010, JOIN, 16)
    assert stack == [Path(JOIN, 0b111, NOWHERE, 16), spinning()]


def test_lanes_at_the_join_go_on_alone_and_the_others_still_meet_there():
    stack = [Path(JOIN, 0b111, NOWHERE, 0)]
    assert give_way(spinning(), stack, 0b101, 0, split=True) == Path(JOIN, 0b100, NOWHERE, 0)
    assert stack == [Path(JOIN, 0b001, NOWHERE, 0), spinning()]


@pytest.mark.parametrize(("live", "blocked", "split"), [(0b111, 0, False), (0b001, 0, True), (0b111, 0b110, True)])
def test_nobody_else_can_run(live, blocked, split):
    stack = [Path(JOIN, 0b111, NOWHERE, 0)]
    assert give_way(spinning(), stack, live, blocked, split=split) is None
    assert stack == [Path(JOIN, 0b111, NOWHERE, 0)]


def test_lanes_at_a_join_are_not_forgotten_for_pending_paths():
    stack = [Path(JOIN, 0b111, NOWHERE, 0), Path(OTHER, 0b010, JOIN, 0)]
    assert give_way(spinning(), stack, 0b111, 0, split=True, eager=True) == Path(JOIN, 0b100, NOWHERE, 0)
    assert stack == [Path(JOIN, 0b011, NOWHERE, 0), Path(OTHER, 0b010, JOIN, 0), spinning()]


def test_every_pending_path_gets_its_turn():
    stack = [Path(JOIN, 0b1111, NOWHERE, 0), *(Path(10 + k, 1 << k, JOIN, 0) for k in (3, 2, 1))]
    running, seen = spinning(), []
    for _ in range(8):
        running = give_way(running, stack, 0b1111, 0, split=True)
        seen.append(running.point)
    assert seen == [13, 12, 11, SPIN] * 2
    assert stack[0] == Path(JOIN, 0b1111, NOWHERE, 0)


def test_the_row_of_compiled_code_changes_likewise():
    row = np.zeros(max(Slot) + 1, np.int64)
    row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC], row[Slot.LIVE], row[Slot.DEPTH] = SPIN, 0b001, JOIN, 0b111, 2
    row[Slot.FRAME_OFFSET], row[Slot.LOWEST] = 32, 2
    found = np.zeros((4, 4), np.int32)
    found[:2] = [[JOIN, 0b111, NOWHERE, 0], [OTHER, 0b010, JOIN, 16]]
    found[2] = 99  # left over above the stack
    assert let_others_run(row, found, WAITING, at_barrier=False)
    assert (row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC], row[Slot.FRAME_OFFSET]) == (OTHER, 0b010, JOIN, 16)
    assert found[:2].tolist() == [[JOIN, 0b111, NOWHERE, 0], [SPIN, 0b001, JOIN, 32]]
    assert row[Slot.DEPTH] == row[Slot.LOWEST] == 2


def test_only_who_has_waited_since_the_turn_began_runs_instead():
    """A loop that goes round many times a turn parts and joins its lanes each time: nobody waits for anybody."""
    stack = [Path(OTHER, 0b1000, JOIN, 0), Path(JOIN, 0b111, NOWHERE, 0)]
    assert give_way(spinning(), stack, 0b1111, 0, split=True, settled=0) is None
    assert len(stack) == 2
    assert give_way(spinning(), stack, 0b1111, 0, split=True, settled=1) == Path(OTHER, 0b1000, JOIN, 0)


def test_lanes_at_a_barrier_count_as_all_when_nobody_else_can_come():
    row = np.zeros(max(Slot) + 1, np.int64)
    row[Slot.RESUME], row[Slot.MASK], row[Slot.RPC], row[Slot.LIVE], row[Slot.DEPTH] = SPIN, 0b001, JOIN, FULL_MASK, 1
    row[Slot.ARRIVED] = 0b001
    found = np.array([[JOIN, -1, NOWHERE, 0]], np.int32)
    assert not let_others_run(row, found, WAITING, at_barrier=True)
    assert row[Slot.ARRIVED] == 0
    assert (row[Slot.RESUME], row[Slot.MASK]) == (SPIN, 0b001)
