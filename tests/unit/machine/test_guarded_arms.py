"""Guarded arms and what is behind them are ordered as one piece of code, whether or not a warp runs them."""

import numpy as np
import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.frontends.disassemble import disassemble, disassembler
from ppt_gpu.machine.code import MachineCode, machine_code
from ppt_gpu.machine.selection.if_conversion import Arms
from ppt_gpu.machine.trace import as_machine_code
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.cfg import control_flow
from ppt_gpu.ptx.module import Module
from ppt_gpu.sass.counts import counted
from ppt_gpu.spec.isa import load_isa
from ppt_gpu.workload.workload import Argument, Buffer, Launch

HEAD = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u32 n) {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<8>; .shared .b8 tile[4096];
ld.param.u64 %d0, [in]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2;
mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; mov.u32 %r3, 0; mov.u32 %r4, 0;
setp.ge.u32 %p0, %r1, %r0; @%p0 bra L1; ld.global.u32 %r3, [%d1];
L1: st.shared.u32 [%r2], %r3;
"""
TWO = """add.u32 %r5, %r1, 64; setp.ge.u32 %p1, %r5, %r0; @%p1 bra L2; ld.global.u32 %r4, [%d1+256];
L2: add.u32 %r4, %r3, %r4; st.shared.u32 [%r2], %r4; st.global.u32 [%d1+1024], %r4; ret; }
"""
ONE = "st.global.u32 [%d1+1024], %r3; ret; }\n"
N = 96  # elements: the second warp of two runs the first arm alone


def made(text: str) -> tuple[Module, MachineCode]:
    module = parse_module(text)
    return module, machine_code(module.kernels["k"], 64, load_isa("sm_75"))


def traced(module: Module, memory: DeviceMemory, n: int = N) -> Trace:
    launch = Launch("k", (1, 1, 1), (64, 1, 1), (Argument("u64", buffer="in"), Argument("u32", value=n)))
    return run(module.kernels["k"], module, launch, memory, [0])


def opcodes(code: MachineCode, path: np.ndarray) -> list[str]:
    names = [".".join(code.kernel.instructions[pc].opcode.split(".")[:2]) for pc in path]
    return [name for name in names if name in ("ld.global", "st.shared", "st.global")]


def test_their_loads_are_in_flight_together() -> None:
    """As in ptxas's code: both loads come before the store that waits for the first."""
    module, code = made(HEAD + TWO)
    trace = as_machine_code(traced(module, DeviceMemory.build(module, [Buffer("in", "u32", 512)])), code)
    first = trace.path_pc[trace.path_start[trace.warp_path[0]] : trace.path_start[trace.warp_path[0] + 1]]
    assert opcodes(code, first) == ["ld.global", "ld.global", "st.shared", "st.shared", "st.global"]


def test_a_warp_that_passes_one_by_makes_no_access_there() -> None:
    """The order of the rest stays, and so do the addresses of its accesses."""
    module, code = made(HEAD + TWO)
    before = traced(module, DeviceMemory.build(module, [Buffer("in", "u32", 512)]))
    after = as_machine_code(before, code)
    path = int(after.warp_path[1])
    second = after.path_pc[after.path_start[path] : after.path_start[path + 1]]
    assert opcodes(code, second) == ["ld.global", "st.shared", "st.shared", "st.global"]
    for trace in (before, after):
        assert trace.access_start.tolist()[2] - trace.access_start.tolist()[1] == 4
    begin, end = after.access_start[1:3]
    assert sorted(after.access_base[begin:end]) == sorted(before.access_base[begin:end])


@pytest.mark.parametrize(("rest", "guarded"), [(ONE, 0), (TWO, 2)])
def test_a_load_that_a_kernel_begins_with(rest: str, guarded: int) -> None:
    """It is guarded where another guarded arm follows, and has a branch around it else."""
    kernel = parse_module(HEAD + rest).kernels["k"]
    assert len(Arms(kernel, control_flow(kernel)).guarded) == guarded


