"""The compiled loop of a whole chip gives what the plain reference gives, for any window and number of threads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from sm_random import gpus, programs

from ppt_gpu.sm.chip import run_chip
from ppt_gpu.sm.chip_machine import Chip, chip_of
from ppt_gpu.sm.chip_reference import run_chip_reference
from ppt_gpu.sm.core import run_core
from ppt_gpu.sm.core_machine import CODE_IN_SM, machine_of
from ppt_gpu.sm.core_raw import Raw
from ppt_gpu.sm.program import KIND_STORE, Program
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
LONG = 1 << 30
POLICIES = ("lrr", "gto", "gto_launch")


def differences(one: Raw, other: Raw) -> list[str]:
    names = [field.name for field in dataclasses.fields(one) if field.name not in ("seconds", "skipped")]
    return [name for name in names if not np.array_equal(getattr(one, name), getattr(other, name))]


@st.composite
def chips(draw: st.DrawFn) -> Gpu:
    gpu = draw(gpus())
    return dataclasses.replace(
        gpu,
        sm=dataclasses.replace(gpu.sm, count=draw(st.integers(1, 4)), policy=draw(st.sampled_from(POLICIES))),
        l2=dataclasses.replace(
            gpu.l2,
            slices=draw(st.sampled_from((1, 2, 6))),
            interleave=draw(st.sampled_from((128, 256, 1024))),
            slice_index=draw(st.sampled_from(("linear", "hash"))),
        ),
        dram=dataclasses.replace(gpu.dram, channels=draw(st.sampled_from((1, 2, 3)))),
    )


def compare(program: Program, gpu: Gpu, resident: int, share: float) -> None:
    chip = chip_of(program, gpu)
    plain = run_chip_reference(program, chip, resident, LONG)
    window = max(1, int(chip.horizon * share))
    fast = run_chip(program, chip, resident, LONG, window)
    note(f"window {window} of {chip.horizon}; cycles {plain.cycles} and {fast.cycles}")
    assert differences(plain, fast) == []


OPTIONS = {
    "program": programs,
    "gpu": chips(),
    "resident": st.integers(1, 3),
    "share": st.sampled_from((0.01, 0.3, 0.77, 1.0)),
}


@settings(RELAXED, max_examples=80)
@given(**OPTIONS)
def test_compiled_chip_is_the_reference(program: Program, gpu: Gpu, resident: int, share: float) -> None:
    compare(program, gpu, resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**OPTIONS)
def test_compiled_chip_is_the_reference_many(program: Program, gpu: Gpu, resident: int, share: float) -> None:
    compare(program, gpu, resident, share)


def one_sm(program: Program, gpu: Gpu) -> tuple[Program, Gpu, Chip]:
    """A chip of one SM, slice and channel; nothing is in the L2, code and constants are there."""
    alone = dataclasses.replace(program, l2_share_factor=1.0, line_warm=np.zeros_like(program.line_warm))
    small = dataclasses.replace(
        gpu,
        sm=dataclasses.replace(gpu.sm, count=1),
        l2=dataclasses.replace(gpu.l2, slices=1),
        dram=dataclasses.replace(gpu.dram, channels=1),
    )
    return alone, small, chip_of(alone, small, code_at=CODE_IN_SM, constants_at=CODE_IN_SM)


@settings(RELAXED, max_examples=80)
@given(program=programs, gpu=chips(), resident=st.integers(1, 3))
def test_a_chip_of_one_sm_is_the_sm(program: Program, gpu: Gpu, resident: int) -> None:
    """To the last cycle, unless stores are held up below, of which an SM of a chip learns later."""
    alone, small, chip = one_sm(program, gpu)
    assume(small.code.size == 0 and small.l1.write != "write-back")
    assume(not (program.op_kind[program.entry_op] == KIND_STORE).any())
    whole = run_chip(alone, chip, resident, LONG, chip.horizon)
    machine = machine_of(alone, small, 1, None, 0.0, None, CODE_IN_SM, CODE_IN_SM)
    assert differences(run_core(alone, machine, resident, LONG), whole) == []
