"""Algorithms 1 and 2 on addresses."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ppt_gpu.models.affine.affine import Affine
from ppt_gpu.models.hong_kim.counts import Judgement, algorithm_1, algorithm_2, half_warps, judge

BLOCK = (128, 1, 1)


def address(constant: int = 0, **terms: int) -> Affine:
    """Symbols with "_" for "."."""
    return Affine(constant, tuple(sorted((name.replace("_", "."), factor) for name, factor in terms.items())))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_consecutive_words_are_coalesced_on_early_gpus(size: int) -> None:
    assert judge(address(tid_x=size, ctaid_x=128 * size), size, BLOCK, (1, 0)) == Judgement(True, 1)


@pytest.mark.parametrize(
    ("where", "size"),
    [
        (address(tid_x=1), 1),  # not a word
        (address(tid_x=8), 4),  # every other word
        (address(4, tid_x=4), 4),  # one word off
        (address(tid_x=4, ctaid_x=4), 4),  # blocks one word apart
        (address(ctaid_x=64), 4),  # all threads on one word
        (address(tid_x=-4), 4),  # backwards
        (address(tid_x=6), 4),  # one and a half words
    ],
)
def test_what_early_gpus_do_not_coalesce_makes_32_transactions(where: Affine, size: int) -> None:
    assert judge(where, size, BLOCK, (1, 1)) == Judgement(False, 32)


def test_later_gpus_make_as_few_transactions_as_the_segments_need() -> None:
    later = (1, 3)
    assert judge(address(tid_x=4), 4, BLOCK, later) == Judgement(True, 1)
    assert judge(address(4, tid_x=4), 4, BLOCK, later) == Judgement(False, 4)
    assert judge(address(tid_x=8), 4, BLOCK, later) == Judgement(True, 1)
    assert judge(address(tid_x=128), 4, BLOCK, later) == Judgement(False, 32)
    assert judge(address(tid_x=16), 16, BLOCK, later) == Judgement(False, 4)
    assert judge(address(ctaid_x=64), 4, BLOCK, later) == Judgement(True, 1)
    assert judge(address(60, tid_x=-4), 4, BLOCK, later) == Judgement(False, 4)


def test_loops_and_other_indices_only_shift() -> None:
    where = address(tid_x=4, tid_y=4096, ctaid_y=65536).plus(Affine(0, (("loop 2", 64),)))
    assert half_warps(where, 4, (16, 16, 1)) == (Fraction(1), True)
    assert half_warps(where.plus(Affine(0, (("loop 3", 32),))), 4, (16, 16, 1)) == (Fraction(1), False)


def test_half_warps_across_rows_need_rows_that_follow_each_other() -> None:
    narrow = (8, 8, 1)
    assert half_warps(address(tid_x=4, tid_y=32), 4, narrow) == (Fraction(1), True)
    assert half_warps(address(tid_x=4, tid_y=4096), 4, narrow) is None
    assert half_warps(address(ctaid_x=64), 4, narrow) == (Fraction(0), True)
    assert half_warps(address(tid_x=4, tid_z=32), 4, (8, 1, 8)) == (Fraction(1), True)


def test_parts_of_the_thread_index() -> None:
    where = Affine(0, (("tid.x div 32", 4096), ("tid.x mod 32", 4)))
    assert half_warps(where, 4, BLOCK) == (Fraction(1), True)


def test_the_bare_algorithms() -> None:
    assert algorithm_1(4, Fraction(1), True) and not algorithm_1(4, Fraction(1), False)
    assert not algorithm_1(2, Fraction(1), True)
    assert algorithm_2(2, Fraction(1), True).size == 64
    assert algorithm_2(8, Fraction(2), False).count == 3
