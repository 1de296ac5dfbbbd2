"""Rows that DRAM opens for what SMs ask of it (`ppt_gpu.sm.l2_sharing.dram_rows`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppt_gpu.sm.accesses.sharing import Touched, Users
from ppt_gpu.sm.l2_sharing.dram_rows import opens_rows, row_openings
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.load import load_gpu

ROW = 1.0  # ns
BYTES = 342.0  # a nanosecond
UNIT = 0b0011  # 64 B


def board() -> Gpu:
    gpu = load_gpu("rtx3060")
    return replace(gpu, dram=replace(gpu.dram, bandwidth=360e9, efficiency=0.95, rows_per_ns=1.0, row_bytes=2048))


def touched(address: list[int], moment: list[int] | int = 0, sm: list[int] | int = 0, sectors: int = UNIT) -> Touched:
    count = len(address)
    return Touched(
        np.array(address, np.uint64),
        np.full(count, sectors, np.uint8),
        np.broadcast_to(np.int32(sm), count).copy(),
        np.broadcast_to(np.int64(moment), count).copy(),
        np.ones(int(np.max(sm, initial=-1)) + 1),
    )


NOBODY = touched([])


def slower(mine: Touched, others: Touched = NOBODY, *, stores: bool = False, lines: float = 1.0) -> float:
    """`row_openings`; lines: how many SMs use each line."""
    address = np.unique(mine.address)
    one = np.ones(len(address))
    load = np.full(len(mine.address), not stores)
    return row_openings(mine, load, others, address, Users(one, lines * one, one), board(), 32)


@pytest.mark.parametrize("stride", [2048, 32768])
def test_pieces_of_rows_cost_an_opening_each(stride: int) -> None:
    pieces = touched([stride * k for k in range(64)])
    assert slower(pieces) == pytest.approx(ROW / (64 / BYTES))
    assert slower(replace(pieces, sectors=pieces.sectors & 1)) == pytest.approx(ROW / (32 / BYTES))


def test_whole_rows_cost_nothing() -> None:
    assert slower(touched([128 * k for k in range(64)], sectors=0b1111)) == 1.0
    assert slower(touched([])) == 1.0


def test_a_row_is_open_for_all_that_ask_at_the_same_moment() -> None:
    pieces = touched([32768 * k for k in range(64)])
    beside = touched([32768 * k + 128 for k in range(64)])
    assert slower(pieces, beside) == pytest.approx(ROW / (128 / BYTES))
    later = replace(beside, moment=beside.moment + 1)
    assert slower(pieces, later) == slower(pieces)
    two = touched([32768 * k + 128 * sm for sm in range(2) for k in range(64)], moment=[0] * 64 + [1] * 64)
    assert slower(two) == slower(pieces)  # nor is it open at the SM's own next moment


def test_many_sms_stand_behind_a_sample() -> None:
    pieces = touched([32768 * k for k in range(64)])
    beside = replace(touched([32768 * k + 128 for k in range(64)]), stands_for=np.array([9.0]))
    assert slower(pieces, beside) == 1.0


def test_what_is_written_goes_back_with_the_rest_of_its_line() -> None:
    pieces = touched([32768 * k for k in range(64)])
    assert slower(pieces, stores=True) == slower(pieces)
    assert slower(pieces, stores=True, lines=2.0) == pytest.approx(ROW / 2 / (64 / BYTES))
    assert slower(pieces, lines=2.0) == slower(pieces)  # what is read comes before the others ask


def test_boards_of_which_it_is_known() -> None:
    assert opens_rows(board())
    assert not opens_rows(replace(board(), perfect_memory=True))
    assert not opens_rows(load_gpu("v100"))
    assert not opens_rows(load_gpu("gtx1650"))  # GDDR5, from a board of GDDR6
