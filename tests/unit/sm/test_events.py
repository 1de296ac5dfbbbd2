"""Warps that wait for one another in the SM: rings that bulk copies fill, copies that arrive, named barriers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from event_kernels import BYTES, COPIES, GPU, NAMED, ROUNDS, program_of, ring

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import CODE_IN_SM
from ppt_gpu.sm.program.program import EVENT_COUNTS, EVENT_WAITS, KIND_COMPUTE, events_of
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.whole_chip import simulate_chip
from ppt_gpu.spec.gpu import CodeCache, Collectors

#: a few of its SMs, as the plain loop goes through all of them cycle by cycle
CHIP = replace(GPU, sm=replace(GPU.sm, count=2))


def run(program, **options):
    fast = simulate(program, GPU, resident_blocks=1, active_sms=1, **options)
    plain = simulate(program, GPU, resident_blocks=1, active_sms=1, reference=True)
    assert fast.cycles == plain.cycles
    assert np.array_equal(fast.op_stall, plain.op_stall)
    return fast


def test_a_deeper_ring_hides_the_copies():
    cycles = {}
    for stages in (1, 2, 4):
        memory, program = program_of(ring(stages, 1), 2)
        tiles = np.arange(ROUNDS * BYTES // 4, dtype=np.float32).reshape(ROUNDS, -1)
        assert np.array_equal(memory.view("out", np.float32)[:32], tiles[:, :32].sum(axis=0))
        result = run(program)
        cycles[stages] = result.cycles
        # the first copy is waited for as a whole; then `stages` of them are on their way at a time
        assert result.cycles > ROUNDS * GPU.l2.latency / stages
        assert result.warp_cycles[STALL_REASONS.index("long_scoreboard")] > 0
    assert cycles[1] > ROUNDS * GPU.l2.latency
    assert cycles[2] < 0.7 * cycles[1]
    assert cycles[4] < 0.8 * cycles[2]


def test_a_consumer_that_computes_long_enough_decides():
    work = 100
    cycles = {stages: run(program_of(ring(stages, work), 2)[1]).cycles for stages in (1, 2, 4)}
    least = ROUNDS * work * GPU.isa.op("fp32.mul").latency
    assert cycles[1] > least + ROUNDS * GPU.l2.latency
    assert least < cycles[2] < 1.5 * least
    assert cycles[2] < cycles[1] - ROUNDS * GPU.l2.latency
    assert abs(cycles[4] - cycles[2]) < 0.03 * cycles[2]  # a bound: more stages gain nothing


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_a_chip_waits_as_one_sm_does(stages: int):
    """On one SM of a chip, the L2 of which has all lines."""
    program = program_of(ring(stages, 1), 2)[1]
    one = simulate(program, CHIP, resident_blocks=1, active_sms=1, code_at=CODE_IN_SM, constants_at=CODE_IN_SM)
    options = {"resident_blocks": 1, "code_at": CODE_IN_SM, "constants_at": CODE_IN_SM}
    every = simulate_chip(program, CHIP, **options)
    plain = simulate_chip(program, CHIP, reference=True, **options)
    assert every.cycles == plain.cycles and np.array_equal(every.op_stall, plain.op_stall)
    assert every.cycles == one.cycles and np.array_equal(every.op_stall, one.op_stall)


def test_the_copies_of_a_ring_are_the_same_for_any_window():
    program = program_of(ring(4, 1), 2)[1]
    found = [simulate_chip(program, CHIP, resident_blocks=1, window=window) for window in (None, 1, 37)]
    assert len({result.cycles for result in found}) == 1
    assert all(np.array_equal(result.op_stall, found[0].op_stall) for result in found)


def test_warps_of_a_chip_that_wait_for_ever():
    program = program_of(ring(2, 1), 2)[1]
    never = replace(program, event_count=program.event_count + 1)
    for options in ({}, {"reference": True}):
        with pytest.raises(PptError, match="the SM is stuck"):
            simulate_chip(never, CHIP, resident_blocks=1, **options)


def test_what_arrives_and_what_waits():
    program = program_of(ring(2, 1), 2)[1]
    bits = events_of(program)
    assert {program.op_name[op] for op in np.flatnonzero(bits & EVENT_COUNTS)} == {"fence.mbarrier", "load.global"}
    assert {program.op_name[op] for op in np.flatnonzero(bits & EVENT_WAITS)} == {"fence.mbarrier"}
    # a full phase: the arrival and the copy; an empty one: the consumer. The producer's first waits are for nothing
    counts = np.bincount(program.event_count, minlength=3)
    assert counts[2] == ROUNDS
    assert counts[1] == ROUNDS


def test_copies_of_lanes_arrive_when_they_are_there():
    memory, program = program_of(COPIES, 2)
    assert np.array_equal(memory.view("out", np.float32)[:32], np.arange(32, dtype=np.float32))
    with_events = run(program)
    assert program.event_count.max() == 2  # the arrival and the copy before it
    assert with_events.cycles > GPU.l2.latency
    waiting = with_events.op_stall[:, STALL_REASONS.index("long_scoreboard")].sum()
    assert waiting > GPU.l2.latency / 2


@pytest.mark.parametrize("early", [True, False])
def test_named_barriers_wait_for_who_arrives_and_not_for_its_end(early: bool):
    long = "mul.rn.f32 %f1, %f1, %f1;" * 400
    text = NAMED.replace("EARLY", long if early else "").replace("LATE", "" if early else long)
    program = program_of(text, 2)[1]
    stalled = run(program).warp_cycles[STALL_REASONS.index("barrier")]
    chain = 400 * GPU.isa.op("fp32.mul").latency
    assert stalled > 0.9 * chain if early else stalled < 0.1 * chain


def test_a_program_whose_events_do_not_fit_is_no_program():
    """Programs may come from elsewhere; the compiled loop trusts what it gets."""
    good = program_of(ring(2, 1), 2)[1]
    compute = np.flatnonzero((good.op_kind == KIND_COMPUTE) & (events_of(good) == 0))[0]
    elsewhere = good.op_event.copy()
    elsewhere[compute] = EVENT_COUNTS
    cases = {
        "event_start does not match": replace(good, event_start=good.event_start[::-1].copy()),
        "only barriers and loads": replace(good, op_event=elsewhere, **_room_for(good, elsewhere)),
        "event_of leaves its range": replace(good, event_of=np.full_like(good.event_of, len(good.event_count))),
    }
    for text, program in cases.items():
        with pytest.raises(PptError, match=text):
            simulate(program, GPU, resident_blocks=1, active_sms=1)


def _room_for(program, bits) -> dict:
    """event_start and event_of of the program if operations had events as `bits` says."""
    counts = np.array([np.count_nonzero(bits[program.entry_op[a:b]]) for a, b in pairwise(program.path_start)])
    start = np.concatenate(([0], np.cumsum(counts[program.warp_path])))
    return {"event_start": start, "event_of": np.full(start[-1], -1, np.int32)}


def test_where_programs_with_events_are_not_simulated():
    good = program_of(ring(2, 1), 2)[1]
    with pytest.raises(PptError, match="with events are simulated without collector units"):
        simulate(good, replace(GPU, collectors=Collectors(units=2), code=CodeCache()), resident_blocks=1, active_sms=1)
