"""A crossbar between the SMs and the slices of the L2."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.loop_programs import STREAMING, loop_program
from ppt_gpu import load_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import checked_window, chip_of
from ppt_gpu.sm.chip.round import BEGIN
from ppt_gpu.sm.l2_sharing.camping import slice_of_lines
from ppt_gpu.sm.l2_sharing.slice_hash import POLYNOMIALS, polynomial_slice
from ppt_gpu.sm.program.machine import ONE
from ppt_gpu.sm.reference.crossbar import Crossbar, Sent
from ppt_gpu.sm.whole_chip import ChipState, run_chip

QV100 = load_gpu("gpgpusim_qv100")


def crossed(queues: list[list[Sent]], slices: int, many: bool = True) -> list[tuple[int, Sent]]:
    crossbar, passed, step = Crossbar(len(queues), slices, many), list[tuple[int, Sent]](), 0
    for sender, queue in enumerate(queues):
        for one in queue:
            crossbar.send(sender, one)
    while any(crossbar.queues):
        passed += crossbar.step(step)
        step += 1
    return passed


def test_a_packet_holds_up_those_of_its_sm_behind_it() -> None:
    """Both SMs want slice 0, whose packets take turns; the packet of SM 1 for the idle slice 1 waits for them."""
    long, behind = [Sent(10, 0, 4), Sent(10, 0, 4)], Sent(10, 1, 1)
    crossed([[long[0]], [long[1], behind]], 2)
    assert max(one.there for one in long) >= 10 + 7
    assert behind.there == long[1].there


@pytest.mark.parametrize(("slices", "late"), [((0, 2, 3), (0, 0, 0)), ((2, 0, 3), (0, 1, 1)), ((1, 1, 0), (0, 1, 2))])
def test_slices_take_their_packets_one_after_another_in_a_cycle(slices: tuple[int, ...], late: tuple[int, ...]) -> None:
    """A later one gets what has become the first packet of an SM, an earlier one only in the next cycle."""
    packets = [Sent(0, to, 1) for to in slices]
    crossed([packets], 4)
    assert tuple(one.there for one in packets) == late


def test_alone_a_packet_waits_for_nobody() -> None:
    one = Sent(5, 3, 4)
    assert crossed([[], [one]], 4) == [(1, one)]
    assert one.there == 5 + 3


def test_random_slices_get_what_a_closed_network_says() -> None:
    """As many SMs as slices, each with one request of four packets after another, for any slice."""
    rng, sms = np.random.default_rng(1), 64
    queues = [[Sent(0, int(to), 4) for to in rng.integers(0, sms, 100)] for sm in range(sms)]
    crossed(queues, sms)
    cycles = max(queue[-1].there for queue in queues)
    rate = sms * 400 / cycles
    assert rate == pytest.approx(sms * sms / (2 * sms - 1), rel=0.1)


def test_a_packet_of_a_router_holds_both_ports_until_all_of_it_is_through() -> None:
    """Three senders in turn; the last one's packet for another receiver is behind that of four flits."""
    flits, behind = [Sent(0, 0, 1, 5), Sent(0, 0, 1, 2), Sent(0, 0, 1, 5)], Sent(0, 1, 1, 2)
    passed = crossed([[flits[0]], [flits[1]], [flits[2], behind]], 2, many=False)
    assert [one.there for one in flits] == [0, 5, 7]
    assert behind.there == 12
    assert [sender for sender, _ in passed] == [0, 1, 2, 2]


def test_a_port_of_few_flits_holds_back_what_an_sm_asks_for() -> None:
    """All SMs ask one slice: how much has left them after some windows, with any port and with one of four flits."""
    left = []
    for port in (0, 4):
        one_slice = ["l2.slices=1", "dram.channels=1", "l1.mshrs=4096", "l1.reserves=false"]
        gpu = load_gpu("gpgpusim_gtx480", [f"interconnect.port={port}", *one_slice])
        program = loop_program(gpu, STREAMING, 4, 90, 8)
        chip = chip_of(program, gpu)
        state = ChipState(program, chip, 6, checked_window(None, chip), 1 << 20)
        asked = 0
        while state.shared[BEGIN] < 8000:
            begin = state.shared[BEGIN]
            state.sms.advance(state.arrays, 0, chip.sms)
            state.close()
            if state.shared[BEGIN] > begin:  # the window is over: what was asked for in it, and when it left
                asked += sum(
                    int(sm[sm[q.REQS] + (number << q.REQ_SHIFT) + q.R_TIME] < 4000 * ONE)
                    for sm in state.mems
                    for number in range(sm[q.N_REQS])
                )
        left.append(asked)
    assert left[0] > left[1] > 0


def test_the_way_to_the_l2_grows_with_the_sms() -> None:
    peak = QV100.l2.bandwidth
    assert QV100.l2_way(1) == pytest.approx(peak / 64)
    assert QV100.l2_way(80) == pytest.approx(peak * 80 / 143)
    assert load_gpu("v100").l2_way(80) == load_gpu("v100").l2.bandwidth
    assert load_gpu("gpgpusim_gtx480").l2_way(15) / 32 == pytest.approx(12 * 15 / 26)  # sectors a cycle


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


def test_windows_with_ports_are_of_one_length() -> None:
    """SMs learn after each how full theirs is."""
    chip = chip_of(loop_program(QV100, STREAMING, 1, 1, 1), QV100)
    longest = checked_window(None, chip)
    assert [checked_window(window, chip) for window in (1, longest)] == [1, longest]
    gtx480 = load_gpu("gpgpusim_gtx480")
    chip = chip_of(loop_program(gtx480, STREAMING, 1, 1, 1), gtx480)
    longest = checked_window(None, chip)
    assert checked_window(longest, chip) == longest
    with pytest.raises(PptError, match=r"interconnect\.port"):
        checked_window(longest - 1, chip)


def test_the_length_of_a_window_changes_nothing() -> None:
    """80 SMs that stream through 64 slices, in windows as long as may be and of 7 cycles."""
    program = loop_program(QV100, STREAMING, 3, 160, 8)
    chip = chip_of(program, QV100)
    long, short = (run_chip(program, chip, 2, 1 << 20, window) for window in (checked_window(None, chip), 7))
    assert long.cycles == short.cycles
    assert np.array_equal(long.block_end, short.block_end)
    assert np.array_equal(long.op_stall, short.op_stall)


def test_a_crossbar_needs_a_miss_queue() -> None:
    with pytest.raises(PptError, match=r"interconnect\.crossbar is not simulated without l1\.miss_queue"):
        load_gpu("v100", ["interconnect.crossbar=true"])


def test_an_answer_that_is_there_later_lets_others_pass() -> None:
    """Of one slice to one SM: two that are there at steps 9 and 4, and a third at 4, which comes last."""
    late, soon, third = Sent(9, 0, 1), Sent(4, 0, 1), Sent(4, 0, 1)
    passed = crossed([[late, soon, third]], 1)
    assert [one for _, one in passed] == [soon, third, late]
    assert [one.there for one in (soon, third, late)] == [4, 5, 9]
