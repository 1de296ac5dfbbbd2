"""The loops of the bench that do less than the SM loop simulate the same."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.limits import RESIDENT, STEPS, WARPS, bench_limits, run_smallest
from benchmarks.loop_programs import DEPENDENT_FMA, ILP8_FMA, Entry, loop_program
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.sm.reference.l1 import run_reference
from ppt_gpu.spec import load_gpu


@pytest.mark.parametrize("gpu_name", ["v100", "h100"])
@pytest.mark.parametrize("body", [DEPENDENT_FMA, ILP8_FMA], ids=["dependent", "independent"])
def test_with_all_steps_it_takes_as_many_cycles(body: tuple[Entry, ...], gpu_name: str) -> None:
    gpu = load_gpu(gpu_name)
    program = loop_program(gpu, body, 24 // len(body), RESIDENT, WARPS)
    machine = dataclasses.replace(machine_of(program, gpu, gpu.sm.count, "lrr", 0.0, None), ramp=0, warp_launch=0)
    raw = run_reference(program, machine, RESIDENT, 1 << 20)
    behind_last_issue, _ = run_smallest(program, machine, STEPS[-1][1])
    assert raw.cycles == behind_last_issue - 1 + int(program.op_latency[0])


@pytest.mark.slow  # it compiles loops that nothing else needs
def test_figures() -> None:
    figures = bench_limits(entries=128, runs=1)
    assert [figure["unit"] for figure in figures] == ["x"] * len(STEPS)
    assert all(figure["value"] > 0 for figure in figures)
