"""GATSim's inputs: characterisation, kinds of instructions and accesses, against numbers counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from model_kernels import bare_kernel_text, inputs_of, kernel_text, sample_inputs

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.gatsim.gatsim import characterised, gatsim_machine, gatsim_work, instruction_kinds, path_delays
from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.work import (
    ACCESS,
    BARRIER,
    L1_GLOBAL,
    LINE_HITS,
    LINE_MISSES,
    MEMORY,
    PERFECT,
    REGULAR,
    SFU,
    UNCACHED,
    GatsimMachine,
    straight_work,
)
from ppt_gpu.sm.program.program import FORCED_DRAM, FORCED_L1
from ppt_gpu.spec import load_gpu

#: 25 cycles an instruction on the machine of GPUMech's Table I
CHAIN = ("mov.f32 %f1, 0f3F800000;", "fma.rn.f32 %f2, %f1, %f1, %f1;", "add.f32 %f3, %f1, %f1;", "ret;")
MIXED = (
    "mul.wide.u32 %rd3, %r1, 8;",
    "add.s64 %rd4, %rd2, %rd3;",
    "ld.global.f32 %f1, [%rd4];",
    "sin.approx.f32 %f2, %f1;",
    "bar.sync 0;",
    "st.global.f32 [%rd1], %f2;",
    "ret;",
)


def test_a_chain_of_arithmetic() -> None:
    """The fma waits for the move, the add for nothing more, the return goes with it; the last one's delay drains."""
    inputs = inputs_of(bare_kernel_text(*CHAIN))
    assert inputs.program.op_name[:3] == ("int32.mov", "fp32.fma", "fp32.add")
    assert characterised(inputs).tolist() == path_delays(inputs).tolist() == [25, 1, 1, 25]


def test_special_instructions_hold_the_warp_themselves() -> None:
    inputs = inputs_of(kernel_text(*MIXED))
    kinds = instruction_kinds(inputs.program)[-6:]
    assert kinds.tolist() == [REGULAR, ACCESS, SFU, BARRIER, ACCESS, REGULAR]
    assert (instruction_kinds(inputs.program)[:3] == MEMORY).tolist() == [True, False, True]  # parameters
    delays = characterised(inputs)
    assert delays[-5:-1].tolist() == [1, 1, 1, 1]  # no wait behind them is counted twice
    work = gatsim_work(inputs, delays)
    assert work.entry_delay[-4] == 25 and work.entry_kind[-4] == SFU
    # two lines: 32 lanes 8 B apart; then all at one address
    assert np.diff(work.access_start).tolist() == [2, 1]
    assert work.access_store.tolist() == [L1_GLOBAL, L1_GLOBAL]
    assert work.access_write.tolist() == [False, True]


def test_each_instruction_counts_as_in_the_text_however_often_it_runs() -> None:
    loop = ("mov.u32 %r4, 0;", "L:", "add.s32 %r4, %r4, 1;", "setp.lt.s32 %p1, %r4, 3;", "@%p1 bra L;", "ret;")
    inputs = inputs_of(bare_kernel_text(*loop))
    # move, add, compare: each waited for by the next; the branch resolves; the return
    assert characterised(inputs).tolist() == [25, 25, 25, 25, 25]
    assert path_delays(inputs).tolist() == [25] + [25, 25, 25] * 3 + [25]
    work = gatsim_work(inputs, characterised(inputs))
    assert gatsim_time(work, GatsimMachine()).cycles == 25 * 11


def test_passes_of_the_active_lanes_through_the_sfus() -> None:
    gpu = load_gpu("m2090", ())  # 8 SFU lanes: 4 cycles for a warp
    whole = inputs_of(kernel_text(*MIXED), gpu)
    eight = inputs_of(kernel_text("cvt.rn.f32.u32 %f1, %r1;", "sin.approx.f32 %f2, %f1;", "ret;"), gpu, block=8)
    latency = gpu.isa.op("sfu").latency
    for inputs, passes in ((whole, 4), (eight, 1)):
        work = gatsim_work(inputs, characterised(inputs))
        assert (work.entry_delay[work.entry_kind == SFU] == latency + passes - 1).all()


def test_caches_that_do_not_see_an_access() -> None:
    cached = inputs_of(kernel_text(*MIXED))
    for gpu, store in (
        (replace(cached.gpu, perfect_memory=True), PERFECT),
        (replace(cached.gpu, l1=replace(cached.gpu.l1, caches_global=False)), UNCACHED),
    ):
        inputs = replace(cached, gpu=gpu)
        assert set(gatsim_work(inputs, characterised(inputs)).access_store.tolist()) == {store}


def test_given_outcomes_of_a_task_list_stay_as_given() -> None:
    inputs = sample_inputs("vecadd", "gpumech_table1")
    lines = inputs.program.tx_line.copy()
    lines[:2] = FORCED_L1, FORCED_DRAM
    given = replace(inputs, program=replace(inputs.program, tx_line=lines), kernel=None, trace=None)
    work = gatsim_work(given, characterised(given))
    assert work.access_line[:2].tolist() == [LINE_HITS, LINE_MISSES]
    assert (work.access_line[2:] >= 0).all()


def test_the_machine() -> None:
    inputs = sample_inputs("vecadd", "gtx480")
    machine = gatsim_machine(inputs, "gto", 300.4)
    assert (machine.schedulers, machine.resident, machine.miss) == (2, inputs.resident_blocks, 300)
    assert machine.l1.sets * machine.l1.ways * 128 == inputs.l1_bytes
    assert machine.memory_units == 32  # 16 at the shader clock


@pytest.mark.parametrize("change", [{"policy": "gto_block"}, {"schedulers": 0}, {"sfus": 0}, {"resident": 0}])
def test_machines_that_cannot_run(change: dict) -> None:
    with pytest.raises(PptError, match="GATSim"):
        gatsim_time(straight_work([[1]]), replace(GatsimMachine(), **change))


def test_nothing_to_run() -> None:
    assert gatsim_time(straight_work([]), GatsimMachine()).cycles == 0
    assert gatsim_time(straight_work([[], []]), GatsimMachine()).cycles == 0
