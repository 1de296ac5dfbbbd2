"""Random control flow: the compiled engine and the interpreter leave the same memory and the same trace.

Programs are lists of labelled places with random work and random conditional branches, forwards to any place and
backwards while a counter lasts: structured code is the rare case, so reconvergence is tried hard.
"""

import numpy as np
from equal_fields import assert_equal
from hypothesis import strategies as st
from reference.interpreter.interpreter import interpret
from some_examples import examples

from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %d<6>;
.shared .align 4 .b8 s[256];
ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 40, %r1;
mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d1, %d2; ld.global.u32 %r4, [%d3]; mov.u32 %r5, 0;
"""
WORK = [
    "add.u32 %r4, %r4, {n};",
    "xor.b32 %r4, %r4, {n};",
    "mad.lo.u32 %r4, %r4, 5, %r1;",
    "and.b32 %r6, %r4, 63; mul.wide.u32 %d4, %r6, 4; add.s64 %d5, %d1, %d4; ld.global.u32 %r7, [%d5]; "
    "xor.b32 %r4, %r4, %r7;",
    "and.b32 %r6, %r4, 60; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r4;",
    "and.b32 %r6, %r1, 28; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; ld.shared.u32 %r4, [%r6];",
    "atom.global.add.u32 %r8, [%d1], {n};",
    "setp.lt.u32 %p1, %r1, {n}; @%p1 add.u32 %r4, %r4, 3; @!%p1 st.global.u32 [%d3], %r4;",
    "vote.ballot.b32 %r8, %p1; xor.b32 %r4, %r4, %r8;",
]
TESTS = ["and.b32 %r9, %r4, {n}; setp.ne.u32 %p2, %r9, 0;", "setp.gt.u32 %p2, %r1, {n};", "setp.eq.u32 %p2, %r1, {n};"]

work = st.builds(lambda text, n: text.format(n=n), st.sampled_from(WORK), st.integers(1, 40))
test = st.builds(lambda text, n: text.format(n=n), st.sampled_from(TESTS), st.integers(1, 40))
place = st.tuples(st.lists(work, max_size=3), test, st.sampled_from(["@%p2 bra", "@!%p2 bra", "bra", "", "@%p2 ret"]),
                  st.integers(0, 9))  # fmt: skip


def program(places):
    lines = [HEAD]
    for number, (code, condition, branch, target) in enumerate(places):
        lines += [f"L{number}:", *code, condition]
        goal = target % (len(places) + 1)
        if branch.endswith("ret"):
            lines.append(f"{branch};")
        elif branch and goal > number:
            lines.append(f"{branch} L{goal};")
        elif branch:  # backwards: at most 20 times a thread
            lines.append("add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 20; and.pred %p2, %p2, %p3;")
            lines.append(f"{branch.replace('!', '') if branch != 'bra' else '@%p3 bra'} L{goal};")
    lines += [f"L{len(places)}:", "st.global.u32 [%d3], %r4;", "ret;\n}"]
    return "\n".join(lines)


def outcome(module, engine):
    buffer = Buffer("a", "u32", 160, "random", low=0, high=2**32 - 1)
    memory = DeviceMemory.build(module, [buffer])
    launch = Launch("k", (2, 1, 1), (40, 1, 1), (Argument("u64", buffer="a"),))
    return memory.data, engine(module.kernels["k"], module, launch, memory, range(2))


@examples(30, 400, st.lists(place, min_size=1, max_size=9))
def test_random_control_flow(places):
    module = parse_module(program(places), "random.ptx")
    compiled_memory, compiled = outcome(module, run)
    plain_memory, plain = outcome(module, interpret)
    assert np.array_equal(compiled_memory, plain_memory)
    assert_equal(compiled, plain, ("warnings",))
    assert compiled.warp_threads.sum() == compiled.pc_threads.sum()
