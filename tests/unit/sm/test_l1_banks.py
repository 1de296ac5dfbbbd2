"""Cycles of strided loads that hit in the L1, against those measured on an A100 (te42kyfo/gpu-benches, gpu-strides)."""

from dataclasses import replace

import numpy as np
import pytest
from reference.lower import reference_look_ups

from ppt_gpu.sm.accesses.access import BY_L1, PAST_L1, STAYS, Variants, geometry, lower_accesses
from ppt_gpu.sm.accesses.shapes import GLOBAL
from ppt_gpu.spec import load_gpu

#: cycles of a load of 4 B a lane at strides of 0, 1, 2, ... words
MEASURED = (
    1.02, 1.02, 2.00, 1.63, 4.00, 2.20, 2.36, 2.67, 8.0, 3.03, 3.31, 3.64, 4.00, 4.02, 4.00, 4.45, 16.0, 5.1, 5.1, 5.6,
    5.3, 6.0, 6.1, 6.2, 8.0, 7.0, 7.1, 7.3, 7.3, 8.0, 8.0, 8.5, 32.0, 8.8,
)  # fmt: skip


def cycles(
    stride: int, *, load: bool = True, banked: bool = True, gpu_name: str = "a100", size: int = 4, first: int = 0
) -> int:
    """Of one access of 32 lanes to words of `size` B, `stride` words apart, from word `first` on."""
    variants = Variants(
        np.array([GLOBAL], np.int8),
        np.array([size], np.int32),
        np.array([load]),
        np.array([False]),
        np.zeros(1, np.int8),
    )
    nothing, offsets = np.zeros(1, np.int32), size * stride * np.arange(32, dtype=np.int64)[None, :]
    every = np.array([0xFFFFFFFF], np.uint32)
    start, gpu = np.array([(1 << 20) + size * first], np.int64), load_gpu(gpu_name)
    gpu = replace(gpu, l1=replace(gpu.l1, banked=banked and gpu.l1.banked))
    return int(lower_accesses(geometry(gpu), variants, nothing, nothing, start, offsets, every).cycles[0])


def four_warps(stride: int) -> float:
    """The mean of four warps next to one another, at eight alignments, as in gpu-strides."""
    starts = [32 * warp * stride + 4 * k for warp in range(4) for k in range(8)]
    return sum(cycles(stride, first=first) for first in starts) / len(starts)


def test_as_measured() -> None:
    assert load_gpu("a100").l1.banked
    found = np.array([four_warps(stride) for stride in range(len(MEASURED))])
    error = found / np.array(MEASURED) - 1
    assert np.abs(error).mean() < 0.015
    assert np.abs(error).max() < 0.05


def test_lines_meet_in_sets_of_the_tags() -> None:
    """Lines 5 apart fold to one set of four; those next to one another to all; a load and a store alike."""
    first = {(1 << 13) + 5 * lane for lane in range(3)}
    assert reference_look_ups(first, 4) == 3
    assert reference_look_ups({5 * lane for lane in range(4)}, 4) == 4
    assert reference_look_ups(set(range(4)), 4) == 1
    lines = {((1 << 20) + 4 * 161 * lane) // 128 for lane in range(32)}  # about 5 apart
    assert cycles(161, load=False) == cycles(161) == reference_look_ups(lines, 4) > len(lines) // 4


@pytest.mark.parametrize("stride", (2, 4, 8, 16, 24, 32))
def test_lanes_in_one_bank_take_turns(stride: int) -> None:
    assert cycles(stride) == round(MEASURED[stride])


def test_stores_and_an_l1_with_its_own_memory_have_no_conflicts_of_banks() -> None:
    assert cycles(32, load=False) == 8
    assert cycles(32, banked=False) == 8


@pytest.mark.parametrize("gpu", ("t4", "p100"))
def test_an_l1_of_64_bytes_a_cycle(gpu: str) -> None:
    """The T4's data lie in banks, the P100's in an L1 of its own; what a warp reads leaves both at half the rate."""
    for size in (4, 8, 16):
        assert cycles(1, gpu_name=gpu, size=size) == 2 * cycles(1, size=size)
        assert cycles(1, gpu_name=gpu, size=size, load=False) == cycles(1, size=size, load=False)


def test_copies_to_shared_memory_are_written_there() -> None:
    """16 B a lane: two lanes a row of 32 B, the rows 2 KiB apart: four rows at a time, of which all bytes lie in the
    same banks of the L1; then 512 B into shared memory, 128 a pass. As counted on an L4 (published: warptiles).
    What does not come by the L1 is not read there."""
    gpu, nothing, lane = load_gpu("l4"), np.zeros(1, np.int32), np.arange(32, dtype=np.int64)
    rows, start, every = (
        lane[None, :] // 2 * 2048 + lane % 2 * 16,
        np.array([1 << 20]),
        np.array([0xFFFFFFFF], np.uint32),
    )
    for onward, expected in ((STAYS, 16), (BY_L1, 20), (PAST_L1, 4)):
        variants = Variants(
            np.array([GLOBAL], np.int8),
            np.array([16], np.int32),
            np.array([True]),
            np.array([False]),
            np.array([onward], np.int8),
        )
        assert lower_accesses(geometry(gpu), variants, nothing, nothing, start, rows, every).cycles[0] == expected
