"""Atomics of several SMs at the same lines: which lines get how many updates, and what that makes of one SM's share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.sm.accesses.atomic_contention import PART, Atomics, Serving, atomic_share, in_updates, units_of_lines
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.whole_chip import simulate_chip

LINE = 128
LINES = Serving(LINE)
SAME = (0,) * 32


def atomics(*accesses: tuple[int, tuple[int | None, ...]]) -> Atomics:
    """(base address, 32 offsets, None: inactive lane)."""
    masks = [sum(1 << lane for lane, offset in enumerate(lanes) if offset is not None) for _, lanes in accesses]
    return Atomics(
        np.arange(len(accesses), dtype=np.int32),
        np.array([base for base, _ in accesses], np.int64),
        np.array([[offset or 0 for offset in lanes] for _, lanes in accesses], np.int64).reshape(-1, 32),
        np.array(masks, np.uint32),
    )


def test_updates_are_counted_by_line() -> None:
    half = tuple(lane // 2 * 64 for lane in range(32))  # pairs of lanes on one address, four lanes a line
    found = [
        (address.tolist(), count.tolist(), atomic.tolist())
        for _, address, count, _, atomic in atomics((1024, UNIT), (1024, SAME), (2048, half)).updates(LINES)
    ]
    lines = [2048 + LINE * number for number in range(8)]
    assert found == [([1024, 1024, *lines], [1, 32] + [2] * 8, [0, 1] + [2] * 8)]


def test_one_counter_of_all_sms() -> None:
    """Each of eight SMs counts with the same word: its own update waits for seven others."""
    own, others = atomics((0, SAME)), atomics((0, SAME), (0, SAME))
    assert atomic_share(own, LINES, others, np.array([3.0, 4.0])) == 8.0


def test_floats_take_longer_where_lanes_meet() -> None:
    both = replace(atomics((0, SAME), (LINE, UNIT), (2 * LINE, SAME)), floats=np.array([True, True, False]))
    slow = replace(LINES, float_update=3.5)
    assert [count.tolist() for _, _, count, _, _ in both.updates(slow)] == [[112, 1, 32]]
    assert atomic_share(both, slow) == pytest.approx(112 / 145)
    assert in_updates(np.array([1, 2, 3, 32]), 2.5).tolist() == [1, 5, 8, 80]


def test_private_words_do_not_meet() -> None:
    own, others = atomics((0, SAME), (LINE, SAME)), atomics((2 * LINE, SAME))
    assert atomic_share(own, LINES, others, np.array([7.0])) == 0.5
    assert atomic_share(own, LINES) == 0.5


def test_parts_of_many_atomics_add_up() -> None:
    count = 2 * PART + 5
    many = atomics((0, (0, *[None] * 31)))
    many = replace(many, pattern=np.zeros(count, np.int32), base=np.arange(count) % 2 * LINE)
    assert atomic_share(many, LINES) == pytest.approx((PART + 3) / count)
    assert atomic_share(many, LINES, many, np.full(count, 2.0)) == pytest.approx(3 * (PART + 3) / count)


def test_nothing_updated_takes_nothing_longer() -> None:
    assert atomic_share(atomics(), LINES) == 1.0
    assert atomic_share(atomics((0, (None,) * 32)), LINES) == 1.0


def row(lanes: int) -> tuple[int | None, ...]:
    return tuple(4 * lane if lane < lanes else None for lane in range(32))


@pytest.mark.parametrize(
    ("lanes", "size", "cycles"),
    [
        (32, 128, 5),  # a line of four sectors
        (16, 64, 3),
        (4, 64, 8),  # four atomics of half a sector each
        (4, 512, 32),  # 32 of them, for two units
        (16, 512, 12),
        (32, 512, 10),
        (32, 1024, 20),  # the two units of a chunk
        (32, 2048, 20),
        (32, 4096, 20),
    ],
)
def test_units_take_a_cycle_and_one_for_each_sector(lanes: int, size: int, cycles: int) -> None:
    """As histograms take for the counts of a block, `size` bytes of them (validation/RESULTS.md)."""
    serving = Serving(LINE, 32, 24)
    start = 24 * 1024  # where the pairs begin again
    whole = atomics(*((start + address, row(lanes)) for address in range(0, size, 4 * lanes)))
    assert atomic_share(whole, serving) * len(whole.base) == pytest.approx(cycles)
    assert atomic_share(whole, serving, whole, np.full(len(whole.base), 9.0)) * len(whole.base) == pytest.approx(
        10 * cycles
    )


def test_one_word_takes_as_long_as_its_updates() -> None:
    assert atomic_share(atomics((0, SAME)), Serving(LINE, 32, 24)) == 1.0


def test_what_others_have_for_themselves_lies_anywhere() -> None:
    """Five cycles of this SM's line, and of eight others' lines a share for each of 20 units."""
    own, others = atomics((0, UNIT)), atomics((1 << 20, UNIT))
    assert atomic_share(own, Serving(LINE, 32, 20), others, np.array([8.0])) == pytest.approx(5 + 8 * 5 / 20)


@pytest.mark.parametrize("units", [1, 2, 8, 18, 24, 80])
@pytest.mark.parametrize("stride", [1, 3, 8, 24, 4096, 4096 * 24])
def test_no_stride_stays_on_one_unit(units: int, stride: int) -> None:
    chunks = np.arange(4000, dtype=np.uint64) * np.uint64(1024 * stride)
    both = np.concatenate((chunks, chunks + np.uint64(256)))
    found = np.bincount(units_of_lines(both, units), minlength=units)
    assert len(found) == units and found.max() <= 3 * len(both) / units


@pytest.mark.parametrize(("shared", "updates_in_a_row"), [(True, 4 * 64 * 32), (False, 64 * 32)])
@pytest.mark.parametrize(("kind", "time"), [("add.u32", 1), ("add.f32", 3), ("add.f64", 3), ("max.s32", 1)])
def test_one_sm_and_the_chip_take_as_long(shared: bool, updates_in_a_row: int, kind: str, time: int) -> None:
    """Four SMs, a block of one warp each: 64 times 32 updates of a word that all share, or of one to each block.

    A sum of floats takes three times as long as other updates here."""
    kernel = code(*[(f"red.global.{kind}", [], [0, 0])] * 64)
    gpu = make_gpu()
    gpu = replace(gpu, sm=replace(gpu.sm, count=4), host=replace(gpu.host, block_launch=0))
    gpu = replace(gpu, memory=replace(gpu.memory, float_atomics_per_cycle=1 / 3))
    updates_in_a_row *= time
    trace = make_trace(
        kernel, [(list(range(64)), [(0 if shared else 4096 * block, SAME, 0)] * 64) for block in range(4)]
    )
    whole = lower_trace(kernel, trace, gpu, launch=make_launch(32, 4), active_sms=4, alone=False)
    chip = simulate_chip(whole, gpu, resident_blocks=1).cycles
    one, rest = (make_trace(kernel, [(list(range(64)), [(0 if shared else 4096 * b, SAME, 0)] * 64)]) for b in (0, 1))
    rest = replace(rest, blocks=np.array([1]))
    program = lower_trace(
        kernel,
        one,
        gpu,
        launch=make_launch(32, 4),
        active_sms=4,
        neighbours=global_accesses(kernel, rest),
        neighbour_stands_for=np.array([3.0]),
    )
    single = simulate(program, gpu, resident_blocks=1, active_sms=4).cycles
    assert updates_in_a_row <= single < updates_in_a_row + 500
    assert updates_in_a_row <= chip < updates_in_a_row + 500


@pytest.mark.parametrize(("read", "posted"), [(0, True), (5, False)])
def test_nobody_waits_for_a_result_that_nobody_reads(read: int, posted: bool) -> None:
    kernel = code(("atom.global.add.u32", [5], [0, 0]), ("add.s32", [6], [read, read]))
    trace = make_trace(kernel, [([0, 1], [(0, UNIT, 0)])])
    gpu = make_gpu()
    program = lower_trace(kernel, trace, gpu, launch=make_launch(32, 1), active_sms=1)
    assert program.op_posted.tolist() == [posted, False]
    gpu, late = (replace(gpu, memory=replace(gpu.memory, store_ack=False, store_latency=n)) for n in (0, 5000))
    first, second = (simulate(program, each, resident_blocks=1, active_sms=1).cycles for each in (gpu, late))
    assert (second >= 5000 > first) if posted else second == first  # what is posted ends as stores do
