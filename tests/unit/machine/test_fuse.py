"""Products by powers of two where a product is several instructions: shifts, alone and as a part of a sum."""

from collections.abc import Sequence

import pytest

from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_52
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{
.reg .b32 %r<12>; .reg .b64 %rd<20>;
ld.param.u64 %rd1,[p]; ld.param.u64 %rd2,[q]; ld.global.u32 %r1,[%rd1];
"""
TAIL = "\nret;\n}\n"


def integers(body: str, isa: str) -> list[str]:
    """Machine operations on integers that a body becomes, in the order of their names."""
    found = expanded(parse_module(HEAD + body + TAIL, "k.ptx").kernels["k"], load_isa(isa))
    return sorted(name for name in found.elements() if name.startswith("int32"))


@pytest.mark.parametrize("isa", ("sm_52", "sm_60", "sm_61"))
@pytest.mark.parametrize(
    ("body", "expected"),
    (
        # ptx_fusion.csv: SHR, ISCADD, IADD.X; ptx_to_sass.csv: SHL and SHR, SHL, XMAD
        ("mul.wide.s32 %rd3,%r1,4; add.s64 %rd4,%rd2,%rd3; st.global.u32 [%rd4],%r1;",
         ["int32.add"] * 2 + ["int32.shift"]),
        ("mul.wide.u32 %rd3,%r1,8; st.global.u64 [%rd2],%rd3;", ["int32.shift"] * 2),
        ("mul.lo.s32 %r2,%r1,16; st.global.u32 [%rd2],%r2;", ["int32.shift"]),
        ("mul.lo.s32 %r2,%r1,16; add.s32 %r3,%r2,%r1; st.global.u32 [%rd2],%r3;", ["int32.add"]),
        ("mul.lo.s32 %r2,%r1,12; st.global.u32 [%rd2],%r2;", ["int32.xmad"] * 2 + ["int32.xmad.part"]),
        ("mul.lo.s32 %r2,%r1,%r1; st.global.u32 [%rd2],%r2;", ["int32.xmad"] * 2 + ["int32.xmad.part"]),
    ),
)  # fmt: skip
def test_on_chips_without_a_multiplier(isa: str, body: str, expected: Sequence[str]) -> None:
    assert integers(body, isa) == list(expected)


def test_two_sums_share_the_shifts() -> None:
    """To shift again for each would cost as much: 2 shifts and twice IADD, IADD.X."""
    body = (
        "mul.wide.s32 %rd3,%r1,4; add.s64 %rd4,%rd2,%rd3; add.s64 %rd5,%rd1,%rd3;"
        "ld.global.u32 %r2,[%rd5]; st.global.u32 [%rd4],%r2;"
    )
    assert integers(body, "sm_61") == ["int32.add"] * 4 + ["int32.shift"] * 2


def test_volta_multiplies() -> None:
    body = "mul.wide.s32 %rd3,%r1,4; add.s64 %rd4,%rd2,%rd3; st.global.u32 [%rd4],%r1;"
    assert [name for name in integers(body, "sm_70") if "mad" in name] == ["int32.madwide"]


FLOATS = """.version 8.0
.target sm_52
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %rd<2>;
ld.param.u64 %rd1,[p]; ld.global.f32 %f1,[%rd1]; ld.global.f32 %f2,[%rd1+4]; ld.global.f64 %d1,[%rd1+8];
"""


@pytest.mark.parametrize("isa", ("sm_35", "sm_60", "sm_70", "sm_80", "sm_90"))
@pytest.mark.parametrize(
    ("body", "expected"),
    (
        ("mul.f32 %f3,%f1,%f2; add.f32 %f4,%f3,%f1; st.global.f32 [%rd1],%f4;", ["fp32.fma"]),
        ("mul.ftz.f32 %f3,%f1,%f2; sub.ftz.f32 %f4,%f1,%f3; st.global.f32 [%rd1],%f4;", ["fp32.fma"]),
        ("mul.f64 %d3,%d1,%d1; add.f64 %d4,%d3,%d1; st.global.f64 [%rd1],%d4;", ["fp64.fma"]),
        # rounded each by itself, because the program says so
        ("mul.rn.f32 %f3,%f1,%f2; add.rn.f32 %f4,%f3,%f1; st.global.f32 [%rd1],%f4;", ["fp32.add", "fp32.mul"]),
        # one of them flushes denormals
        ("mul.ftz.f32 %f3,%f1,%f2; add.f32 %f4,%f3,%f1; st.global.f32 [%rd1],%f4;", ["fp32.add", "fp32.mul"]),
        # the product is needed by itself, too
        ("mul.f32 %f3,%f1,%f2; add.f32 %f4,%f3,%f1; st.global.v2.f32 [%rd1],{%f3,%f4};", ["fp32.add", "fp32.mul"]),
        # the sum of two products: one of them is rounded
        ("mul.f32 %f3,%f1,%f2; mul.f32 %f5,%f1,%f1; add.f32 %f4,%f3,%f5; st.global.f32 [%rd1],%f4;",
         ["fp32.fma", "fp32.mul"]),
    ),
)  # fmt: skip
def test_products_and_sums_that_may_be_rounded_together(isa: str, body: str, expected: Sequence[str]) -> None:
    found = expanded(parse_module(FLOATS + body + TAIL, "k.ptx").kernels["k"], load_isa(isa))
    assert sorted(name for name in found.elements() if name.startswith("fp")) == list(expected)


@pytest.mark.parametrize("isa", ("sm_70", "sm_80", "sm_90", "sm_100"))
@pytest.mark.parametrize(
    ("body", "expected"),
    (
        # what ptxas 13.0 makes for sm_80 and sm_90: LEA, LEA.HI.X
        ("shl.b64 %rd6,%rd4,2; add.s64 %rd7,%rd5,%rd6; st.global.u32 [%rd7],%r1;", 2),
        # both halves shifted, then two sums
        ("shl.b64 %rd6,%rd4,2; add.s64 %rd7,%rd5,%rd6; add.s64 %rd8,%rd4,%rd6; st.global.u64 [%rd7],%rd8;", 6),
        # IADD3, LEA.HI.X.SX32 and LEA, LEA.HI.X
        ("cvt.s64.s32 %rd3,%r1; add.s64 %rd8,%rd3,%rd4; shl.b64 %rd6,%rd8,2; add.s64 %rd7,%rd5,%rd6;"
         "st.global.u32 [%rd7],%r1;", 4),
        # a shifted value taken from another is shifted first
        ("shl.b64 %rd6,%rd4,2; sub.s64 %rd7,%rd5,%rd6; st.global.u32 [%rd7],%r1;", 4),
        # IMAD, IMAD.WIDE, IMAD, IADD3
        ("mul.lo.s64 %rd6,%rd4,%rd5; add.s64 %rd7,%rd6,%rd5; st.global.u64 [%rd5],%rd7;", 4),
        # IMAD.WIDE with the extended value as what is added, MOV for its upper half
        ("mul.wide.u32 %rd6,%r1,%r2; cvt.u64.u32 %rd7,%r2; add.s64 %rd8,%rd6,%rd7; st.global.u64 [%rd4],%rd8;", 2),
    ),
)  # fmt: skip
def test_addresses_of_64_bit(isa: str, body: str, expected: int) -> None:
    loads = "ld.global.u64 %rd4,[%rd1+8]; ld.global.u64 %rd5,[%rd1+16]; ld.global.u32 %r2,[%rd1+24];"
    kept = "st.global.u64 [%rd1+8],%rd4; st.global.u64 [%rd1+16],%rd5;"

    def count(text: str) -> int:
        found = expanded(parse_module(HEAD + loads + text + kept + TAIL, "k.ptx").kernels["k"], load_isa(isa))
        return sum(n for name, n in found.items() if name.startswith(("int32", "fp16")))

    assert count(body) - count("st.global.u64 [%rd5],%rd4;") == expected


def test_comparisons_of_64_bit_are_two() -> None:
    body = "setp.lt.s64 %p1,%rd1,%rd2; selp.b64 %rd3,%rd1,%rd2,%p1; st.global.u64 [%rd2],%rd3;"
    text = HEAD.replace("{\n", "{\n.reg .pred %p<2>;", 1) + body + TAIL
    found = expanded(parse_module(text, "k.ptx").kernels["k"], load_isa("sm_80"))
    assert (found["int32.setp.alu"], found["int32.setp"], found["int32.selp"]) == (1, 1, 2)


@pytest.mark.parametrize("isa", ("sm_75", "sm_80", "sm_90"))
def test_a_product_that_is_found_again(isa: str) -> None:
    """Both sums make the product anew. The shift is the same product, so a copy of it: one more."""
    body = """.reg .pred %p<2>;
    mul.wide.s32 %rd3,%r1,4; add.s64 %rd4,%rd1,%rd3; ld.global.u32 %r2,[%rd4];
    cvt.s64.s32 %rd6,%r1; shl.b64 %rd7,%rd6,2;
    again: add.s64 %rd5,%rd2,%rd3; st.global.u32 [%rd5],%r2; st.global.u64 [%rd2],%rd7;
    ld.global.u32 %r2,[%rd1]; setp.lt.s32 %p1,%r2,4; @%p1 bra again;"""
    found = expanded(parse_module(HEAD.replace("sm_52", "sm_75") + body + TAIL, "k.ptx").kernels["k"], load_isa(isa))
    assert found["int32.madwide"] + found["int32.mulwide"] == 3
