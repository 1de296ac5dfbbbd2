"""Runs that compute only what decides the trace: what they leave out, and what they still say."""

import numpy as np
import pytest
from equal_fields import assert_equal
from jit_kernels import Case, integer, pointer, text_case
from small_samples import SMALL, small_workload

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.data_dependence import decided_by
from ppt_gpu.emulator.jit.compiler.compile import compile_kernel
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.workload.workload import Buffer

HEAD = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
  .reg .pred %p<3>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .f32 %f<9>; .reg .b64 %d<6>; .shared .align 16 .b8 s[512];
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r5, s;
  shl.b32 %r6, %r2, 2; add.u32 %r5, %r5, %r6; cvt.u64.u32 %d3, %r6; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
"""
MMA = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r7, %r8}, {%r9}, {%r10}, {%r7, %r8};"


def case(body, threads=64, grid=2):
    buffers = [Buffer("a", "u32", 64), Buffer("b", "u32", 64)]
    text = f"{HEAD}{body}\n$END: ret;\n}}\n"
    return text_case(text, (grid,), (threads,), [pointer("a"), pointer("b"), integer(20)], buffers)


def outcomes(one):
    """(memory, trace or message) of a run with results and one without."""
    found = []
    for results in (True, False):
        memory = one.memory()
        try:
            trace = run(one.kernel, one.module, one.launch, memory, range(one.launch.blocks), results=results)
        except PptError as error:
            trace = str(error)
        found.append((memory, trace))
    return found


def assert_same(one):
    assert decided_by(link(one.kernel, one.module)) is not None
    (_, expected), (_, found) = outcomes(one)
    if isinstance(expected, str):
        assert found == expected
        return expected
    assert_equal(found, expected)
    return expected


#: what is warned of, or stopped for: (body, a part of the text)
SAID = {
    "unwritten": ("ld.shared.u32 %r3, [%r5]; st.global.u32 [%d5], %r3;", "ever wrote"),
    "race": ("st.shared.u32 [s], %r2; ld.shared.u32 %r3, [s+4]; st.global.u32 [%d5], %r3;", "a race on shared memory"),
    "race of values": ("ld.global.u32 %r3, [%d4]; st.shared.u32 [s], %r3;", "a race on shared memory"),
    "early": (
        "cp.async.ca.shared.global [%r5], [%d4], 4; ld.shared.u32 %r3, [%r5]; st.global.u32 [%d5], %r3;"
        "cp.async.wait_all;",
        "writes asynchronously",
    ),
    "part of a warp": (
        "setp.lt.u32 %p1, %r2, 40; @%p1 shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; st.global.u32 [%d5], %r3;",
        "named lanes that were not executing",
    ),
    "outside": ("ld.global.u32 %r3, [%d4+4096]; st.global.u32 [%d5], %r3;", "out of bounds"),
    "stored outside": ("ld.global.u32 %r3, [%d4]; st.global.u32 [%d5+4096], %r3;", "out of bounds"),
    "outside of shared": ("ld.global.u32 %r3, [%d4]; st.shared.u32 [%r5+4096], %r3;", "out of bounds"),
    "misaligned": ("ld.global.u32 %r3, [%d4+2]; st.global.u32 [%d5], %r3;", "aligned"),
    "copied from outside": ("cp.async.ca.shared.global [%r5], [%d4+4096], 4; cp.async.wait_all;", "out of bounds"),
    "copied to outside": ("cp.async.ca.shared.global [%r5+4096], [%d4], 4; cp.async.wait_all;", "out of bounds"),
    "matrix outside": ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [s+4096];", "out of bounds"),
    "part of a product": (f"setp.lt.u32 %p1, %r2, 40; @%p1 {MMA} st.global.u32 [%d5], %r7;", "32 lanes"),
}  # fmt: skip


@pytest.mark.parametrize("body, said", SAID.values(), ids=SAID)
def test_what_is_said_is_said(body, said):
    found = assert_same(case(body))
    assert said in (found if isinstance(found, str) else " ".join(found.warnings))


def test_an_instruction_that_is_not_executed_stops_who_reaches_it():
    """Also where its result is used by nobody."""
    found = assert_same(case("cvt.rs.f16x2.f32 %r3, %f1, %f2, %r2; st.global.u32 [%d5], %r3;"))
    assert "not executed yet" in found


def test_what_nobody_needs_is_left_out():
    """Products, their operands and what is stored; addresses and what decides a branch are there."""
    body = (
        f"ld.global.u32 %r9, [%d4]; mov.b32 %r10, %r9; cvt.rn.f32.s32 %f1, %r9; sqrt.rn.f32 %f1, %f1; {MMA}"
        "add.u32 %r11, %r2, 1; setp.gt.u32 %p1, %r11, 9; @%p1 st.global.u32 [%d5], %r7; st.shared.f32 [%r5], %f1;"
    )
    one = case(body)
    kernel = link(one.kernel, one.module)
    whole, alone = compile_kernel(kernel, True), compile_kernel(kernel, True, decided_by(kernel))
    assert "llvm.sqrt" in whole.ir and "llvm.sqrt" not in alone.ir and len(alone.ir) < len(whole.ir)
    one.fill = {"a": np.arange(1, 65, dtype=np.uint32)}
    (memory, _), (left, _) = outcomes(one)
    assert memory.view("b", np.uint32).any() and not left.view("b", np.uint32).any()
    assert_same(one)


def test_shared_memory_that_decides_is_kept():
    body = (
        "and.b32 %r3, %r2, 12; st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r4, [%r5];"
        "cvt.u64.u32 %d3, %r4; add.u64 %d4, %d1, %d3; ld.global.u32 %r7, [%d4]; st.global.u32 [%d5], %r7;"
    )
    assert decided_by(case(body).kernel).scratch
    assert_same(case(body))


@pytest.mark.parametrize("name", SMALL)
def test_samples(name):
    workload, module = small_workload(name)
    for launch in workload.launches:
        one = Case.__new__(Case)
        one.module, one.kernel, one.launch = module, module.kernels[launch.kernel], launch
        one.buffers, one.symbols, one.fill = workload.buffers, workload.symbols, {}
        if decided_by(link(one.kernel, module)) is not None:
            assert_same(one)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("mode", range(4))
def test_matrices_of_warpgroups_end_where_they_end(mode, turned):
    """The highest start at which the matrices lie in shared memory is the same with and without results."""
    leading, stride = (64, 16) if turned else (8, 64)
    ended = set()
    for start in (0, 40, 56, 60, 63, 64, 300, 376, 380, 440, 500):
        low = start | leading << 16
        high = stride | mode << 30
        text = (
            ".version 8.0\n.target sm_90a\n.address_size 64\n"
            ".visible .entry k()\n{ .reg .b32 %r<9>; .reg .b64 %d<3>; .shared .align 1024 .b8 s[8192];\n"
            f"mov.b64 %d1, {high << 32 | low}; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;\n"
            "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4},"
            f" %d1, %d1, 0, 1, 1, {turned}, {turned};"
            " wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; ret; }\n"
        )
        ended.add(type(assert_same(Case(parse_module(text, "test.ptx"), "k", (1,), (128,), [], []))))
    assert len(ended) == 2  # traces and messages
