"""The compiled loop of an SM with collector units gives what the plain reference does, on random programs and GPUs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from sm_random import differences, pipelined_gpus, programs, staged_gpus, with_operands
from some_examples import cases

from benchmarks.loop_programs import STREAMING, loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


OPTIONS = {
    "program": programs,
    "gpu": staged_gpus(),
    "resident": st.integers(1, 4),
    "active": st.integers(1, 3),
    "dirty": st.sampled_from((0.0, 0.4)),
    "operands": st.integers(0, 1000),
}


#: cycles of a run that the reference can follow within seconds: some take fifty times as many as most
FEW = 20_000


def compare(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, operands: int, most: float = FEW
) -> None:
    if operands:
        program = with_operands(program, operands, gpu.collectors.banks)
    options = {"resident_blocks": resident, "active_sms": active, "l2_dirty": dirty}
    fast = simulate(program, gpu, **options)
    assume(fast.cycles <= most)  # another example is drawn instead
    plain = simulate(program, gpu, reference=True, **options)
    note(f"cycles {plain.cycles} and {fast.cycles}, stalls {plain.warp_cycles} and {fast.warp_cycles}")
    assert differences(plain, fast) == []
    lifetimes = (fast.block_end - fast.block_start) * np.diff(program.block_warp)
    assert fast.warp_cycles.sum() == lifetimes.sum()


@settings(RELAXED, max_examples=cases(14))
@given(**OPTIONS)
def test_compiled_loop_is_the_reference(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, operands: int
) -> None:
    compare(program, gpu, resident, active, dirty, operands)


@settings(RELAXED, max_examples=cases(14))
@given(**OPTIONS | {"gpu": pipelined_gpus()})
def test_with_pipelines_of_the_l1(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, operands: int
) -> None:
    compare(program, gpu, resident, active, dirty, operands)


def test_results_that_come_late_hold_up_no_reads() -> None:
    gpu = load_gpu("gpgpusim_qv100")
    far = dataclasses.replace(gpu, dram=dataclasses.replace(gpu.dram, latency=2000))
    program = with_operands(loop_program(far, STREAMING, 4, 2, 8), 7, far.collectors.banks)
    plain, fast = (simulate(program, far, resident_blocks=2, active_sms=1, reference=which) for which in (True, False))
    assert differences(plain, fast) == []


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**OPTIONS)
def test_compiled_loop_is_the_reference_many(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, operands: int
) -> None:
    compare(program, gpu, resident, active, dirty, operands, most=math.inf)


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**OPTIONS | {"gpu": pipelined_gpus()})
def test_with_pipelines_of_the_l1_many(
    program: Program, gpu: Gpu, resident: int, active: int, dirty: float, operands: int
) -> None:
    compare(program, gpu, resident, active, dirty, operands, most=math.inf)
