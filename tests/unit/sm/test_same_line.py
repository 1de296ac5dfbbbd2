"""Atomics of several SMs at the same lines: which lines get how many updates, and what that makes of one SM's share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.exec.global_accesses import global_accesses
from ppt_gpu.sm.lower import lower_trace
from ppt_gpu.sm.same_line import PART, Atomics, atomic_share
from ppt_gpu.sm.simulate import simulate, simulate_chip

LINE = 128
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
        for _, address, count, atomic in atomics((1024, UNIT), (1024, SAME), (2048, half)).updates(LINE)
    ]
    lines = [2048 + LINE * number for number in range(8)]
    assert found == [([1024, 1024, *lines], [1, 32] + [2] * 8, [0, 1] + [2] * 8)]


def test_one_counter_of_all_sms() -> None:
    """Each of eight SMs counts with the same word: its own update waits for seven others."""
    own, others = atomics((0, SAME)), atomics((0, SAME), (0, SAME))
    assert atomic_share(own, LINE, others, np.array([3.0, 4.0])) == 8.0


def test_private_words_do_not_meet() -> None:
    own, others = atomics((0, SAME), (LINE, SAME)), atomics((2 * LINE, SAME))
    assert atomic_share(own, LINE, others, np.array([7.0])) == 0.5
    assert atomic_share(own, LINE) == 0.5


def test_parts_of_many_atomics_add_up() -> None:
    count = 2 * PART + 5
    many = atomics((0, (0, *[None] * 31)))
    many = replace(many, pattern=np.zeros(count, np.int32), base=np.arange(count) % 2 * LINE)
    assert atomic_share(many, LINE) == pytest.approx((PART + 3) / count)
    assert atomic_share(many, LINE, many, np.full(count, 2.0)) == pytest.approx(3 * (PART + 3) / count)


def test_nothing_updated_takes_nothing_longer() -> None:
    assert atomic_share(atomics(), LINE) == 1.0
    assert atomic_share(atomics((0, (None,) * 32)), LINE) == 1.0


@pytest.mark.parametrize(("shared", "updates_in_a_row"), [(True, 4 * 64 * 32), (False, 64 * 32)])
def test_one_sm_and_the_chip_take_as_long(shared: bool, updates_in_a_row: int) -> None:
    """Four SMs, a block of one warp each: 64 times 32 updates of a word that all share, or of one to each block."""
    kernel = code(*[("red.global.add.u32", [], [0, 0])] * 64)
    gpu = make_gpu()
    gpu = replace(gpu, sm=replace(gpu.sm, count=4), host=replace(gpu.host, block_launch=0))
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
