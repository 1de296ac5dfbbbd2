"""Which kernels memory can steer: decided from the text, and held against what runs on different data show."""

import numpy as np
import pytest
from equal_fields import assert_equal
from jit_kernels import integer, pointer, text_case

from ppt_gpu.emulator.analysis.data_dependence import steered_by_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Buffer

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
    # instructions that copy, wait and multiply behind a thread's back
    "copied behind": (
        "mov.u32 %r5, s; cp.async.ca.shared.global [%r5], [%d1], 4; cp.async.wait_all; bar.sync 0;"
        "ld.shared.u32 %r4, [%r5]; OUT %r4;",
        False,
    ),
    "address copied behind": (
        "mov.u32 %r5, s; cp.async.ca.shared.global [%r5], [%d1], 4; cp.async.wait_all; bar.sync 0;"
        "ld.shared.u32 %r4, [%r5]; and.b32 %r4, %r4, 12; cvt.u64.u32 %d3, %r4; add.u64 %d4, %d1, %d3;"
        "ld.global.u32 %r6, [%d4]; OUT %r6;",
        True,
    ),
    "copied bytes from data": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 4;"
        "cp.async.ca.shared.global [%r5], [%d1], 4, %r3; cp.async.wait_all; OUT %r2;",
        True,
    ),
    "phases of a barrier": (
        "mov.u32 %r5, s; setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [%r5], 32; bar.sync 0;"
        "mbarrier.arrive.shared.b64 %d3, [%r5];\n$L: mbarrier.test_wait.shared.b64 %p1, [%r5], %d3; @!%p1 bra $L;"
        "OUT %r2;",
        False,
    ),
    "parities of a barrier beside data": (
        "mov.u32 %r5, s; setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [%r5], 32; bar.sync 0;"
        "ld.global.u32 %r3, [%d1]; st.shared.u32 [%r5+32], %r3; mbarrier.arrive.shared.b64 _, [%r5];\n"
        "$L: mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0; @!%p1 bra $L; ld.shared.u32 %r4, [%r5+32]; OUT %r4;",
        False,
    ),
    "a barrier made by a store": (
        "mov.u32 %r5, s; mul.wide.u32 %d3, %r1, 0; st.shared.u64 [%r5], %d3; bar.sync 0;"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r5], 1; @%p1 bra $END; OUT %r2;",
        False,
    ),
    "a barrier made of data": (
        "mov.u32 %r5, s; ld.global.u64 %d3, [%d1]; st.shared.u64 [%r5], %d3; bar.sync 0;"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r5], 1; @%p1 bra $END; OUT %r2;",
        True,
    ),
    "a barrier made of data beside one set up": (
        "mov.u32 %r5, s; ld.global.u64 %d3, [%d1]; st.shared.u64 [%r5], %d3; mbarrier.init.shared.b64 [%r5+8], 1;"
        "bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p1, [%r5], 1; @%p1 bra $END; OUT %r2;",
        True,
    ),
    "arrivals from data": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 1; add.u32 %r3, %r3, 1;"
        "setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [%r5], %r3; OUT %r2;",
        True,
    ),
    "bulk copy": (
        "mov.u32 %r5, s; setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [%r5], 1; bar.sync 0; @!%p1 bra $W;"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 32; add.u32 %r6, %r5, 32;"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d1], 32, [%r5];\n"
        "$W: mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0; @!%p1 bra $W; ld.shared.u32 %r4, [%r5+32]; OUT %r4;",
        False,
    ),
    "bytes of a bulk copy from data": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 16; setp.eq.u32 %p1, %r2, 0; @%p1"
        " cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], %r3; OUT %r2;",
        True,
    ),
    "elected": ("elect.sync %r3|%p1, -1; @%p1 OUT %r2;", False),
    "elected from data": ("ld.global.u32 %r4, [%d1]; or.b32 %r4, %r4, 1; elect.sync %r3|%p1, %r4; OUT %r2;", True),
    "matrix fragment": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; st.shared.u32 [%r5], %r3; bar.sync 0;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r5]; OUT %r4;",
        False,
    ),
    "address from a matrix fragment": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; st.shared.u32 [%r5], %r3; bar.sync 0;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r5]; and.b32 %r4, %r4, 12; cvt.u64.u32 %d3, %r4;"
        "add.u64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4]; OUT %r6;",
        True,
    ),
    "rows stored through a matrix": (
        "mov.u32 %r5, s; ld.global.u32 %r3, [%d1]; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3}; bar.sync 0;"
        "ld.shared.u32 %r4, [%r5]; OUT %r4;",
        False,
    ),
    "branch on a product": (
        "ld.global.u32 %r3, [%d1]; mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4, %r6}, {%r3}, {%r3}, {%r4, %r6};"
        "setp.eq.u32 %p1, %r4, 3; @%p1 bra $END; OUT %r2;",
        True,
    ),
    "launch after launch": ("griddepcontrol.wait; griddepcontrol.launch_dependents; OUT %r2;", False),
    "place in the cluster": (
        "mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r3, 1; @%p1 bra $END; barrier.cluster.arrive;"
        "barrier.cluster.wait; OUT %r2;",
        False,
    ),
    "shared memory of another block": (
        "mov.u32 %r5, s; mapa.shared::cluster.u32 %r6, %r5, 0; st.shared.u32 [%r5], %r2; barrier.cluster.arrive;"
        "barrier.cluster.wait; ld.shared::cluster.u32 %r4, [%r6]; setp.eq.u32 %p1, %r4, 3; @%p1 bra $END; OUT %r2;",
        False,
    ),
}  # fmt: skip
HEAD = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>; .shared .align 16 .b8 s[128];
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


PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r3, %r4, %r6, %r7},"
#: operands of instructions that this file does not run: (its text, is it steered by a register from memory?)
OPERANDS = {
    "descriptor": (f"{PRODUCT} %d3, %d4, 1, 1, 1, 0, 0;", True),
    "another descriptor": (f"{PRODUCT} %d4, %d3, 1, 1, 1, 0, 0;", True),
    "fragments": (f"{PRODUCT} {{%r5, %r5, %r5, %r5}}, %d4, 1, 1, 1, 0;", False),
    "from line to line": ("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%d2], {%r3, %r4, %r6, %r7}, %r5;", True),
    "what is stored": ("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%d2], {%r5, %r4, %r6, %r7}, %r1;", False),
    "coordinates": (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [map, {%r5, %r1}], [%r1];", True
    ),
    "a map in the parameters": (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [map, {%r2, %r1}], [%r1];", False
    ),
    "its address": (
        "mov.b64 %d4, map; cvta.param.u64 %d4, %d4;"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {%r2, %r1}], [%r1];",
        False,
    ),
    "a map in memory": (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {%r2, %r1}], [%r1];", True
    ),
    "registers moved": ("setmaxnreg.inc.sync.aligned.u32 232;", False),
    "a map made of data": ("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %d3;", True),
}  # fmt: skip


@pytest.mark.parametrize("text, steered", OPERANDS.values(), ids=OPERANDS)
def test_operands(text, steered):
    """%r5 and %d3 come from global memory."""
    module = parse_module(
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n, .param .align 64 .b8 map[128])\n{\n"
        ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>;\n"
        "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u64 %d4, 0;\n"
        f"ld.global.u32 %r5, [%d1]; ld.global.u64 %d3, [%d1];\n{text}\nret;\n}}\n",
        "test.ptx",
    )
    assert steered_by_memory(module.kernels["k"]) is steered


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
        assert_equal(found, expected)


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
