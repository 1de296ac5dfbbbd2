"""Every base opcode of the instruction table is executed by both engines, or is on a list that says why not.

Arithmetic and memory opcodes are in `random_ptx.TABLE`, all of whose forms `test_exec_agree` runs; the rest has a
program here, or a test of its own that is named.
"""

import re
from pathlib import Path

import pytest
from random_ptx import TABLE as ROWS
from random_ptx import kernel_text
from reference.interpreter.interpreter import interpret
from test_exec_agree import assert_same, execute, inputs

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx.table import ASSUMED, SASS, TABLE

TESTS = Path(__file__).parents[1]

#: base opcode -> lines of a program that both engines run to the same memory and trace, with whole warps
PROGRAMS = {
    "alloca": "alloca.u64 %a, 16; cvta.local.u64 %b, %a; st.b32 [%b], %r1; ld.b32 %r0, [%b];",
    "applypriority": "applypriority.global.L2::evict_normal [%at], 128;",
    "bar": "bar.sync 0;",
    "barrier": "barrier.sync.aligned 1;",
    "bra": "@%p0 bra over; add.u32 %r0, %r0, 1; over: add.u32 %r0, %r0, %r1;",
    "brx": "and.b32 %i, %r1, 1; list: .branchtargets one, two; brx.idx %i, list;"
           "one: add.u32 %r0, %r0, 1; two: add.u32 %r0, %r0, %r1;",
    "clusterlaunchcontrol": "setp.eq.u32 %q, %u, 0; @%q mbarrier.init.shared.b64 [scratch], 1;"
                            "@%q clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                            "[scratch+16], [scratch]; @%q mbarrier.arrive.expect_tx.shared.b64 _, [scratch], 16;"
                            "wait: mbarrier.try_wait.parity.shared.b64 %p0, [scratch], 0; @!%p0 bra wait;"
                            "ld.shared.b128 %v, [scratch+16];"
                            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %v;"
                            "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %v;"
                            "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, _, %r2, _}, %v;",
    "cos": "mov.f32 %f0, 0f00000000; cos.approx.f32 %f0, %f0;",
    "cp": "cp.async.ca.shared.global [scratch], [%at], 8; cp.async.wait_all; ld.shared.b64 %d0, [scratch];",
    "discard": "discard.global.L2 [%at], 128;",
    "ex2": "mov.f32 %f0, 0f41200000; ex2.approx.f32 %f0, %f0;",
    "exit": "@%p0 exit;",
    "fence": "fence.acq_rel.gpu;",
    "getctarank": "mov.u32 %i, scratch; getctarank.shared::cluster.u32 %r0, %i;",
    "griddepcontrol": "griddepcontrol.wait; griddepcontrol.launch_dependents;",
    "ldmatrix": "mov.u32 %i, scratch; and.b32 %u, %r1, 48; add.u32 %i, %i, %u;"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%i];",
    "lg2": "mov.f32 %f0, 0f41000000; lg2.approx.f32 %f0, %f0;",
    "mapa": "mov.u32 %i, scratch; mapa.shared::cluster.u32 %i, %i, 0; st.shared.b32 [scratch], %r1; bar.sync 0;"
            "ld.shared::cluster.b32 %r0, [%i];",
    "mbarrier": "setp.eq.u32 %q, %u, 0; @%q mbarrier.init.shared.b64 [scratch], 64; bar.sync 0;"
                "mbarrier.arrive.shared.b64 %a, [scratch]; bar.sync 0;"
                "mbarrier.test_wait.shared.b64 %p0, [scratch], %a;",
    "membar": "membar.gl;",
    "mma": "mov.b32 %i, 0x3C003C00; mov.f32 %f0, 0f3F800000;"
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%i, %i}, {%i},"
           "{%f0, %f0, %f0, %f0};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
    "nanosleep": "nanosleep.u32 20;",
    "pmevent": "pmevent 1;",
    "prefetchu": "prefetchu.L1 [%at];",
    "ret": "@%p0 ret;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 96;",
    "sin": "mov.f32 %f0, 0f80000000; sin.approx.f32 %f0, %f0;",
    **dict.fromkeys(
        ("stacksave", "stackrestore"),
        "stacksave.u64 %a; alloca.u64 %b, 32; st.local.b32 [%b+4], %r1; ld.local.b32 %r0, [%b+4]; stackrestore.u64 %a;",
    ),
    "stmatrix": "mov.u32 %i, scratch; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%i], {%r1}; ld.shared.b32 %r0, [%i];",
    "tanh": "mov.f32 %f0, 0f42C80000; tanh.approx.f32 %f0, %f0;",
    "wmma": "mov.b32 %i, 0x3C003C00; wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r0, %r1, %r2, %r3},"
            "{%i, %i, %i, %i, %i, %i, %i, %i}, {%i, %i, %i, %i, %i, %i, %i, %i}, {%i, %i, %i, %i};",
}  # fmt: skip

#: base opcode -> the error that both engines end with
FAULTS = {"trap": "trap;", "brkpt": "brkpt;"}

#: base opcode -> test that runs it in both engines, for what needs more than a kernel
ELSEWHERE = {
    **dict.fromkeys(
        ["tex", "tld4", "txq", "suq", "suld", "sust", "sured", "istypep"], "unit/emulator/test_textures.py"
    ),
    "call": "unit/emulator/test_calls.py",
    "wgmma": "unit/emulator/test_wgmma.py",
    "tensormap": "data/matrix/triton_tma.ptx",
    "multimem": "unit/emulator/test_memory_forms.py",
}

#: base opcode -> why it is not executed
NOT_EXECUTED = {
    "tcgen05": "tensor memory: parsed and timed only",
}


def executed_in_rows():
    """Base opcodes in the texts of the random table."""
    return {op for text, _, _ in ROWS for op in re.findall(r"(?:^|;)\s*([a-z]\w*)(?=[.\s])", text)}


def test_every_opcode_is_accounted_for_once():
    groups = [executed_in_rows() & set(TABLE), set(PROGRAMS), set(FAULTS), set(ELSEWHERE), set(NOT_EXECUTED)]
    named = sorted(set().union(*groups))
    assert named == sorted(set(TABLE) - {ASSUMED, SASS})
    twice = [(a, b) for i, a in enumerate(groups) for b in groups[i + 1 :] if a & b and a is not groups[0]]
    assert not twice


@pytest.mark.parametrize("base", PROGRAMS)
def test_program(base):
    assert re.search(rf"\b{base}\b", PROGRAMS[base])
    assert_same(kernel_text([PROGRAMS[base]]), inputs(1, threads=64))


@pytest.mark.parametrize("base", FAULTS)
@pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
def test_fault(base, engine):
    with pytest.raises(PptError, match=r"trap|brkpt"):
        execute(engine, kernel_text([FAULTS[base]]), inputs(1))


@pytest.mark.parametrize("base", ELSEWHERE)
def test_has_its_own_test(base):
    assert re.search(rf"\b{base}[.\s]", (TESTS / ELSEWHERE[base]).read_text())


#: smallest programs of opcodes that are refused
REFUSED = {
    "tcgen05": "tcgen05.wait::ld.sync.aligned;",
}  # fmt: skip


@pytest.mark.parametrize("base", NOT_EXECUTED)
@pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
def test_refusal_names_the_instruction(base, engine):
    """Once it is executed, it belongs into PROGRAMS."""
    with pytest.raises(PptError, match=base):
        execute(engine, kernel_text([REFUSED[base]]), inputs(1))
