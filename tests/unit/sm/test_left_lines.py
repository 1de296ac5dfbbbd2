"""Which lines of earlier launches a launch still finds in the L2, against an LRU list that is gone through."""

from __future__ import annotations

from collections import OrderedDict
from itertools import cycle, islice
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from ppt_gpu import load_gpu
from ppt_gpu.sm.l2_sharing.l2_sets import known_sets
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.workload.workload import Range

CAPACITY = 64
NOTHING = LeftLines(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.bool_), CAPACITY)


def found_in(left: LeftLines, use: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """[L] which of these lines a launch that reads them finds."""
    return left.course(use, np.arange(len(use), dtype=np.float64), np.zeros(len(use), np.bool_)).found


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
    found = found_in(left, second)
    truth = np.array(by_hand(left, second.tolist()))
    assert np.count_nonzero(found != truth) <= lines // 16  # what is touched in one moment is taken together
    assert found.any() or not truth.any()


def test_other_data_push_out_what_comes_late() -> None:
    """Half of what is used is new: of the old lines those are found to which the launch comes in time."""
    left = NOTHING.used(np.arange(CAPACITY, dtype=np.uint64), np.zeros(CAPACITY, np.bool_))
    old = np.arange(CAPACITY, dtype=np.uint64)[::-1]
    second = np.stack([old, old + np.uint64(1000)], axis=1).ravel()
    found = found_in(left, second)
    truth = np.array(by_hand(left, second.tolist()))
    assert abs(int(found.sum()) - int(truth.sum())) <= len(second) // 16
    assert 0 < found.sum() < CAPACITY


def swapped(elements: int, dirty_capacity: int, launches: int, capacity: int = CAPACITY) -> LeftLines:
    """Launches that read one array and write another, which change places, line by line."""
    left = LeftLines(*(np.zeros(0, kind) for kind in (np.uint64, np.uint8, np.bool_)), capacity, dirty_capacity)
    for number in range(launches):
        left = left.used(both_arrays(elements, number), np.tile([False, True], elements))
    return left


def both_arrays(elements: int, number: int) -> NDArray[np.uint64]:
    """What launch `number` of them uses, in order."""
    arrays = np.arange(elements, dtype=np.uint64), np.arange(elements, dtype=np.uint64) + np.uint64(100_000)
    return np.stack([arrays[number % 2], arrays[1 - number % 2]], axis=1).ravel()


class Policy:
    """An L2 line by line: lines replace the oldest clean one of the older half; over the limit any is cleaned."""

    def __init__(self, capacity: int, limit: int) -> None:
        self.capacity, self.limit, self.lines, self.random = capacity, limit, OrderedDict[int, bool](), Random(1)

    def use(self, line: int, write: bool) -> bool:
        """Was the line there."""
        there = line in self.lines
        if not there and len(self.lines) == self.capacity:
            older = list(islice(self.lines, self.capacity // 2))
            victim = next((other for other in older if not self.lines[other]), older[0])
            del self.lines[victim]
        self.lines[line] = self.lines.get(line, False) or write
        self.lines.move_to_end(line)
        dirty = [other for other, written in self.lines.items() if written]
        if len(dirty) > self.limit:
            self.lines[self.random.choice([other for other in dirty if other != line])] = False
        return there


@pytest.mark.parametrize("elements", [60, 100, 130, 150, 180, 186, 200, 220])
def test_dirty_lines_stay_as_in_an_l2_that_keeps_them_line_by_line(elements: int) -> None:
    """256 lines, 192 of them dirty at most: what launch 11 finds of what the one before wrote."""
    policy, launches = Policy(256, 192), 11
    for number in range(launches + 1):
        there = [
            policy.use(line, write) for line, write in zip(both_arrays(elements, number).tolist(), cycle((False, True)))
        ]
    left = swapped(elements, 192, launches, 256)
    use = both_arrays(elements, launches)
    course = left.course(use, np.arange(len(use), dtype=np.float64), np.tile([False, True], elements))
    assert course.found[::2].mean() == pytest.approx(np.mean(there[::2]), abs=0.1)
    assert left.dirty_lines <= 192 * 1.1
    plain = swapped(elements, 0, launches, 256)
    assert found_in(plain, use)[::2].all() == (2 * elements <= 256)


@pytest.mark.parametrize(("elements", "stays"), [(120, True), (150, False)])
def test_lines_written_again_before_anybody_has_read_them_go_as_others(elements: int, stays: bool) -> None:
    """The same launch again and again: 300 lines in an L2 of 256 are gone each time, and all are written back."""
    left, use, writes = swapped(elements, 192, 1, 256), both_arrays(elements, 0), np.tile([False, True], elements)
    left = left.used(use, writes)
    course = left.course(use, np.arange(len(use), dtype=np.float64), writes)
    assert course.found.all() == course.dirty[1::2].all() == stays
    assert course.found.any() == course.dirty.any() == stays
    assert course.lost[1::2].all() != stays


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
    assert not found_in(NOTHING, np.arange(3, dtype=np.uint64)).any()
    assert len(found_in(NOTHING, np.zeros(0, np.uint64))) == 0


def test_a_launch_that_comes_to_the_same_lines_again_pushes_out_no_more_than_there_are() -> None:
    """Eight rounds over 48 lines, where 64 fit: they all stay, though 384 have been touched by the end."""
    lines = np.arange(48, dtype=np.uint64)
    left = NOTHING.used(lines, np.zeros(48, np.bool_))
    touched = np.arange(48, dtype=np.float64) * 8
    reads = np.zeros(48, np.bool_)
    assert (
        left.course(lines, touched, reads, most=48).found.all() and not left.course(lines, touched, reads).found.all()
    )


def test_lines_of_one_set_push_out_each_other() -> None:
    """Two more lines of one set than it has ways, in an L2 that is empty otherwise: the first two are gone."""
    gpu = load_gpu("gpgpusim_qv100")
    sets = known_sets(gpu, 128, 32)
    assert sets is not None
    lines = np.arange(gpu.l2.size // 128 * 2, dtype=np.uint64) * np.uint64(128)
    own = lines[sets.of(lines) == 77][: gpu.l2.ways + 2]
    nothing = LeftLines(lines[:0], np.zeros(0, np.uint8), np.zeros(0, np.bool_), gpu.l2.size // 128, sets=sets)
    left = nothing.used(own, np.ones(len(own), np.uint8))
    assert left.address.tolist() == own[:1:-1].tolist()
    assert found_in(left, own[2:3]).all() and not found_in(left, own[:1]).any()
    assert sets.rank(own).tolist() == list(range(len(own)))


def test_host_copies_fill_every_set() -> None:
    """Of a buffer of twice the L2 its last half is there: as many lines in each set as it has ways."""
    gpu = load_gpu("gpgpusim_qv100")
    sets = known_sets(gpu, 128, 32)
    assert sets is not None
    area = Range("data", 1 << 24, 2 * gpu.l2.size, True)
    left = LeftLines.copied([area], gpu.l2.size // 128, 128, sets=sets)
    assert (np.bincount(sets.of(left.address)) == gpu.l2.ways).all()
    assert left.address.min() >= area.start + gpu.l2.size


def test_nobody_knows_the_sets_of_hardware() -> None:
    assert known_sets(load_gpu("v100"), 128, 32) is None
