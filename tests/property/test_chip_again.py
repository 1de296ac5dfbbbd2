"""A recorded run of a whole chip with another L2 or DRAM is what the compiled loop yields there, or is refused."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sm_random import answered, differences, programs
from some_examples import cases, until
from test_chip_agreement import LONG, RELAXED, chips

from ppt_gpu.sm.chip.machine import Chip, checked_window, chip_of
from ppt_gpu.sm.chip.memory import SmMemory
from ppt_gpu.sm.chip.memory_replay import BELOW, chip_run_name, recorded_chip, run_chip_again
from ppt_gpu.sm.loop.memory import _PARAMETERS
from ppt_gpu.sm.program.machine import Machine
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.run_chip import run_chip
from ppt_gpu.spec.gpu import Gpu

ROOM = 1 << 16
#: fields of a chip that say what its SMs are
OF_SMS = ("sms", "first_slots", "ramp", "horizon")


def _sm(machine: Machine, other: Machine) -> Machine:
    return dataclasses.replace(machine, **{name: getattr(other, name) for name in BELOW})


def another(chip: Chip, other: Chip) -> Chip:
    """The SMs of `chip` above what is below those of `other`."""
    below = dataclasses.replace(other.below, l2_latency=chip.below.l2_latency)
    kept = {name: getattr(chip, name) for name in OF_SMS}
    return dataclasses.replace(other, sm=_sm(chip.sm, other.sm), below=below, **kept)


def with_few(chip: Chip, other: Chip, few: list[str]) -> Chip:
    """`chip` with a few numbers of another L2 and DRAM."""
    changes = {name: getattr(other.below, name) for name in few}
    return dataclasses.replace(chip, below=dataclasses.replace(chip.below, **changes))


def check(program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int) -> int:
    """How many of the two other chips were answered for."""
    chip = chip_of(program, gpu)
    window = checked_window(None, chip)
    raw = run_chip(program, chip, resident, LONG, window, ROOM)
    assert differences(run_chip(program, chip, resident, LONG, window), raw) == []
    run = recorded_chip(raw)
    assert run is not None
    same = run_chip_again(program, chip, run, window)
    assert same is not None and differences(raw, same) == []
    found = 0
    for there in (another(chip, chip_of(program, other)), with_few(chip, chip_of(program, other), few)):
        if min(there.below.dram_latency, there.below.l2_latency) < chip.horizon:
            continue  # the window would be too long
        assert chip_run_name(there, resident, window) == chip_run_name(chip, resident, window)
        whole = run_chip(program, there, resident, LONG, window)
        found += answered(run_chip_again(program, there, run, window), whole, raw)
    return found


GIVEN = {
    "program": programs,
    "gpu": chips(),
    "other": chips(),
    "few": st.lists(st.sampled_from(sorted(BELOW - {"l2_sets", "l2_ways"})), max_size=3),
    "resident": st.integers(1, 3),
}


def test_a_chip_again_is_the_chip(pytestconfig: pytest.Config) -> None:
    found = 0

    def agree(program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int) -> None:
        nonlocal found
        found += check(program, gpu, other, few, resident)

    until(lambda: found > 10, agree, cases(60), pytestconfig, **GIVEN)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**GIVEN)
def test_a_chip_again_is_the_chip_many(program: Program, gpu: Gpu, other: Gpu, few: list[str], resident: int) -> None:
    check(program, gpu, other, few, resident)


@settings(RELAXED, max_examples=15)
@given(program=programs, gpu=chips(), other=chips())
def test_what_is_inside_an_sm_is_the_same_above_another_l2(program: Program, gpu: Gpu, other: Gpu) -> None:
    """Its tables differ in the numbers of what is below only, which no function of an SM of a chip looks at."""
    chip = chip_of(program, gpu)
    there = another(chip, chip_of(program, other))
    one, two = (SmMemory(program, each, checked_window(None, chip), 8, 2).mem for each in (chip, there))
    assert {_PARAMETERS[at] for at in np.flatnonzero(one != two)} <= BELOW


@settings(RELAXED, max_examples=10)
@given(program=programs, gpu=chips())
def test_requests_that_find_no_room_are_not_whole(program: Program, gpu: Gpu) -> None:
    chip = chip_of(program, gpu)
    window = checked_window(None, chip)
    whole = run_chip(program, chip, 2, LONG, window, ROOM).asked
    assert whole is not None
    count = len(whole.requests.time)
    assert run_chip(program, chip, 2, LONG, window).asked is None
    for room in {1, max(count - 1, 1), max(count, 1)}:
        assert (run_chip(program, chip, 2, LONG, window, room).asked is None) == (count > room)
