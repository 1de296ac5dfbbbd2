"""Entries that issue ahead of time (loop.pack.AHEAD) change no result: tried without."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sm_random import differences
from some_examples import cases

from benchmarks.loop_programs import Entry, loop_program
from ppt_gpu.sm.loop import loop as core
from ppt_gpu.sm.loop.pack import AHEAD_AT, Packed
from ppt_gpu.sm.program.machine import Machine, machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
ARITHMETIC = ("fp32.fma", "int32")
OTHERS = ("load.global", "load.shared", "store.shared", "barrier", "branch")


class InTime(Packed):
    """Nothing issues ahead."""

    def __init__(self, program: Program, machine: Machine) -> None:
        super().__init__(program, machine)
        self.code &= ~(1 << AHEAD_AT)


def entries() -> st.SearchStrategy[Entry]:
    waits = st.lists(st.integers(0, 5), max_size=2, unique=True).map(tuple)
    names = st.one_of(st.sampled_from(ARITHMETIC), st.sampled_from(ARITHMETIC), st.sampled_from(OTHERS))
    return st.tuples(names, waits, st.integers(-1, 5)).map(
        lambda entry: entry if entry[0] in (*ARITHMETIC, "load.global", "load.shared") else (*entry[:2], -1)
    )


@settings(RELAXED, max_examples=cases(100))
@given(
    body=st.lists(entries(), min_size=3, max_size=24),
    repeat=st.integers(2, 20),
    blocks=st.integers(1, 12),
    warps=st.integers(1, 8),
    resident=st.integers(1, 6),
    policy=st.sampled_from(("gto", "gto_launch", "gto_block")),
    launch=st.sampled_from((0, 3, 20)),
)
@pytest.mark.parametrize("name", ["v100", "h100"])
def test_issuing_ahead_changes_nothing(
    name: str, body: list[Entry], repeat: int, blocks: int, warps: int, resident: int, policy: str, launch: int
) -> None:
    gpu = load_gpu(name)
    replace = dataclasses.replace
    gpu = replace(
        gpu,
        sm=replace(gpu.sm, policy=policy),
        code=replace(gpu.code, size=0),
        host=replace(gpu.host, block_launch=launch),
    )
    program = loop_program(gpu, body, repeat, blocks, warps)
    machine = machine_of(program, gpu, gpu.sm.count, None, 0.0, None)
    ahead = core.run_core(program, machine, resident, 1 << 40, skip=False)
    with patch.object(core, "Packed", InTime):
        in_time = core.run_core(program, machine, resident, 1 << 40, skip=False)
    assert differences(in_time, ahead) == []
