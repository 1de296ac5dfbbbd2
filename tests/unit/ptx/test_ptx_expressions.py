"""Constant expressions, against the values that ptxas 13.0 gives them in initialisers."""

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.module import Imm, Mem, Reg, Sym, Vec
from ppt_gpu.ptx.parsing.expressions import constant
from ppt_gpu.ptx.parsing.initialisers import initial_bytes

M = (1 << 64) - 1
VALUES = {
    "(3*4+1)<<2|1": 53, "-7/2": -3, "-7 % 3": 0, "7 % 3": 1, "(5>3)?7:9": 7, "!0": 1, "!5": 0, "~0x0f": M - 15,
    "(1==1)&&(2!=2)||(3<=3)": 1, "(.s64)-1 >> 60": -1, "(.u64)-1 >> 60": 15, "5^3&6|8": 15, "10-4-3": 3, "-8 >> 1U": -4,
    "1<<63>>63": -1, "0x8000000000000000>>63": 1, "0xffffffffffffffff/3": 0x5555555555555555, "-1/3U": M // 3,
    "-1<0U": 0, "-1<0": 1, "~0>>4": M >> 4, "-9/4*4": -8, "1<<2+1": 8, "6&3==3": 0, "0?2:0?3:4": 4, "- 5": -5, "--5": 5,
    "!!7": 1, "017+1": 16, "5U-6U": M, "(5U-6)/2": M >> 1, "WARP_SZ*2": 64, "3>2>1": 0, "1.5*2.0>2.9": 1,
    "(1.0<2.0)+1": 2, "-7%-3": -7, "-6 % 4": 2, "(-2|0)>>1": -1, "(-2|0U)>>1": M >> 1, "1.5*-2.0": -3.0,
    "(5U<<0x8000000000000000)": 5,
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_value(text):
    assert constant(text) == Imm(VALUES[text])


@pytest.mark.parametrize(
    "text", ["7/2*2.0", "1/0", "1 % 0", "1.0/0.0", "1+", "(1", "1)", "1?2", "2 3", "%r1+1", "x", ""]
)
def test_is_no_expression(text):
    assert constant(text) is None


def test_depth_has_a_limit():
    assert constant("(" * 90 + "1" + ")" * 90) == Imm(1)
    assert constant("(" * 50000 + "1" + ")" * 50000) is None


def operands(line):
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 g[64];\n.func f(.reg .u32 a) { ret; }\n"
        f".visible .entry k() {{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;\n{line}\nret; }}\n"
    )
    return parse_module(text, "k.ptx").kernels["k"].instructions[0].operands


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        ("mov.u32 %r1, (3*4+1)<<2|1;", 1, Imm(53)),
        ("mov.u32 %r1, (5);", 1, Imm(5)),
        ("mov.u32 %r1, 5>3?7:9;", 1, Imm(7)),
        ("mov.u32 %r1, !0;", 1, Imm(1)),
        ("mov.u32 %r1, ~0x0F;", 1, Imm(M - 15)),
        ("mov.u32 %r1, WARP_SZ/2;", 1, Imm(16)),
        ("add.u32 %r1, %r2, -(4*8);", 2, Imm(-32)),
        ("bar.sync 1+2, 32*2;", 1, Imm(64)),
        ("mov.b64 %d1, {2+3, %r1};", 1, Vec((Imm(5), Reg(1)))),
        ("mov.u64 %d1, g+4*2;", 1, Sym("g", 8)),
        ("ld.global.u32 %r1, [g+4*3-1];", 1, Mem(Sym("g"), 11)),
        ("ld.global.u32 %r1, [%d1+(1<<4)];", 1, Mem(Reg(5), 16)),
        ("ld.global.u32 %r1, [%d1+~3];", 1, Mem(Reg(5), -4)),
        ("ld.local.u32 %r1, [4*8];", 1, Mem(None, 32)),
        ("call f, (2+3*(1));", 2, Vec((Imm(5),))),
        ("call f, ((5));", 2, Vec((Imm(5),))),
        ("call f, (5);", 2, Vec((Imm(5),))),
    ],
)
def test_in_operands(line, place, expected):
    assert operands(line)[place] == expected


@pytest.mark.parametrize(
    "line", ["mov.u32 %r1, 1/0;", "mov.u32 %r1, 3*;", "ld.global.u32 %r1, [g+3*];", "mov.u32 %r1, !x;"]
)
def test_errors_have_a_place(line):
    with pytest.raises(PptError) as caught:
        operands(line)
    assert caught.value.line == 8


def test_in_initialisers():
    assert initial_bytes("{1<<4, -7/2}", "s32", (2,), 4) == (b"\x10\0\0\0\xfd\xff\xff\xff", ())
