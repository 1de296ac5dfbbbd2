"""The compiled SM loop gives the cycles, stalls and counters of the plain reference, on random programs and GPUs."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sm_random import differences, gpus, looping_programs, programs, with_events
from some_examples import cases, until

from ppt_gpu.common.policies import POLICIES
from ppt_gpu.sm.loop import skip as core_skip
from ppt_gpu.sm.loop.loop import run_core
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.reference.l1 import run_reference
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
OPTIONS = {
    "program": programs,
    "gpu": gpus(),
    "resident": st.integers(1, 4),
    "active": st.integers(1, 3),
    "dirty": st.sampled_from((0.0, 0.4)),
}
LATER = {**OPTIONS, "later": st.booleans()}


def compare(program: Program, gpu: Gpu, resident: int, active: int, dirty: float, later: bool = False) -> None:
    options = {"resident_blocks": resident, "active_sms": active, "l2_dirty": dirty, "out_of_step": later}
    plain: SmResult = simulate(program, gpu, reference=True, **options)
    fast: SmResult = simulate(program, gpu, **options)
    note(f"cycles {plain.cycles} and {fast.cycles}, stalls {plain.warp_cycles} and {fast.warp_cycles}")
    assert differences(plain, fast) == []


@settings(RELAXED, max_examples=cases(40))
@given(**LATER)
def test_compiled_loop_is_the_reference(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, later: bool
) -> None:
    compare(program, gpu, resident, active, dirty, later)


@settings(RELAXED, max_examples=cases(30))
@given(**OPTIONS, seed=st.integers(0, 2**32))
def test_arrivals_and_waits(program: Program, gpu: Gpu, resident: int, active: int, dirty: float, seed: int) -> None:
    compare(with_events(program, seed), gpu, resident, active, dirty)


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**OPTIONS)
def test_compiled_loop_is_the_reference_many(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float
) -> None:
    compare(program, gpu, resident, active, dirty)


def compare_skipping(program: Program, gpu: Gpu, resident: int, dirty: float, plain: bool) -> int:
    """Cycles skipped; the result is that of a run without skipping, and of the reference if `plain`."""
    machine = machine_of(program, gpu, 3, None, dirty, None)
    whole = run_core(program, machine, resident, 1 << 30, skip=False)
    with patch.multiple(core_skip, FIRST_GAP=16, STEP=4, ALIKE=6):  # these programs are short
        fast = run_core(program, machine, resident, 1 << 30, skip=True)
    note(f"{fast.skipped_cycles} of {fast.cycles} cycles skipped")
    assert differences(whole, fast) == []
    if plain and whole.cycles < 20_000:
        assert differences(run_reference(program, machine, resident, 1 << 30), fast) == []
    return fast.skipped_cycles


SKIPPING = {
    "program": looping_programs,
    "gpu": gpus(),
    "resident": st.integers(1, 3),
    "dirty": st.sampled_from((0.0, 0.4)),
}


def test_skipping_what_repeats_changes_nothing(pytestconfig: pytest.Config) -> None:
    skipped = 0

    def check(program: Program, gpu: Gpu, resident: int, dirty: float) -> None:
        nonlocal skipped
        skipped += compare_skipping(program, gpu, resident, dirty, plain=False) > 0

    until(lambda: skipped > 10, check, 150, pytestconfig, **SKIPPING)  # 5 to 45 of 150 repeat


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**SKIPPING)
def test_skipping_what_repeats_changes_nothing_many(program: Program, gpu: Gpu, resident: int, dirty: float) -> None:
    compare_skipping(program, gpu, resident, dirty, plain=True)


def compare_specialised(program: Program, gpu: Gpu, resident: int, schedulers: int, policy: str, width: int) -> None:
    sm = dataclasses.replace(gpu.sm, schedulers=schedulers, policy=policy, issue_width=width)
    machine = machine_of(program, dataclasses.replace(gpu, sm=sm), 3, None, 0.0, None)
    plain = run_reference(program, machine, resident, 1 << 30)
    assert differences(plain, run_core(program, machine, resident, 1 << 30, specialise=True)) == []


@settings(RELAXED, max_examples=cases(25))
@given(program=programs, gpu=gpus(), resident=st.integers(1, 4))
def test_specialised_loop_is_the_reference(program: Program, gpu: Gpu, resident: int) -> None:
    """One that batches: greedy, one entry a cycle. The others differ by what the compiler folds."""
    compare_specialised(program, gpu, resident, 4, "gto", 1)


@pytest.mark.slow
@pytest.mark.parametrize("schedulers", [1, 2, 4])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("width", [1, 2])
def test_every_specialised_loop_is_the_reference(schedulers: int, policy: str, width: int) -> None:
    @settings(RELAXED, max_examples=60)
    @given(program=programs, gpu=gpus(), resident=st.integers(1, 4))
    def check(program: Program, gpu: Gpu, resident: int) -> None:
        compare_specialised(program, gpu, resident, schedulers, policy, width)

    check()


@settings(RELAXED, max_examples=40)
@given(program=programs, gpu=gpus(), resident=st.integers(1, 4))
def test_every_resident_warp_cycle_has_one_reason(program: Program, gpu: Gpu, resident: int) -> None:
    result = simulate(program, gpu, resident_blocks=resident, active_sms=15)
    lifetimes = (result.block_end - result.block_start) * np.diff(program.block_warp)
    assert result.warp_cycles.sum() == lifetimes.sum()
    assert (result.warp_cycles >= 0).all() and (result.op_stall >= 0).all()
    with_entries = (np.diff(program.path_start) > 0)[program.warp_path]
    if with_entries.all():
        assert (result.op_stall.sum(axis=0) == result.warp_cycles).all()
