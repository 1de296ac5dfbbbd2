"""Instructions that are timed as a class and not executed."""

from __future__ import annotations

import numpy as np
import pytest
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx.assume import read_assumptions
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

PTX = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .pred %p<3>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [p];
    mov.f32 %f1, 0f40000000;
    mov.b32 %r1, 7;
again:
    frobnicate.sync.b32 %r1|%p1, {%r1, %r1}, 12;
    tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r1, %p1;
    @!%p1 bra again;
    st.global.f32 [%rd1], %f1;
    st.global.b32 [%rd1+4], %r1;
    ret;
}
"""
ASSUME = ("frobnicate=sfu", "tcgen05.mma=tensor.mma")


@pytest.mark.parametrize("execute", [run, interpret])
def test_runs_on_with_predicates_true_and_other_results_zero(execute):
    module = parse_module(PTX, "k.ptx", ASSUME)
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (Argument("pointer", buffer="p"),))
    memory = DeviceMemory.build(module, (Buffer("p", "f32", 2, "const:9"),), ())
    trace = execute(module.kernels["k"], module, launch, memory, [0])
    assert memory.bytes_of("p").view(np.float32)[0] == 2.0
    assert memory.bytes_of("p").view(np.uint32)[1] == 0
    assert trace.path_pc.tolist() == list(range(9)), "the loop that waits for success ends"
    assert [text.split(":")[0] for text in trace.warnings] == [
        "'frobnicate.sync.b32' (line 14) was timed as sfu and not executed",
        "'tcgen05.mma.cta_group",
    ]


def test_the_longest_assumption_wins():
    module = parse_module(PTX, "k.ptx", [*ASSUME, "frobnicate.sync=fp64"])
    assert module.kernels["k"].instructions[3].opcode.endswith(".fp64")


def test_dependencies_stay():
    instruction = parse_module(PTX, "k.ptx", ASSUME).kernels["k"].instructions[3]
    names = [r.name for r in parse_module(PTX, "k.ptx", ASSUME).kernels["k"].registers]
    assert {names[r] for r in instruction.reads} == {"%r1"}
    assert {names[r] for r in instruction.writes} == {"%r1", "%p1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frobnicate", "expected an opcode, '=' and a class"),
        ("x=tensr", "'tensr' is no class of work"),
        ("x=load.global", "'load.global' is no class of work"),
        ("bra=fp32", "not known what runs next"),
    ],
)
def test_bad_assumptions(text, message):
    with pytest.raises(PptError, match=message):
        read_assumptions([text])


def test_the_text_cannot_assume():
    with pytest.raises(PptError):
        parse_module(PTX.replace("frobnicate.sync.b32", "?assumed.sfu"), "k.ptx", ASSUME)
