"""Divisions and roots whose rare operands go another way end a basic block, as in the code of ptxas 13.0."""

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.disassemble import disassemble, disassembler
from ppt_gpu.machine.code import machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.sass.counts import fast_places
from ppt_gpu.spec.isa import load_isa

HEAD = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u32 n) {
.reg .pred %p<4>; .reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .b32 %r<9>; .reg .s64 %s<9>; .reg .b64 %d<8>;
ld.param.u64 %d0, [in]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8; add.s64 %d1, %d0, %d1;
"""
REGISTERS = {"f32": "%f", "f64": "%fd", "s64": "%s"}
#: of which the machine's instructions have a branch among them, and of which not
ENDING = ("div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32", "div.rn.f64", "sqrt.rn.f64", "div.s64")
PLAIN = ("div.full.f32", "sqrt.approx.f32", "rcp.approx.ftz.f32", "ex2.approx.f32")
ARCHITECTURES = ("75", "80", "90", "120")


def straight(opcode: str) -> str:
    """Three loads, of which what is computed from the first needs none of the others."""
    kind = opcode.rpartition(".")[2]
    r = REGISTERS[kind]
    second = f", {r}2" if opcode.startswith("div") else ""
    return f"""{HEAD}ld.global.{kind} {r}1, [%d1]; ld.global.{kind} {r}2, [%d1+512]; {opcode} {r}3, {r}1{second};
ld.global.{kind} {r}4, [%d1+1024]; add.{kind} {r}5, {r}3, {r}4; add.{kind} {r}5, {r}5, {r}2;
st.global.{kind} [%d1+2048], {r}5; ret; }}"""


def loop(opcode: str, end: str) -> str:
    return f"""{HEAD}mov.f32 %f3, 0f00000000; mov.u32 %r2, 0;
LOOP: ld.global.f32 %f1, [%d1]; {opcode} %f2, %f1{", %f1" if opcode.startswith("div") else ""}; add.f32 %f3, %f3, %f2;
add.s64 %d1, %d1, 512; add.s32 %r2, %r2, 1; setp.lt.s32 %p0, %r2, {end}; @%p0 bra LOOP;
st.global.f32 [%d1], %f3; ret; }}"""


def arm(opcode: str) -> str:
    second = ", %f1" if opcode.startswith("div") else ""
    return f"""{HEAD}ld.global.f32 %f1, [%d1]; mov.f32 %f2, %f1; setp.lt.f32 %p0, %f1, 0f3F800000; @%p0 bra L1;
{opcode} %f2, %f1{second};
L1: st.global.f32 [%d1], %f2; ret; }}"""


def places(text: str, arch: str) -> list[str]:
    """The first parts of the opcodes of our code, in order of issue, each block once."""
    code = machine_code(parse_module(text).kernels["k"], 64, load_isa(f"sm_{arch}"))
    best = max(code.templates, key=lambda template: len(template.blocks))
    return [code.kernel.instructions[place].base for place in best.code.tolist()]


def compiled(text: str, arch: str) -> list[str]:
    """The heads of ptxas's opcodes, without its slow ways."""
    try:
        tools = disassembler(arch)
    except PptError as error:
        pytest.skip(error.message)
    function = disassemble(tools, parse_module(text), arch).functions["k"]
    return [function.instructions[place].head for place in sorted(fast_places(function))]


@pytest.mark.parametrize("opcode", [*ENDING, *PLAIN])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_load_passes_one(opcode: str, arch: str) -> None:
    code = [name for name in places(straight(opcode), arch) if name in ("ld", opcode.partition(".")[0])]
    code = code[-4:]  # without parameters
    assert code[-1] == ("ld" if opcode in ENDING else opcode.partition(".")[0])


@pytest.mark.parametrize("opcode", [*ENDING, *PLAIN])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_load_of_ptxas_passes_one(opcode: str, arch: str) -> None:
    code = compiled(straight(opcode), arch)
    within = {"div.s64": "CALL"}.get(opcode, "MUFU")
    last = max(place for place, head in enumerate(code) if head == "LDG")
    assert (last > code.index(within)) == (opcode in ENDING)


@pytest.mark.parametrize("end", ["8", "%r0"])
@pytest.mark.parametrize("opcode", ["div.rn.f32", "sqrt.rn.f32", "ex2.approx.ftz.f32"])
def test_a_loop_with_one_is_not_unrolled(opcode: str, end: str) -> None:
    text = loop(opcode, end)
    rolled = opcode in ENDING
    code = machine_code(parse_module(text).kernels["k"], 64, load_isa("sm_80"))
    most = max(sum(code.kernel.instructions[p].opcode == "ld.global.f32" for p in t.code) for t in code.templates)
    assert (most == 1) == rolled
    assert (compiled(text, "80").count("LDG") == 1) == rolled


@pytest.mark.parametrize("opcode", ["div.rn.f32", "sqrt.rn.f32", "ex2.approx.ftz.f32"])
def test_an_arm_with_one_is_not_guarded(opcode: str) -> None:
    branches = opcode in ENDING
    code = machine_code(parse_module(arm(opcode)).kernels["k"], 64, load_isa("sm_80"))
    assert any(template.arms.any() for template in code.templates) != branches
    assert len([head for head in compiled(arm(opcode), "80") if head == "BSSY"]) == (2 if branches else 0)
