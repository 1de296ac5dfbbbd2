"""The compiled SM loop gives the cycles, stalls and counters of the plain reference, on random programs and GPUs."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sm_random import gpus, programs

from ppt_gpu.sm.program import Program
from ppt_gpu.sm.result import SmResult
from ppt_gpu.sm.simulate import simulate
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def differences(one: SmResult, other: SmResult) -> list[str]:
    """Names of the fields, time apart, in which two results differ."""
    names = [field.name for field in dataclasses.fields(SmResult) if field.name != "wall"]
    return [name for name in names if not np.array_equal(getattr(one, name), getattr(other, name))]


@settings(RELAXED, max_examples=250)
@given(program=programs, gpu=gpus(), resident=st.integers(1, 4), active=st.integers(1, 15), dirty=st.sampled_from((0.0, 0.4)))
def test_compiled_loop_is_the_reference(program: Program, gpu: Gpu, resident: int, active: int, dirty: float) -> None:
    options = {"resident_blocks": resident, "active_sms": active, "l2_dirty": dirty}
    plain = simulate(program, gpu, reference=True, **options)
    fast = simulate(program, gpu, **options)
    note(f"cycles {plain.cycles} and {fast.cycles}, stalls {plain.warp_cycles} and {fast.warp_cycles}")
    assert differences(plain, fast) == []


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
