"""Simulated cycles against what pipes, issue slots and bandwidths allow; more of a resource never slows a kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise

import pytest
from equal_fields import assert_equal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sm_random import gpus, programs

from benchmarks.loop_programs import SGEMM, STREAMING, loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import FRACTION, machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
RANDOM_LOADS = (("load.global", (1,), 0), ("int32", (0,), 1), ("load.global", (), 2), ("fp32", (2,), 3))


@RELAXED
@given(program=programs, gpu=gpus(), resident=st.integers(1, 4), active=st.integers(1, 15))
def test_no_faster_than_pipes_issue_and_bandwidths(program: Program, gpu: Gpu, resident: int, active: int) -> None:
    result = simulate(program, gpu, resident_blocks=resident, active_sms=active)
    machine = machine_of(program, gpu, active, None, 0.0, None)
    assert result.cycles >= result.block_end.max(initial=0)
    assert result.cycles * machine.schedulers * machine.width >= result.issued
    # the last issue of a unit may outlive the run: it is held for longer than the result takes
    slack = int(program.op_ii.max())
    for pipe, busy in enumerate(result.pipe_busy):
        units = machine.pipe_units[pipe] * (1 if machine.pipe_shared[pipe] else machine.schedulers)
        assert (result.cycles + slack) * units >= busy
    sector = program.sector_bytes
    burst = sector * machine.dram_group
    dram = (result.dram_read_bytes + result.dram_write_bytes) // burst * machine.dram_cost
    l2 = result.l2_read_bytes // sector * machine.l2_cost + result.l2_write_bytes // sector * machine.l2_write_cost
    inward = result.l2_read_bytes // sector * machine.icnt_cost
    assert result.cycles << FRACTION >= max(dram, l2, inward)
    assert result.l1_hits <= result.l1_accesses and result.l2_hits <= result.l2_accesses
    assert result.dram_read_bytes <= result.l2_read_bytes * machine.dram_group


@RELAXED
@given(program=programs, gpu=gpus(), resident=st.integers(1, 4))
def test_same_input_same_result(program: Program, gpu: Gpu, resident: int) -> None:
    first, second = (simulate(program, gpu, resident_blocks=resident, active_sms=2) for _ in range(2))
    assert_equal(first, second, ("wall",))


def more_of(gpu: Gpu, resource: str, factor: float) -> Gpu:
    """`gpu` with `factor` times the resource."""
    table, field = resource.split(".")
    old = getattr(gpu, table)
    value = getattr(old, field) * factor
    kind = type(getattr(old, field))
    return dataclasses.replace(gpu, **{table: dataclasses.replace(old, **{field: kind(value)})})


@pytest.mark.parametrize("name", ["k40", "v100", "gtx480"])
def test_more_of_a_resource_never_slows_a_realistic_kernel(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    base, worst = load_gpu(name), (0.0, "")
    for label, body in (("streaming", STREAMING), ("sgemm", SGEMM), ("loads", RANDOM_LOADS)):
        for lines in (1, 4):
            program = loop_program(base, body, max(10, 120 // len(body)), 24, 8, lines=lines)
            cycles = {}
            for resource in ("dram.bandwidth", "l2.bandwidth", "interconnect.bandwidth", "l1.mshrs"):
                for factor in (0.25, 0.5, 1.0, 2.0):
                    gpu = more_of(base, resource, factor)
                    cycles[factor] = simulate(program, gpu, resident_blocks=4, active_sms=base.sm.count).cycles
                steps = sorted(cycles)
                for less, more in pairwise(steps):
                    slower = cycles[more] / cycles[less] - 1
                    worst = max(worst, (slower, f"{label}, {lines} lines, {resource} x{less} to x{more}"))
    record_property("worst anomaly", f"{worst[0]:+.2%} {worst[1]} on {name}")
    assert worst[0] <= 0.02
