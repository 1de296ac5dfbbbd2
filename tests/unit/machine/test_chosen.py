"""Arrays of local memory with a computed index: comparisons choose the register, as in the code of ptxas 13.0."""

from collections import Counter

import pytest

from ppt_gpu.machine.code import machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.spec.isa import load_isa

START = """.version 8.0
.target sm_75
.address_size 64
.entry k(.param .u64 p)
{{
.local .align 16 .b8 depot[{size}];
.reg .b32 %r<9>; .reg .f32 %f<30>; .reg .b64 %l<9>; .reg .pred %q<3>;
ld.param.u64 %l1, [p]; cvta.to.global.u64 %l1, %l1; mov.u64 %l2, depot; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
"""
END = "ld.local.f32 %f9, [depot+4]; st.global.f32 [%l1], %f9; ret;\n}}"
#: sums in an array that a loop goes through, by words, pairs and fours
LOOPS = {
    4: "ld.local.f32 %f1, [%l3]; fma.rn.f32 %f1, %f1, %f1, %f1; st.local.f32 [%l3], %f1;",
    8: "ld.local.v2.f32 {{%f1, %f2}}, [%l3]; add.f32 %f1, %f1, %f2; st.local.v2.f32 [%l3], {{%f1, %f2}};",
    16: "ld.local.v4.f32 {{%f1, %f2, %f3, %f4}}, [%l3]; add.f32 %f1, %f1, %f2;"
    "st.local.v4.f32 [%l3], {{%f1, %f2, %f3, %f4}};",
}
LOOP = """mov.u64 %l3, %l2;
LOOP: .pragma "nounroll";
{body} add.s64 %l3, %l3, {bytes}; add.s32 %r2, %r2, 1; setp.lt.s32 %q1, %r2, %r1; @%q1 bra LOOP;
"""


def code(body: str, size: int, target: str = "sm_75", end: str = END) -> list[str]:
    """The opcodes that run, with a @ where they have a guard."""
    kernel = parse_module((START + body + end).format(size=size)).kernels["k"]
    made = machine_code(kernel, 64, load_isa(target))
    replaced = {block for template in made.templates for block in template.blocks}
    places = [place for template in made.templates for place in template.code]
    for block, (first, end) in enumerate(zip(made.flow.block_start, made.flow.block_end, strict=True)):
        places += [] if block in replaced else range(first, end)
    every = [made.kernel.instructions[place] for place in places]
    return [("@" if one.guard is not None else "") + one.opcode for one in every]


@pytest.mark.parametrize(("bytes_", "most"), [(4, 5), (8, 7), (16, 12)])
def test_a_comparison_for_each_place_and_a_move_for_each_word(bytes_: int, most: int) -> None:
    body = LOOP.format(body=LOOPS[bytes_], bytes=bytes_)
    found = Counter(code(body, bytes_ * most))
    assert found["setp.eq.s32"] == most  # load and store share them
    assert found["@mov.b32"] == 2 * most * bytes_ // 4
    assert not any("local" in name for name in found)
    assert any("ld.local" in name for name in code(body, bytes_ * (most + 1)))


def test_an_array_of_which_no_place_is_named_stays_in_memory() -> None:
    body = LOOP.format(body=LOOPS[4], bytes=4) + "mul.wide.u32 %l4, %r1, 4; add.s64 %l5, %l2, %l4;"
    other = END.replace("[depot+4]", "[%l5]")
    assert not any("local" in name for name in code(body, 16))
    assert any("local" in name for name in code(body, 16, end=other))


def test_outside_of_loops_all_places_count_together() -> None:
    one = "mul.wide.u32 %l4, %r1, 4; add.s64 %l5, %l2, %l4; ld.local.f32 %f1, [%l5]; st.global.f32 [%l1+4], %f1;"
    assert not any("local" in name for name in code(one, 68))
    other = "ld.local.f32 %f2, [%l6]; st.global.f32 [%l1+8], %f2;"
    several = one + "add.s64 %l6, %l2, %l4;" + other + other + other
    assert any("local" in name for name in code(several, 36))


@pytest.mark.parametrize(
    "body",
    [
        LOOP.format(body="st.local.b64 [%l3], %l1;", bytes=8),
        LOOP.format(body=LOOPS[4] + "st.global.b64 [%l1], %l3;", bytes=4),
        LOOP.format(body="@%q1 " + LOOPS[4], bytes=4),
    ],
    ids=["words of 8 bytes", "address elsewhere", "guarded"],
)
def test_others_stay_in_memory(body: str) -> None:
    assert any("local" in name for name in code(body, 16))


@pytest.mark.parametrize(("products", "multiplied"), [(0, 37), (40, 17), (90, 0)])
def test_moves_even_the_pipes_out_over_the_whole_kernel(products: int, multiplied: int) -> None:
    behind = "fma.rn.f32 %f9, %f9, %f9, %f9;" * products
    text = START + LOOP.format(body=LOOPS[16], bytes=16) + END.replace("st.global", behind + "st.global")
    kernel = parse_module(text.format(size=128)).kernels["k"]
    made = machine_code(kernel, 64, load_isa("sm_75"))
    moves = [
        made.kernel.joined[place]
        for template in made.templates
        for place in template.code.tolist()
        if made.kernel.instructions[place].opcode == "mov.b32" and made.kernel.instructions[place].guard is not None
    ]
    assert len(moves) == 64
    assert moves.count(("int32.mad",)) == multiplied


def test_older_machines_keep_the_array_in_memory() -> None:
    assert any("local" in name for name in code(LOOP.format(body=LOOPS[4], bytes=4), 16, "sm_60"))
