"""Cycles of strided loads that hit in the L1, against those measured on an A100 (te42kyfo/gpu-benches, gpu-strides)."""

from dataclasses import replace

import numpy as np
import pytest

from ppt_gpu.sm.lower_access import Variants, geometry, lower_accesses
from ppt_gpu.sm.lower_shapes import GLOBAL
from ppt_gpu.spec import load_gpu

#: cycles of a load of 4 B a lane at strides of 0, 1, 2, ... words
MEASURED = (
    1.02, 1.02, 2.00, 1.63, 4.00, 2.20, 2.36, 2.67, 8.0, 3.03, 3.31, 3.64, 4.00, 4.02, 4.00, 4.45, 16.0, 5.1, 5.1, 5.6,
    5.3, 6.0, 6.1, 6.2, 8.0, 7.0, 7.1, 7.3, 7.3, 8.0, 8.0, 8.5, 32.0, 8.8,
)  # fmt: skip


def cycles(stride: int, *, load: bool = True, banked: bool = True, gpu_name: str = "a100", size: int = 4) -> int:
    """Of one access of 32 lanes to words of `size` B, `stride` words apart."""
    variants = Variants(np.array([GLOBAL], np.int8), np.array([size], np.int32), np.array([load]), np.array([False]))
    nothing, offsets = np.zeros(1, np.int32), size * stride * np.arange(32, dtype=np.int64)[None, :]
    every = np.array([0xFFFFFFFF], np.uint32)
    start, gpu = np.array([1 << 20], np.int64), load_gpu(gpu_name)
    gpu = replace(gpu, l1=replace(gpu.l1, banked=banked and gpu.l1.banked))
    return int(lower_accesses(geometry(gpu), variants, nothing, nothing, start, offsets, every).cycles[0])


def test_as_measured() -> None:
    assert load_gpu("a100").l1.banked
    found = np.array([cycles(stride) for stride in range(len(MEASURED))])
    error = found / np.array(MEASURED) - 1
    assert np.abs(error).mean() < 0.08
    assert np.abs(error).max() < 0.4  # a look-up takes a whole cycle here: 1 and not 1.6 for three lines


@pytest.mark.parametrize("stride", (2, 4, 8, 16, 24, 32))
def test_lanes_in_one_bank_take_turns(stride: int) -> None:
    assert cycles(stride) == round(MEASURED[stride])


def test_stores_and_an_l1_with_its_own_memory_do_not_conflict() -> None:
    assert cycles(32, load=False) == 8
    assert cycles(32, banked=False) == 8


@pytest.mark.parametrize("gpu", ("t4", "p100"))
def test_an_l1_of_64_bytes_a_cycle(gpu: str) -> None:
    """The T4's data lie in banks, the P100's in an L1 of its own; what a warp reads leaves both at half the rate."""
    for size in (4, 8, 16):
        assert cycles(1, gpu_name=gpu, size=size) == 2 * cycles(1, size=size)
        assert cycles(1, gpu_name=gpu, size=size, load=False) == cycles(1, size=size, load=False)
