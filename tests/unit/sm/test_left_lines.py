"""Which lines of earlier launches a launch still finds in the L2, against an LRU list that is gone through."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.sm.left_lines import LeftLines

CAPACITY = 64
NOTHING = LeftLines(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.bool_), CAPACITY)


def by_hand(left: LeftLines, order: list[int]) -> list[bool]:
    """Is each line there when it is used first, under LRU?"""
    stack, found = left.address.tolist(), []
    for line in order:
        found.append(line in stack)
        stack = [line, *(other for other in stack if other != line)][:CAPACITY]
    return found


def test_lines_stand_where_they_were_used_last_and_stay_written() -> None:
    before = NOTHING.used(np.array([7, 9], np.uint64), np.array([True, False]))
    after = before.used(np.array([5, 3, 5, 9], np.uint64), np.array([False, True, False, False]))
    assert after.address.tolist() == [9, 5, 3, 7]
    assert after.written.tolist() == [False, False, True, True]
    assert after.dirty == 2 / CAPACITY


def test_sectors_of_a_line_are_written_one_by_one() -> None:
    once = NOTHING.used(np.array([3, 5], np.uint64), np.array([1, 0], np.uint8))
    twice = once.used(np.array([3, 5], np.uint64), np.array([6, 8], np.uint8))
    assert twice.written.tolist() == [8, 7]
    assert twice.dirty == 4 / CAPACITY


@pytest.mark.parametrize("lines", [40, 60, 70, 100])
@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_found(lines: int, backwards: bool) -> None:
    """In the same order again all or nothing; backwards, the part that the L2 holds."""
    first = np.arange(lines, dtype=np.uint64)
    left = NOTHING.used(first, np.ones(lines, np.bool_))
    second = first[::-1].copy() if backwards else first
    found = left.found(second, np.arange(lines, dtype=np.float64))
    truth = np.array(by_hand(left, second.tolist()))
    assert np.count_nonzero(found != truth) <= lines // 16  # what is touched in one moment is taken together
    assert found.any() or not truth.any()


def test_other_data_push_out_what_comes_late() -> None:
    """Half of what is used is new: of the old lines those are found to which the launch comes in time."""
    left = NOTHING.used(np.arange(CAPACITY, dtype=np.uint64), np.zeros(CAPACITY, np.bool_))
    old = np.arange(CAPACITY, dtype=np.uint64)[::-1]
    second = np.stack([old, old + np.uint64(1000)], axis=1).ravel()
    found = left.found(second, np.arange(len(second), dtype=np.float64))
    truth = np.array(by_hand(left, second.tolist()))
    assert abs(int(found.sum()) - int(truth.sum())) <= len(second) // 16
    assert 0 < found.sum() < CAPACITY


def swapped(elements: int, unread_capacity: int, launches: int) -> LeftLines:
    """Launches that read one array and write another, which change places, line by line."""
    arrays = np.arange(elements, dtype=np.uint64), np.arange(elements, dtype=np.uint64) + np.uint64(1000)
    left = LeftLines(*(np.zeros(0, kind) for kind in (np.uint64, np.uint8, np.bool_)), CAPACITY, unread_capacity)
    for number in range(launches):
        both = np.stack([arrays[number % 2], arrays[1 - number % 2]], axis=1).ravel()
        left = left.used(both, np.tile([False, True], elements))
    return left


@pytest.mark.parametrize(("elements", "found"), [(30, True), (47, True), (50, False), (70, False)])
def test_unread_lines_outlive_others_up_to_their_share(elements: int, found: bool) -> None:
    """48 of 64 lines are kept for what nobody has read; under LRU all of 2 x 47 is gone when it is named again."""
    left = swapped(elements, 48, launches=2)
    read = np.arange(elements, dtype=np.uint64)  # the second launch wrote these
    touched = 2.0 * np.arange(elements)
    assert left.found(read, touched, written_share=0.5).all() == found
    assert swapped(elements, 0, launches=2).found(read, touched, 0.5).all() == (2 * elements <= CAPACITY)
    assert len(left.address) >= min(2 * elements, CAPACITY)


def test_what_was_pushed_out_before_it_was_read_again_is_not_written_any_more() -> None:
    """Under LRU half of the L2 is written after any number of launches: the read half came from DRAM."""
    assert swapped(200, 0, launches=3).dirty == swapped(200, 0, launches=1).dirty == 0.5
    assert swapped(20, 0, launches=3).dirty == 40 / CAPACITY  # all is still there, and was written


def test_earlier_blocks_push_out_what_the_last_ones_name() -> None:
    before = NOTHING.used(np.arange(32, dtype=np.uint64), np.ones(32, np.bool_))
    last = np.arange(16, dtype=np.uint64), np.zeros(16, np.bool_)
    assert before.used(*last).dirty == 0.5
    assert before.used(*last, blocks_before=9.0).dirty == 0.25


def test_nothing_is_left_and_nothing_is_asked() -> None:
    assert not NOTHING.found(np.arange(3, dtype=np.uint64), np.zeros(3)).any()
    assert len(NOTHING.found(np.zeros(0, np.uint64), np.zeros(0))) == 0


def test_a_launch_that_comes_to_the_same_lines_again_pushes_out_no_more_than_there_are() -> None:
    """Eight rounds over 48 lines, where 64 fit: they all stay, though 384 have been touched by the end."""
    lines = np.arange(48, dtype=np.uint64)
    left = NOTHING.used(lines, np.zeros(48, np.bool_))
    touched = np.arange(48, dtype=np.float64) * 8
    assert left.found(lines, touched, most=48).all() and not left.found(lines, touched).all()