@pytest.mark.parametrize("arch", ["75", "80", "86"])
def test_ptxas_does_the_same(arch: str) -> None:
    try:
        tools = disassembler(arch)
    except PptError as error:
        pytest.skip(error.message)
    for rest, branches in ((ONE, 1), (TWO, 0)):
        code = disassemble(tools, parse_module(HEAD + rest), arch).functions["k"]
        assert counted(code)["BSSY"] == branches


NESTED = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u32 n) {
.reg .pred %p<6>; .reg .b32 %r<12>; .reg .b64 %d<8>;
ld.param.u64 %d0, [in]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1;
ld.global.u32 %r4, [%d1+2048];
FIRST
@%p0 bra L1;
SECOND
@%p1 bra L1;
ld.global.u32 %r3, [%d1]; add.u32 %r4, %r4, READ;
L1: st.global.u32 [%d1+1024], %r4; ret; }
"""
ONE_COMPARISON = "setp.ge.s32 %p0, %r1, %r0;"
OUTSIDE = "setp.lt.s32 %p2, %r1, 2; setp.ge.s32 %p3, %r1, %r0; or.pred %p0, %p2, %p3;"
INSIDE = "setp.ge.s32 %p2, %r1, 2; setp.lt.s32 %p3, %r1, %r0; and.pred %p2, %p2, %p3; not.pred %p0, %p2;"


def nested(between: int, first: str = INSIDE, second: str = "or", read: str = "%r3") -> str:
    """An arm under two conditions; `between` instructions compute what the second is about."""
    code = "add.s32 %r5, %r1, -3; " + "mad.lo.s32 %r5, %r5, %r0, %r1; " * (between - 1)
    if second == "or":
        code += "setp.lt.s32 %p4, %r5, 0; setp.ge.s32 %p5, %r5, %r0; or.pred %p1, %p4, %p5;"
    else:
        code += "setp.ge.s32 %p1, %r5, %r0;"
    return NESTED.replace("FIRST", first).replace("SECOND", code).replace("READ", read)


#: with how many branches become guards, and how many instructions join two predicates
TWO_CONDITIONS = [
    (nested(1), 2, 1),
    (nested(2), 2, 1),
    (nested(3), 1, 0),  # too long
    (nested(1, read="%r5"), 1, 0),  # the arm reads more than the predicate
    (nested(1, second="one"), 2, 0),
    (nested(1, first=ONE_COMPARISON), 2, 0),
    (nested(1, first=OUTSIDE), 2, 1),
]


@pytest.mark.parametrize(("text", "guarded", "joined"), TWO_CONDITIONS)
def test_two_conditions_become_one_guard(text: str, guarded: int, joined: int) -> None:
    kernel = parse_module(text).kernels["k"]
    arms = Arms(kernel, control_flow(kernel))
    assert (len(arms.guarded), len(arms.joined)) == (guarded, joined)


@pytest.mark.parametrize("arch", ["75", "80", "86", "90"])
def test_ptxas_joins_the_same_conditions(arch: str) -> None:
    try:
        tools = disassembler(arch)
    except PptError as error:
        pytest.skip(error.message)
    for text, guarded, joined in TWO_CONDITIONS:
        counts = counted(disassemble(tools, parse_module(text), arch).functions["k"])
        assert (counts["BSSY"], counts["PLOP3.LUT"]) == (2 - guarded, joined)


def test_a_warp_that_fails_the_first_condition_computes_the_second() -> None:
    """The second warp of two, threads from 32 on, issues what the first does, but for the load of the arm."""
    module, code = made(nested(1))
    before = traced(module, DeviceMemory.build(module, [Buffer("in", "u32", 1024)]), 32)
    after = as_machine_code(before, code)
    first, second = (after.path_pc[slice(*after.path_start[p : p + 2])].tolist() for p in after.warp_path)
    opcode = {pc: code.kernel.instructions[pc].opcode for pc in first}
    loads = [pc for pc in first if opcode[pc] == "ld.global.u32"]
    assert len(loads) == 2
    assert second in ([pc for pc in first if pc != load] for load in loads)
    assert np.diff(after.access_start).tolist() == [3, 2]
    both = [pc for pc in first if opcode[pc] == "or.pred"]
    assert [code.kernel.joined.get(pc) for pc in both].count(("int32.setp",)) == 1
