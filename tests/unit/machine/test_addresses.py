"""Address arithmetic that accesses to shared memory do, as ptxas 13.0 has it for sm_80 and sm_90."""

import pytest

from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
.shared .align 4 .b8 first[1024];
.shared .align 4 .b8 second[1024];
ld.param.u64 %rd1,[p]; ld.global.u32 %r1,[%rd1]; mov.u32 %r9,second;
"""
TAIL = "\nst.global.u32 [%rd1],%r8;\nret;\n}\n"


def arithmetic(body: str, isa: str) -> int:
    """The additions and shifts that a body becomes, of the ALU or the multiplier."""
    return integers(body, isa) - integers("ld.shared.u32 %r8,[%r1];", isa)


def integers(body: str, isa: str) -> int:
    found = expanded(parse_module(HEAD + body + TAIL, "k.ptx").kernels["k"], load_isa(isa))
    return sum(found[name] for name in ("int32.add", "int32.shift", "int32.mov", "int32.mad"))


INDEX = "shl.b32 %r2,%r1,2; add.s32 %r3,%r9,%r2; ld.shared.u32 %r8,[%r3];"
CASES = (
    (INDEX, 0),  # LDS R8, [R1.X4+0x400]
    ("shl.b32 %r2,%r1,4; ld.shared.u32 %r8,[%r2+8];", 0),  # [R1.X16+0x8]
    ("shl.b32 %r2,%r1,5; add.s32 %r3,%r9,%r2; ld.shared.u32 %r8,[%r3];", 1),  # no scale of 32: a shift
    ("shl.b32 %r2,%r1,1; add.s32 %r3,%r9,%r2; ld.shared.u32 %r8,[%r3];", 1),  # nor of 2
    ("shl.b32 %r2,%r1,2; add.s32 %r3,%r9,%r2; st.shared.u32 [%r3],%r2; mov.u32 %r8,0;", 1),  # the index is stored, too
    ("shl.b32 %r2,%r1,2; add.s32 %r3,%r1,%r2; ld.shared.u32 %r8,[%r3];", 1),  # no constant: LEA
    ("shl.b32 %r2,%r1,2; add.s32 %r3,%r9,%r2; atom.shared.exch.b32 %r8,[%r3],%r1;", 0),
    ("shl.b32 %r2,%r1,3; add.s32 %r3,%r2,%r9; ld.shared.u64 %rd2,[%r3]; cvt.u32.u64 %r8,%rd2;", 0),
    ("shl.b32 %r2,%r1,2; add.s32 %r3,%r9,%r2; add.s32 %r4,%r3,64; ld.shared.u32 %r5,[%r3];"
     "ld.shared.u32 %r6,[%r4]; xor.b32 %r8,%r5,%r6;", 0),
)  # fmt: skip


@pytest.mark.parametrize("isa", ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89"))
@pytest.mark.parametrize(("body", "expected"), CASES)
def test_scaled_and_constant(body: str, expected: int, isa: str) -> None:
    assert arithmetic(body, isa) == expected


def test_hopper_and_gpus_before_volta_compute_them() -> None:
    assert arithmetic(INDEX, "sm_90") == 1  # LEA with the window of the block
    assert arithmetic(INDEX, "sm_61") >= 1


def test_a_loop_that_is_unrolled() -> None:
    """Every iteration's shift is free, also of the registers that unrolling adds."""
    body = (
        "mov.u32 %r8,0; mov.u32 %r4,0;\nL:\n" + "shl.b32 %r2,%r1,2; add.s32 %r3,%r9,%r2; ld.shared.u32 %r5,[%r3];"
        "xor.b32 %r8,%r8,%r5; mad.lo.s32 %r1,%r1,%r1,%r5; add.s32 %r4,%r4,1; setp.lt.s32 %p1,%r4,8; @%p1 bra L;"
    )
    kernel = parse_module(HEAD + body + TAIL, "k.ptx").kernels["k"]
    found = expanded(kernel, load_isa("sm_80"), unroll=True)
    assert found["load.shared"] == 8 and found["int32.shift"] == found["int32.add"] == 0


def test_an_index_that_changes_before_the_access() -> None:
    body = "shl.b32 %r2,%r1,2; add.s32 %r1,%r1,%r2; ld.shared.u32 %r8,[%r2]; xor.b32 %r8,%r8,%r1;"
    assert arithmetic(body, "sm_80") == 2
