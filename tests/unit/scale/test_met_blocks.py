"""Blocks of a line that touch what a block touches, from the addresses of a few blocks."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ppt_gpu.common.paths import data_dir
from ppt_gpu.pipeline import predict
from ppt_gpu.scale.blocks.distribution import spread_grid
from ppt_gpu.scale.blocks.neighbours import MOST, met_blocks, neighbour_blocks

BLOCKS = list(range(0, 800, 80))
BYTES = 1024  # a block's own elements


def _accesses(*offsets: int, step: int = BYTES) -> Callable[[int], NDArray[np.int64]]:
    return lambda k: (1 << 32) + BLOCKS[k] * step + np.array(offsets, np.int64)


def test_rows_of_a_picture_are_as_many_blocks_apart_as_a_row_has() -> None:
    row = 12 * BYTES
    found = met_blocks(_accesses(0, -4, 4, -row, row), BLOCKS, 4096)
    assert {-12, 12, -24, 24} <= set(found) and {abs(distance) for distance in found[:2]} == {12}


def test_what_lies_between_two_blocks_is_met_by_both() -> None:
    assert set(met_blocks(_accesses(0, 5 * BYTES + BYTES // 2), BLOCKS, 4096)) == {5, 6, -5, -6}


@pytest.mark.parametrize(
    "offsets",
    [
        (0, -4, 4),  # of neighbours, which are known anyway
        (0, 4096 * BYTES, 2 * 4096 * BYTES),  # turns of a loop over the grid
        (0,),
    ],
)
def test_nobody_else_is_met(offsets: tuple[int, ...]) -> None:
    assert met_blocks(_accesses(*offsets), BLOCKS, 4096) == []


def test_blocks_on_both_sides_of_a_bit_meet_each_other() -> None:
    def butterfly(k: int) -> NDArray[np.int64]:
        return np.array([BLOCKS[k], BLOCKS[k] ^ 256], np.int64) * BYTES

    assert set(met_blocks(butterfly, BLOCKS, 4096)) == {-256, 256}


def test_no_more_than_so_many_and_none_of_blocks_that_tell_nothing() -> None:
    many = tuple(BYTES * 7 * k * k for k in range(12))
    assert len(met_blocks(_accesses(*many), BLOCKS, 4096)) == 2 * MOST
    assert met_blocks(_accesses(0, 7 * BYTES), BLOCKS[:1], 4096) == []
    assert met_blocks(lambda k: np.zeros(k, np.int64), BLOCKS, 4096) == []  # other numbers of accesses
    assert met_blocks(_accesses(0, 7 * BYTES, step=0), BLOCKS, 4096) == []  # a table


def test_their_sms_are_sampled_and_they_themselves_whichever_wave_they_are_in() -> None:
    spread = spread_grid(4096, 8, 80)
    own = [80 * k for k in range(24, 32)]
    found = neighbour_blocks(spread, own, (4096, 1, 1), 12, met=(256, -256))
    blocks = {other.block for other in found}
    assert {16, 64} <= {other.offset for other in found if other.stands_for == 1.0}
    assert {block + 256 for block in own} | {block - 256 for block in own} <= blocks
    assert len(found) == len({(other.block, other.offset) for other in found})


def test_few_blocks_are_held_against_many_sms() -> None:
    """Two blocks an SM of a product: each of 131 others shares a row or a column of tiles with few, and all lines are
    read once, of two factors of 4 MiB."""
    found = predict(data_dir("validation") / "levels" / "product_rows.toml", "h200").main
    assert found.value("memory.dram_read_bytes") == pytest.approx(2 * 4 * 1024**2, rel=0.10)
