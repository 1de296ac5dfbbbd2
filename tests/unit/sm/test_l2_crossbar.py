"""A crossbar between the SMs and the slices of the L2."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from ppt_gpu import load_gpu
from ppt_gpu.errors import PptError
from ppt_gpu.sm.bench_programs import STREAMING, loop_program
from ppt_gpu.sm.camping import slice_of_lines
from ppt_gpu.sm.chip_machine import checked_window, chip_of
from ppt_gpu.sm.crossbar_reference import Crossbar, Sent, skew
from ppt_gpu.sm.slice_hash import POLYNOMIALS, polynomial_slice

QV100 = load_gpu("gpgpusim_qv100")


def crossed(queues: list[list[Sent]], slices: int) -> None:
    Crossbar(len(queues), slices).cross(0, [deque(queue) for queue in queues])


def test_a_packet_holds_up_those_of_its_sm_behind_it() -> None:
    """Both SMs want slice 0, whose packets take turns; the packet of SM 1 for the idle slice 1 waits for them."""
    long, behind = [Sent(10, 0, 4), Sent(10, 0, 4)], Sent(10, 1, 1)
    crossed([[long[0]], [long[1], behind]], 2)
    assert max(one.there + skew(sm) for sm, one in enumerate(long)) >= 10 + 7
    assert behind.there > long[1].there


def test_alone_a_packet_waits_for_nobody() -> None:
    """Nor for how far its SM is away, which is in the latency."""
    one = Sent(5, 3, 4)
    crossed([[], [one]], 4)
    assert one.there == 5 + 3


def test_random_slices_get_what_a_closed_network_says() -> None:
    """As many SMs as slices, each with one request of four packets after another, for any slice."""
    rng, sms = np.random.default_rng(1), 64
    queues = [[Sent(0, int(to), 4) for to in rng.integers(0, sms, 100)] for _ in range(sms)]
    crossed(queues, sms)
    cycles = max(queue[-1].there for queue in queues)
    rate = sms * 400 / cycles
    assert rate == pytest.approx(sms * sms / (2 * sms - 1), rel=0.1)
    assert max(skew(sm) for sm in range(sms)) == 3


def test_the_way_to_the_l2_grows_with_the_sms() -> None:
    peak = QV100.l2.bandwidth
    assert QV100.l2_way(1) == pytest.approx(peak / 64)
    assert QV100.l2_way(80) == pytest.approx(peak * 80 / 143)
    assert load_gpu("v100").l2_way(80) == load_gpu("v100").l2.bandwidth


@pytest.mark.parametrize("bits", POLYNOMIALS)
def test_no_stride_of_a_power_of_two_meets_a_slice_twice(bits: int) -> None:
    slices = 1 << bits
    for shift in range(20):
        chunk = np.arange(slices, dtype=np.uint64) << np.uint64(shift)
        assert len(set(polynomial_slice(chunk, slices, slices).tolist())) == slices
        assert bits != 6 or len(set(polynomial_slice(chunk, slices, QV100.dram.channels).tolist())) == slices


def test_the_lowest_bits_are_those_of_the_channel() -> None:
    found = slice_of_lines(np.arange(64, dtype=np.uint64) * np.uint64(256), QV100, 128)
    assert found.tolist() == [2 * (number % 32) + number // 32 for number in range(64)]


def test_a_polynomial_needs_a_power_of_two() -> None:
    with pytest.raises(PptError, match="no power of two"):
        load_gpu("gpgpusim_qv100", ["l2.slices=48"])
    with pytest.raises(PptError, match="does not divide"):
        load_gpu("gpgpusim_qv100", ["dram.channels=24"])


def test_windows_with_a_crossbar_are_of_one_length() -> None:
    chip = chip_of(loop_program(QV100, STREAMING, 1, 1, 1), QV100)
    longest = checked_window(None, chip)
    assert checked_window(longest, chip) == longest
    with pytest.raises(PptError, match="crossbar"):
        checked_window(longest - 1, chip)
