"""Words of local memory in registers, and neighbouring words of shared memory: what ptxas 13.0 makes of them."""

import pytest

from ppt_gpu.machine.code import machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa

START = """.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 p)
{
.local .align 8 .b8 depot[16]; .shared .align 4 .b8 tile[4096];
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %l<9>;
ld.param.u64 %l1, [p]; cvta.to.global.u64 %l1, %l1; mov.u64 %l2, depot; add.u64 %l3, %l2, 8; mov.u32 %r1, %tid.x;
"""


def opcodes(body: str) -> list[str]:
    kernel = parse_module(START + body + "\nret;\n}").kernels["k"]
    made = machine_code(kernel, 64, load_isa("sm_80"))
    (template,) = made.templates
    return [made.kernel.instructions[place].opcode for place in template.code]


def test_a_word_that_every_access_names_is_a_register() -> None:
    code = opcodes("st.local.u32 [%l3], %r1; ld.volatile.local.u32 %r2, [depot+8]; st.global.u32 [%l1], %r2;")
    assert not [name for name in code if "local" in name]
    assert "st.global.u32" in code


@pytest.mark.parametrize(
    "body",
    [
        "mul.wide.u32 %l4, %r1, 8; add.u64 %l5, %l2, %l4; st.local.u64 [%l5], %l1;"
        "ld.local.u64 %l6, [%l3]; cvt.u32.u64 %r2, %l6;",
        "cvta.local.u64 %l4, %l3; st.global.u64 [%l1+8], %l4; st.local.u32 [%l3], %r1; ld.local.u32 %r2, [%l3];",
        "st.local.u64 [%l3], %l1; ld.local.u32 %r2, [%l3+4];",
        "st.local.v2.u32 [%l3], {%r1, %r1}; ld.local.u32 %r2, [%l3];",
    ],
    ids=["computed", "address taken", "other sizes", "pairs"],
)
def test_others_stay_in_memory(body: str) -> None:
    code = opcodes(body + "st.global.u32 [%l1], %r2;")
    assert sum("local" in name and name.startswith("ld") for name in code) == 1


def test_pairs_of_neighbouring_words_are_one_load() -> None:
    code = opcodes(
        "shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;"
        "ld.shared.v2.f32 {%f1, %f2}, [%r3]; ld.shared.v2.f32 {%f3, %f4}, [%r3+8];"
        "ld.shared.v2.f32 {%f5, %f6}, [%r3+24];"
        "add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f4; add.f32 %f1, %f1, %f5;"
        "add.f32 %f1, %f1, %f6; st.global.f32 [%l1], %f1;"
    )
    assert sorted(name for name in code if name.startswith("ld.shared")) == ["ld.shared.v2.f32", "ld.shared.v4.f32"]
