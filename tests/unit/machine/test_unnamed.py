"""Machine instructions that PTX does not name: how many a kernel has, as ptxas 13.0 has them in its code."""

from collections import Counter

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.disassemble import disassemble, disassembler
from ppt_gpu.machine.selection.if_conversion import Arms
from ppt_gpu.machine.selection.implicit_moves import dominators, unnamed
from ppt_gpu.machine.selection.pipe_balance import banked
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.instructions import loads_launch_parameter, operation
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.ptx.linking.liveness import live_out, register_weights
from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.sass.counts import counted
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.validate.isa.expansions import expanded

HEAD = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n, .param .u32 s)
{
.reg .pred %p<4>; .reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %rd<50>;
.shared .align 4 .b8 sh[4096];
ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n]; cvta.to.global.u64 %rd2,%rd1; mov.u32 %r3,%tid.x;
"""
TAIL = "ret;\n}\n"
ELEMENT = "mul.wide.s32 %rd3,%r3,4; add.s64 %rd4,%rd2,%rd3;\n"
#: name -> (the kernel, machine instructions by ptxas for sm_75, sm_80 and sm_90)
KERNELS = {
    "a store of zero": (ELEMENT + "mov.u32 %r4,0; st.global.u32 [%rd4],%r4;\n", (6, 7, 7)),
    "a store of a constant": (ELEMENT + "mov.u32 %r4,7; st.global.u32 [%rd4],%r4;\n", (7, 8, 8)),
    "a store of a parameter": (ELEMENT + "st.global.u32 [%rd4],%r1;\n", (7, 8, 8)),
    "block and grid": (
        "mov.u32 %r5,%ctaid.x; mov.u32 %r6,%ntid.x; mad.lo.s32 %r3,%r5,%r6,%r3;\n" + ELEMENT
        + "st.global.u32 [%rd4],%r3;\n",
        (8, 9, 10),
    ),
    "a guarded arm": (
        ELEMENT + "ld.global.f32 %f1,[%rd4]; setp.gt.s32 %p1,%r3,%r1; @%p1 bra N;\n"
        "fma.rn.f32 %f1,%f1,%f1,%f1; fma.rn.f32 %f1,%f1,%f1,%f1;\nN: st.global.f32 [%rd4],%f1;\n",
        (10, 11, 12),
    ),
}  # fmt: skip


def module(body: str) -> Module:
    return parse_module(HEAD + body + TAIL, "k.ptx")


def found(kernel: Kernel, arch: str) -> Counter[str]:
    """How often each key of the table applies."""
    flow = control_flow(kernel)
    keys = load_isa(f"sm_{arch}").unnamed
    named = {key: (key,) for key in keys}
    made = unnamed(kernel, flow, live_out(kernel, flow), Arms(kernel, flow), named)
    return Counter(key for names in made.values() for key in names)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("place, arch", list(enumerate(("75", "80", "90"))))
def test_as_many_as_ptxas_makes(name: str, place: int, arch: str) -> None:
    body, counts = KERNELS[name]
    assert expanded(module(body).kernels["k"], load_isa(f"sm_{arch}")).total() == counts[place]


@pytest.mark.parametrize("place, arch", list(enumerate(("75", "80", "90"))))
def test_ptxas_still_makes_as_many(place: int, arch: str) -> None:
    try:
        tools = disassembler(arch)
    except PptError as error:
        pytest.skip(error.message)
    made = {
        name: counted(disassemble(tools, module(body), arch).functions["k"]).total()
        for name, (body, _) in KERNELS.items()
    }
    assert made == {name: counts[place] for name, (_, counts) in KERNELS.items()}


def test_before_hopper_parameters_are_operands() -> None:
    kernel = module(ELEMENT + "st.global.u32 [%rd4],%r1;\n").kernels["k"]
    assert found(kernel, "75") == {"stack": 1, "special": 1, "constant": 2}  # the factor 4, and the parameter stored
    assert found(kernel, "90") == {"stack": 1, "descriptor": 1, "special": 1, "parameter": 2}


def test_a_constant_stays_in_its_register_where_all_ways_pass() -> None:
    access = "mul.wide.s32 %rd{0},%r3,4; add.s64 %rd{0}1,%rd2,%rd{0}; st.global.u32 [%rd{0}1],%r3;\n"
    text = access.format(3) + "setp.gt.s32 %p1,%r3,%r1; @%p1 bra N;\n" + access.format(4) + "N:\n"
    assert found(module(text).kernels["k"], "80")["constant"] == 1
    text = "setp.gt.s32 %p1,%r3,%r1; @%p1 bra N;\n" + access.format(4) + "N:\n" + access.format(3)
    assert found(module(text).kernels["k"], "80")["constant"] == 2


def test_variables_of_loops_begin_with_a_move() -> None:
    text = "mov.u32 %r4,0; mov.u32 %r5,%r3;\nL: add.s32 %r5,%r5,%r4; add.s32 %r4,%r4,1;\n"
    text += "setp.lt.s32 %p1,%r4,%r1; @%p1 bra L;\n"
    assert found(module(text + "st.shared.u32 [sh],%r5;\n").kernels["k"], "80")["copy"] == 1  # %r3 ends here
    assert found(module(text + "st.shared.u32 [%r3],%r5;\n").kernels["k"], "80")["copy"] == 2


def test_a_parameter_of_64_bit_is_stored_from_two_registers() -> None:
    kernel = module("st.global.u64 [%rd2],%rd1;").kernels["k"]
    assert (
        found(kernel, "75")["constant"] == found(module("st.global.u32 [%rd2],%r1;").kernels["k"], "75")["constant"] + 1
    )


def test_many_sums_are_cleared_in_pairs() -> None:
    """ptxas: MOV for each of a few; CS2R for two of 16, whether the PTX clears or copies them."""
    for count, moves in ((3, 3), (16, 8)):
        sums = [f"%a{n}" for n in range(count)]
        text = f".reg .f32 %a<{count}>; mov.u32 %r4,%r3; mov.f32 {sums[0]},0f00000000;\n"
        text += "".join(f"mov.f32 {name},{sums[0]};" for name in sums[1:])
        text += "\nL: add.s32 %r4,%r4,1; setp.lt.s32 %p1,%r4,%r1;\n"
        text += "".join(f"fma.rn.f32 {name},{name},{name},{name};" for name in sums) + "@%p1 bra L;\n"
        text += "".join(f"st.shared.f32 [sh],{name};" for name in sums)
        assert found(module(text).kernels["k"], "80")["copy"] == moves


def test_lanes_that_part_meet_again() -> None:
    arm = "@%p1 bra N;\n" + "fma.rn.f32 %f1,%f1,%f1,%f1;\n" * 9 + "N: st.shared.f32 [sh],%f1;\n"
    assert found(module("setp.gt.s32 %p1,%r3,%r1;" + arm).kernels["k"], "80")["reconverge"] == 1
    assert found(module("setp.gt.s32 %p1,%r1,7;" + arm).kernels["k"], "80")["reconverge"] == 0  # all go one way


def test_only_short_arms_are_guarded() -> None:
    for products, guarded in ((8, 1), (9, 0)):
        text = "setp.gt.s32 %p1,%r3,%r1; @%p1 bra N;\n" + "fma.rn.f32 %f1,%f1,%f1,%f1;\n" * products
        kernel = module(text + "N: st.shared.f32 [sh],%f1;\n").kernels["k"]
        assert len(Arms(kernel, control_flow(kernel)).guarded) == guarded


def test_dominators_of_two_arms() -> None:
    text = "setp.gt.s32 %p1,%r3,%r1; @%p1 bra N;\nbar.sync 0; bra M;\nN: bar.sync 1;\nM: bar.sync 2;\n"
    flow = control_flow(module(text).kernels["k"])
    assert dominators(flow, {0}) == [0b1, 0b11, 0b101, 0b1001]


CALLED = """.version 8.0
.target sm_75
.address_size 64
.func (.param .b32 out) twice(.param .b32 a)
{
.reg .b32 %r<4>;
ld.param.u32 %r1,[a]; add.s32 %r2,%r1,%r1; st.param.b32 [out],%r2;
ret;
}
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1,[p];
mov.u32 %r1,%tid.x;
{ .param .b32 given; .param .b32 got; st.param.b32 [given],%r1;
call.uni (got), twice, (given); ld.param.b32 %r2,[got]; }
st.global.u32 [%rd1],%r2;
ret;
}
"""


def test_parameters_and_results_of_functions_are_in_registers() -> None:
    """Only a kernel's own parameter is in the constant bank: not what a function takes, nor what it gives back."""
    unlinked = parse_module(CALLED, "k.ptx")
    kernel = link(unlinked.kernels["k"], unlinked)
    assert found(kernel, "90")["parameter"] == 1
    loads = [each for each in kernel.instructions if operation(each) == "load.param"]
    assert [loads_launch_parameter(kernel, each) for each in loads] == [True, False, False]
    assert banked(kernel) == {loads[0].writes[0]}
    weights = register_weights(kernel)
    assert [weights[each.writes[0]] for each in loads] == [0, 1, 1]
