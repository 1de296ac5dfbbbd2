"""Reads that several SMs make at the same moment, and what they take of the L2's time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.bounds.bounds import bounds
from ppt_gpu.bounds.work import work_of
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.sm.accesses.sharing import Touches
from ppt_gpu.sm.l2_sharing.in_flight import NEVER
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_lowering, seen_by_sm
from ppt_gpu.sm.lowering.inter_sm_effects import time_in_step
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.spec import load_gpu

KERNEL = code(("ld.global.f32", [0], [1]), ("ld.global.f32", [2], [1]), ("add.f32", [3], [0, 2]))
SMS = 8


def touches(*rows: tuple[int, int, int, int], stands_for: list[float]) -> Touches:
    """rows: line, sectors, sm, moment; by SM."""
    line, sectors, sm, moment = (np.array(column) for column in zip(*rows, strict=True))
    return Touches(line, sectors.astype(np.uint8), sm.astype(np.int32), moment, np.array(stands_for))


def plain(loaded, first, others: Touches, active_sms: int, resident: int, in_step: float) -> float:
    """The same, one sector after another."""
    found = []
    for line, mask in enumerate(loaded):
        for bit in range(first.shape[1]):
            if not mask >> bit & 1 or first[line, bit] == NEVER:
                continue
            asking = {
                int(sm)
                for row, sectors, sm, moment in zip(others.line, others.sectors, others.sm, others.moment, strict=True)
                if row == line and sectors >> bit & 1 and moment == first[line, bit]
            }
            sms = min(sum(others.stands_for[sm] for sm in asking) / (active_sms - 1), 1.0)
            found.append(1.0 / (1.0 + (in_step - 1.0) * (1.0 - (1.0 - sms) ** (1.0 / resident))))
    return sum(found) / len(found) if found else 1.0


def test_who_asks_at_the_same_moment_counts_for_those_it_stands_for() -> None:
    first = np.array([[3, 3], [5, NEVER]])
    others = touches((0, 1, 0, 3), (0, 1, 0, 3), (1, 1, 0, 4), (0, 3, 1, 3), stands_for=[2.0, 5.0])
    #: line 0: sector 0 by all seven others, sector 1 by five of them; line 1: none at moment 5
    expected = (1 / 0.5 + 1 / (1 - 0.5 * 5 / 7) + 1) / 3
    assert time_in_step(np.array([3, 1], np.uint8), first, others, SMS, 1, 0.5) == pytest.approx(expected)


def test_blocks_count_where_an_sm_runs_several() -> None:
    others = touches((0, 1, 0, 0), stands_for=[3.5])  # half of the SMs: 1 - sqrt(1/2) of the blocks, two on each SM
    found = time_in_step(np.array([1], np.uint8), np.zeros((1, 1), np.int64), others, SMS, 2, 2.0)
    assert found == pytest.approx(1 / (1 + 1 - 0.5**0.5))


@pytest.mark.parametrize("seed", range(20))
def test_random_touches(seed: int) -> None:
    random = np.random.default_rng(seed)
    lines, sampled, count = int(random.integers(1, 6)), int(random.integers(1, 5)), int(random.integers(0, 40))
    order = np.sort(random.integers(0, sampled, count))
    others = Touches(
        random.integers(0, lines, count).astype(np.int32), random.integers(0, 16, count).astype(np.uint8),
        order.astype(np.int32), random.integers(0, 4, count), random.uniform(1, 3, sampled),
    )  # fmt: skip
    first = random.choice(np.array([0, 1, 2, 3, NEVER]), (lines, 4))
    loaded = random.integers(0, 16, lines).astype(np.uint8)
    resident, in_step = int(random.integers(1, 4)), float(random.choice((0.8, 1.6)))
    found = time_in_step(loaded, first, others, 12, resident, in_step)
    assert found == pytest.approx(plain(loaded, first, others, 12, resident, in_step), rel=1e-12)


def program(in_step: float, common: bool):
    """A block on each of eight SMs, all reading the same two lines, or each lines of its own."""
    gpu = make_gpu()
    gpu = replace(gpu, l2=replace(gpu.l2, in_step=in_step))

    def trace(blocks: list[int]):
        def warp(block: int):
            base = (1 << 20) + (0 if common else 256 * block)
            return [0, 1, 2], [(base, UNIT, 0), (base + 128, UNIT, 0)]

        return make_trace(KERNEL, [warp(block) for block in blocks], blocks=blocks)

    others = global_accesses(KERNEL, trace(list(range(1, SMS))))
    return gpu, lower_trace(
        KERNEL, trace([0]), gpu, launch=make_launch(32, SMS), active_sms=SMS, neighbours=others, resident=1
    )


@pytest.mark.parametrize("in_step", [0.5, 1.0, 1.6])
def test_lowering_tells_reads_in_step(in_step: float) -> None:
    assert program(in_step, common=True)[1].l2_reads == pytest.approx(1 / in_step)
    assert program(in_step, common=False)[1].l2_reads == 1.0


def test_the_simulation_and_its_bound_take_as_much_longer() -> None:
    gpu, found = program(0.5, common=True)
    alone = replace(found, l2_reads=1.0)
    slow, fast = (machine_of(each, gpu, SMS, None, 0.0, gpu.l1.size) for each in (found, alone))
    assert slow.l2_cost == pytest.approx(2 * fast.l2_cost, rel=1e-3) and slow.l2_write_cost == fast.l2_write_cost

    def bound(each) -> tuple[float, str]:
        result = simulate(each, gpu, resident_blocks=1, active_sms=SMS)
        found = bounds(work_of(each, gpu), result, gpu, resident=1, active_sms=SMS)
        of_l2 = next(one for one in found if one.resource == "L2 bandwidth")
        return of_l2.cycles, of_l2.equation

    (longer, told), (shorter, usual) = bound(found), bound(alone)
    assert longer == pytest.approx(2 * shorter) and "in step" in told and usual == "bytes / bandwidth"


def test_kept_programs_and_results_know_it() -> None:
    one, other = load_gpu("v100"), load_gpu("v100", ("l2.in_step=0.5",))
    assert digest_of(seen_by_lowering, one) != digest_of(seen_by_lowering, other)
    assert digest_of(seen_by_sm, one) != digest_of(seen_by_sm, other)
