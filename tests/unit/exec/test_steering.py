"""Which kernels memory can steer: decided from the text, and held against what runs on different data show."""

import dataclasses

import numpy as np
import pytest
from jit_kernels import integer, pointer, text_case

from ppt_gpu.exec.run import run
from ppt_gpu.exec.steering import steered_by_memory
from ppt_gpu.exec.workload import Buffer

#: body between the loads of parameters (%d1: in, %d2: out, %r1: n, %r2: tid) and the end; is it steered?
#: OUT stands for a store to the output.
BODIES = {
    "copy": ("mul.wide.u32 %d3, %r2, 4; add.u64 %d4, %d1, %d3; ld.global.u32 %r3, [%d4]; OUT %r3;", False),
    "gather": (
        "mul.wide.u32 %d3, %r2, 4; add.u64 %d4, %d1, %d3; ld.global.u32 %r3, [%d4]; and.b32 %r3, %r3, 7;"
        "mul.wide.u32 %d3, %r3, 4; add.u64 %d4, %d1, %d3; ld.global.u32 %r4, [%d4]; OUT %r4;",
        True,
    ),
    "branch on data": ("ld.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r3, 3; @%p1 bra $END; OUT %r2;", True),
    "guard on data": ("ld.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r3, 3; @%p1 OUT %r2;", True),
    "select on data": ("ld.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r3, 3; selp.u32 %r4, 1, 2, %p1; OUT %r4;", False),
    "branch on thread": ("setp.lt.u32 %p1, %r2, %r1; @%p1 bra $END; OUT %r2;", False),
    "address through shared": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 12; st.shared.u32 [%r5], %r3; bar.sync 0;"
        "ld.shared.u32 %r4, [%r5]; cvt.u64.u32 %d3, %r4; add.u64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4];"
        "OUT %r6;",
        True,
    ),
    "thread ids through shared": (
        "mov.u32 %r5, s; and.b32 %r3, %r2, 12; st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r4, [%r5];"
        "cvt.u64.u32 %d3, %r4; add.u64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4]; OUT %r6;",
        False,
    ),
    "ticket": ("atom.global.add.u32 %r3, [%d1], 1; setp.eq.u32 %p1, %r3, 3; @%p1 bra $END; OUT %r2;", True),
    "count": ("atom.global.add.u32 %r3, [%d1], 1; OUT %r2;", False),
    "clock": ("mov.u32 %r3, %clock; setp.eq.u32 %p1, %r3, 3; @%p1 bra $END; OUT %r2;", True),
    "loop bound from data": (
        "ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 7; mov.u32 %r4, 0;\n$L: add.u32 %r4, %r4, 1;"
        "setp.lt.u32 %p1, %r4, %r3; @%p1 bra $L; OUT %r4;",
        True,
    ),
    "shuffled data": (
        "ld.global.u32 %r3, [%d1]; shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; OUT %r4;", False,
    ),
    "shuffled address": (
        "ld.global.u32 %r3, [%d1]; shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; and.b32 %r4, %r4, 12; cvt.u64.u32 %d3, %r4;"
        "add.u64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4]; OUT %r6;",
        True,
    ),
}  # fmt: skip
HEAD = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>; .shared .align 4 .b8 s[64];
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
"""


def case(body):
    buffers = [Buffer("a", "u32", 64), Buffer("b", "u32", 64)]
    return text_case(
        f"{HEAD}{body.replace('OUT', 'st.global.u32 [%d2],')}\n$END: ret;\n}}\n",
        (3,),
        (32,),
        [pointer("a"), pointer("b"), integer(20)],
        buffers,
    )


@pytest.mark.parametrize("body, steered", BODIES.values(), ids=BODIES)
def test_answer(body, steered):
    assert steered_by_memory(case(body).kernel) is steered


@pytest.mark.parametrize("body", [body for body, steered in BODIES.values() if not steered])
def test_without_steering_the_trace_does_not_depend_on_data(body):
    """The same trace on zeros, on random data, and after other blocks."""
    one = case(body)
    _, expected = one.run(blocks=[2])
    for seed in range(4):
        other = case(body)
        rng = np.random.default_rng(seed)
        other.fill = {"a": rng.integers(0, 2**32, 64, dtype=np.uint32), "b": rng.integers(0, 9, 64, dtype=np.uint32)}
        memory = other.memory()
        for blocks in ([0, 1], [2]):
            found = run(other.kernel, other.module, other.launch, memory, blocks)
        for field in dataclasses.fields(expected):
            left, right = getattr(found, field.name), getattr(expected, field.name)
            assert np.array_equal(left, right) if isinstance(right, np.ndarray) else left == right, field.name


def test_data_dependence_shows_in_steered_ones():
    """The cases are what they say: on some data another trace."""
    for name in ("gather", "branch on data", "guard on data", "address through shared", "loop bound from data"):
        traces = []
        for seed in range(6):
            one = case(BODIES[name][0])
            one.fill = {"a": np.random.default_rng(seed).integers(0, 5, 64, dtype=np.uint32)}
            _, trace = one.run(blocks=[0])
            traces.append((trace.path_pc.tobytes(), trace.access_base.tobytes(), trace.pc_threads.tobytes(),
                           trace.pattern_offset.tobytes()))  # fmt: skip
        assert len(set(traces)) > 1, name
