"""A recorded run under another memory system is what the compiled loop yields there, or is refused."""

import dataclasses
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sm_random import answered, differences, gpus, looping_programs, programs
from some_examples import cases, until

from ppt_gpu.sm.loop import skip as core_skip
from ppt_gpu.sm.loop.loop import run_core
from ppt_gpu.sm.loop.memory_replay import BEHIND, recorded, run_again, run_name
from ppt_gpu.sm.loop.pack import Packed
from ppt_gpu.sm.loop.state import State
from ppt_gpu.sm.program.machine import Machine, machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
LONG = 1 << 30
ROOM = 1 << 16


def behind(machine: Machine, other: Machine, names: frozenset[str] = BEHIND) -> Machine:
    """`machine` with the fields `names` of `other`; a cache with sets has a way at least, as of `machine_of`."""
    made = dataclasses.replace(machine, **{name: getattr(other, name) for name in names})
    l1, l2 = ((sets and max(ways, 1)) for sets, ways in ((made.l1_sets, made.l1_ways), (made.l2_sets, made.l2_ways)))
    return dataclasses.replace(made, l1_ways=l1, l2_ways=l2)


def machines(program: Program, gpu: Gpu, other: Gpu, few: list[str]) -> tuple[Machine, Machine, Machine]:
    """One, one with another memory system, and one with a few fields of that."""
    one, two = (machine_of(program, each, 3, None, 0.3, None) for each in (gpu, other))
    return one, behind(one, two), behind(one, two, frozenset(few))


def check(program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int, skip: bool) -> int:
    """How many of the two other memory systems were answered for."""
    machine, far, near = machines(program, gpu, other, few)
    with patch.multiple(core_skip, FIRST_GAP=16, STEP=4, ALIKE=6):
        raw = run_core(program, machine, resident, LONG, skip=skip, records=ROOM)
    assert differences(run_core(program, machine, resident, LONG, skip=False), raw) == []
    run = recorded(raw)
    if run is None:
        assert raw.skipped
        return 0
    same = run_again(program, machine, run)
    assert same is not None and differences(raw, same) == []
    found = 0
    for another in (far, near):
        assert run_name(another, resident) == run_name(machine, resident)
        found += answered(run_again(program, another, run), run_core(program, another, resident, LONG), raw)
    return found


GIVEN = {
    "program": st.one_of(programs, looping_programs),
    "gpu": gpus(),
    "other": gpus(),
    "few": st.lists(st.sampled_from(sorted(BEHIND)), max_size=3),
    "resident": st.integers(1, 3),
    "skip": st.booleans(),
}


def test_a_run_again_is_the_run(pytestconfig: pytest.Config) -> None:
    found = 0

    def agree(program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int, skip: bool) -> None:
        nonlocal found
        found += check(program, gpu, other, few, resident, skip)

    until(lambda: found > 5, agree, cases(40), pytestconfig, **GIVEN)


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**GIVEN)
def test_a_run_again_is_the_run_many(
    program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int, skip: bool
) -> None:
    check(program, gpu, other, few, resident, skip)


@settings(RELAXED, max_examples=15)
@given(program=programs, gpu=gpus(), other=gpus())
def test_the_schedulers_read_nothing_of_the_memory_system(program: Program, gpu: Gpu, other: Gpu) -> None:
    """What the loop has of a machine beside `mem` is the same with another memory system."""
    machine, far, _ = machines(program, gpu, other, [])
    one, two = (Packed(program, each) for each in (machine, far))
    assert (one.code == two.code).all() and (one.op_table == two.op_table).all() and one.ports == two.ports
    states = [State(program, each, packed, 2, 2).core for each, packed in ((machine, one), (far, two))]
    assert (states[0] == states[1]).all()


@settings(RELAXED, max_examples=10)
@given(program=programs, gpu=gpus())
def test_records_that_fill_their_room_are_not_whole(program: Program, gpu: Gpu) -> None:
    machine = machine_of(program, gpu, 3, None, 0.0, None)
    whole = run_core(program, machine, 2, LONG, records=ROOM).answers
    assert whole is not None
    for room in {1, max(len(whole.when), 1), len(whole.when) + 1}:
        raw = run_core(program, machine, 2, LONG, records=room)
        assert (recorded(raw) is None) == (len(whole.when) >= room)
