"""Instructions that the ALU or the multiplier can do: as many for one as for the other, as ptxas 13.0 has it."""

import pytest

from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<4>;
ld.param.u64 %rd1,[p]; ld.param.u32 %r9,[n]; ld.global.u32 %r1,[%rd1]; ld.global.u32 %r2,[%rd1+4];
"""
TAIL = "\nst.global.u32 [%rd1],%r3;\nret;\n}\n"
XOR = "xor.b32 %r3,%r1,%r2;"


def pipes(body: str, isa: str = "sm_80") -> tuple[int, int]:
    """Instructions for the ALU and for the multiplier."""
    timed = load_isa(isa)
    found = expanded(parse_module(HEAD + body + TAIL, "k.ptx").kernels["k"], timed)
    of = {name: timed.op(name).pipe for name in found}
    alu = sum(count for name, count in found.items() if of[name] in ("int32", "alulite"))
    return alu, sum(count for name, count in found.items() if of[name] in ("fp32", "imad"))


def adds(count: int, operand: str) -> str:
    """A chain of sums, with xors between them, so that no two become one."""
    return XOR + "".join(f"add.s32 %r4,%r3,{operand}; xor.b32 %r3,%r4,%r1;" for _ in range(count))


@pytest.mark.parametrize("isa", ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100"))
def test_sums_of_registers_go_to_the_multiplier(isa: str) -> None:
    alu, multiplier = pipes(adds(9, "%r2"), isa)  # 10 xors; 9 sums and what is moved
    assert abs(alu - multiplier) <= 1


def test_sums_with_a_literal_or_a_parameter_do_not() -> None:
    """IMAD.IADD multiplies by a literal 1: it has no place for another constant."""
    for operand in ("17", "%r9"):
        alu, multiplier = pipes(adds(9, operand))
        assert alu >= 19 and multiplier <= 2


def test_nothing_moves_where_the_multiplier_is_busy() -> None:
    products = "".join(f"mad.lo.s32 %r{5 + k % 4},%r1,%r2,%r{5 + (k + 1) % 4};" for k in range(40))
    sums = "xor.b32 %r3,%r5,%r6; xor.b32 %r3,%r3,%r7; xor.b32 %r3,%r3,%r8;"
    few, many = pipes("mov.u32 %r8,%r2;" + products + adds(3, "%r2") + sums), pipes(adds(3, "%r2") + sums)
    assert few[1] == 40 and few[0] > many[0]


def test_shifts_left_only() -> None:
    left = XOR + "".join("shl.b32 %r4,%r3,7; xor.b32 %r3,%r4,%r1;" for _ in range(8))
    alu, multiplier = pipes(left)
    assert abs(alu - multiplier) <= 1
    alu, multiplier = pipes(left.replace("shl.b32", "shr.u32"))
    assert multiplier <= 1


def test_an_alu_that_is_fast_at_sums_keeps_them() -> None:
    """sm_120: no IMAD.IADD nor IMAD.MOV in any of ptxas's code, but IMAD.SHL."""
    alu, multiplier = pipes(adds(9, "%r2") + "mov.u32 %r8,%r2; xor.b32 %r3,%r3,%r8;", "sm_120")
    assert alu >= 20 and multiplier <= 1
    alu, multiplier = pipes(XOR + "".join("shl.b32 %r4,%r3,7; xor.b32 %r3,%r4,%r1;" for _ in range(8)), "sm_120")
    assert abs(alu - multiplier) <= 1


def test_one_pipe_for_both_before_volta() -> None:
    timed = load_isa("sm_61")
    assert timed.op("int32.add").pipe == timed.op("int32.mad").pipe
    body = adds(9, "%r2")
    assert expanded(parse_module(HEAD + body + TAIL, "k.ptx").kernels["k"], timed)["int32.mad"] == 0
