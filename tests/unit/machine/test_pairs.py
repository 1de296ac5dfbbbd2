"""What one machine instruction does for several of PTX, as ptxas 13.0 made of each of these texts."""

import pytest

from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_75
.address_size 64
.const .align 4 .b8 taps[64];
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .pred %p<4>; .reg .f32 %f<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f64 %d<4>;
ld.param.u64 %rd1,[p]; ld.global.u32 %r1,[%rd1]; ld.global.u32 %r2,[%rd1+4]; ld.global.u32 %r3,[%rd1+8];
ld.global.u32 %r4,[%rd1+12]; ld.global.f32 %f1,[%rd1+16]; ld.global.f32 %f2,[%rd1+20]; ld.global.f64 %d1,[%rd1+24];
"""
TAIL = "st.global.u32 [%rd1],%r9; ret;\n}\n"
#: name -> (text, ISA, operation, how often it is in the code)
CASES = {
    "both halves of a product": (
        "mul.lo.s32 %r5,%r1,%r2; mul.hi.u32 %r6,%r2,%r1; xor.b32 %r9,%r5,%r6;", "80", "int32.mulwide", 1,
    ),
    "of other factors": (
        "mul.lo.s32 %r5,%r1,%r2; mul.hi.u32 %r6,%r2,%r3; xor.b32 %r9,%r5,%r6;", "80", "int32.mulwide", 0,
    ),
    "majority of three": (
        "and.b32 %r5,%r1,%r2; and.b32 %r6,%r1,%r3; and.b32 %r7,%r2,%r3; xor.b32 %r8,%r5,%r6; xor.b32 %r9,%r8,%r7;",
        "80", "int32.logic", 1,
    ),
    "four values": ("and.b32 %r5,%r1,%r2; xor.b32 %r6,%r3,%r4; or.b32 %r9,%r5,%r6;", "80", "int32.logic", 2),
    "logic that two read": (
        "and.b32 %r5,%r1,%r2; xor.b32 %r6,%r5,%r3; or.b32 %r7,%r5,%r4; add.s32 %r9,%r6,%r7;", "80", "int32.logic", 2,
    ),
    "logic and zero": ("and.b32 %r5,%r1,%r2; setp.ne.s32 %p1,%r5,0; selp.b32 %r9,%r3,%r4,%p1;", "80", "int32.logic", 0),
    "logic and five": ("and.b32 %r5,%r1,%r2; setp.ne.s32 %p1,%r5,5; selp.b32 %r9,%r3,%r4,%p1;", "80", "int32.logic", 1),
    "shift and sum": ("shr.s32 %r5,%r1,3; add.s32 %r9,%r5,%r2;", "80", "int32.shift", 0),
    "shift that is subtracted": ("shr.s32 %r5,%r1,3; sub.s32 %r9,%r2,%r5;", "80", "int32.shift", 1),
    "halves": ("cvt.rn.f16.f32 %h1,%f1; cvt.rn.f16.f32 %h2,%f2; mov.b32 %r9,{%h1,%h2};", "80", "fp16.cvt", 1),
    "three of Hopper": ("max.s32 %r5,%r1,%r2; max.s32 %r9,%r5,%r3;", "90", "int32.minmax", 1),
    "three of Ampere": ("max.s32 %r5,%r1,%r2; max.s32 %r9,%r5,%r3;", "80", "int32.minmax", 2),
    "minimum of a maximum": ("max.s32 %r5,%r1,%r2; min.s32 %r9,%r5,%r3;", "90", "int32.minmax", 2),
    "constant": ("ld.const.u32 %r5,[taps+8]; add.s32 %r9,%r1,%r5;", "80", "load.constant", 0),
    "constants of Hopper": (
        "ld.const.u32 %r5,[taps+8]; ld.const.u32 %r6,[taps+12]; xor.b32 %r9,%r6,%r5;", "90", "load.constant", 0,
    ),
    "index into constants": (
        "mov.u64 %rd2,taps; cvt.u64.u32 %rd3,%r1; add.s64 %rd4,%rd2,%rd3; ld.const.u32 %r9,[%rd4];",
        "80", "load.constant", 1,
    ),
    "sine and cosine": (
        "sin.approx.f32 %f3,%f1; cos.approx.ftz.f32 %f4,%f1; add.f32 %f5,%f3,%f4; cvt.rzi.s32.f32 %r9,%f5;",
        "80", "fp32.mul", 1,
    ),
    "cosine and sine": (
        "cos.approx.f32 %f3,%f1; sin.approx.f32 %f4,%f1; add.f32 %f5,%f3,%f4; cvt.rzi.s32.f32 %r9,%f5;",
        "70", "fp32.mul", 1,
    ),
    "of two angles": (
        "cos.approx.f32 %f3,%f1; sin.approx.f32 %f4,%f2; add.f32 %f5,%f3,%f4; cvt.rzi.s32.f32 %r9,%f5;",
        "80", "fp32.mul", 2,
    ),
    "of an angle and the next": (
        "cos.approx.f32 %f1,%f1; sin.approx.f32 %f4,%f1; add.f32 %f5,%f1,%f4; cvt.rzi.s32.f32 %r9,%f5;",
        "80", "fp32.mul", 2,
    ),
    "floor": ("cvt.rmi.f32.f32 %f3,%f1; cvt.rzi.s32.f32 %r9,%f3;", "80", "fp32.cvt", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_ptxas_has_it(name: str) -> None:
    text, arch, operation, times = CASES[name]
    kernel = parse_module(HEAD + text + TAIL, "pairs.ptx").kernels["k"]
    found = expanded(kernel, load_isa(f"sm_{arch}"))
    assert sum(count for each, count in found.items() if each == operation) == times, found


def test_a_sign_takes_a_shift_where_more_than_one_sum_needs_it() -> None:
    one = "ld.global.s32 %rd2,[%rd1+40]; add.s64 %rd3,%rd1,%rd2; ld.global.u8 %r9,[%rd3];"
    two = one + "add.s64 %rd4,%rd2,%rd3; ld.global.u8 %r9,[%rd4];"
    for text, shifts in ((one, 0), (two, 1)):
        found = expanded(parse_module(HEAD + text + TAIL, "sign.ptx").kernels["k"], load_isa("sm_80"))
        assert found["int32.shift"] == shifts


def test_doubles_with_lower_bits_are_put_into_uniform_registers() -> None:
    text = (
        "mov.f64 %d2,0d3FF71547652B82FE; fma.rn.f64 %d3,%d1,%d2,%d1; mul.f64 %d3,%d3,%d2; st.global.f64 [%rd1+8],%d3;"
    )
    kernel = parse_module(HEAD + text + TAIL, "doubles.ptx").kernels["k"]
    before = expanded(kernel, load_isa("sm_80"))["int32.uniform"]
    assert [expanded(kernel, load_isa(f"sm_{a}"))["int32.uniform"] - before for a in (90, 120)] == [2, 1]
