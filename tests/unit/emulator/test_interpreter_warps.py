"""The interpreter's warps: divergence, barriers, collectives, memory spaces, atomics, traces and errors."""

import numpy as np
import pytest
from ptx_lanes import lanes
from reference.interpreter import runner as interp_runner
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import BudgetError, InputErrors, PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Argument, Buffer, Launch

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .f32 %f<5>; .reg .b64 %rd<20>;"


def run(body, *, count=64, block=(32, 1, 1), grid=(1, 1, 1), kind="u32", head="", budget=None, blocks=None):
    """A kernel with one buffer, whose address is in %rd1 and in %rd2 that of the thread's 32-bit element."""
    text = (
        f"{HEAD}{head}\n.visible .entry k(.param .u64 out)\n{{\n{REGISTERS}\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1;\n"
        f"{body}\nret;\n}}"
    )
    module = parse_module(text, "test.ptx")
    memory = DeviceMemory.build(module, [Buffer("out", kind, count)])
    launch = Launch("k", grid, block, (Argument("u64", buffer="out"),))
    ids = range(launch.blocks) if blocks is None else blocks
    trace = interpret(module.kernels["k"], module, launch, memory, ids, budget=budget)
    return memory.view("out", {"u32": "u4", "f32": "f4"}[kind]), trace, module


def test_divergent_sides_run_in_text_order():
    out, trace, _ = run(
        "setp.lt.u32 %p1, %r1, 8; @%p1 bra low; mov.u32 %r2, 1; bra.uni join; low: mov.u32 %r2, 2; join:"
        "st.global.u32 [%rd2], %r2;"
    )
    assert (out[:32] == np.where(np.arange(32) < 8, 2, 1)).all()
    base = 4  # after the four instructions of the head
    assert trace.path_pc.tolist() == list(range(base + 7))  # each side once, the join once
    assert trace.pc_threads[base + 2 : base + 6].tolist() == [24, 24, 8, 32]
    assert trace.warp_threads.tolist() == [32 * 5 + 8 + 24 * 2 + 8 + 32 * 2]


def test_the_earlier_target_runs_first_whichever_side_is_taken():
    body = (
        "setp.lt.u32 %p1, %r1, 8; bra.uni test; early: mov.u32 %r2, 1; bra.uni join; test: @%p1 bra early;"
        "mov.u32 %r2, 2; join: st.global.u32 [%rd2], %r2;"
    )
    _, trace, _ = run(body)
    assert trace.path_pc.tolist() == [0, 1, 2, 3, 4, 5, 8, 6, 7, 9, 10, 11]


def test_loop_with_different_trip_counts():
    out, trace, _ = run(
        "mov.u32 %r2, 0; loop: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra loop;st.global.u32 [%rd2], %r2;"
    )
    assert (out[:32] == np.maximum(np.arange(32), 1)).all()
    assert trace.pc_executed[5] == 31
    assert trace.pc_threads[5] == sum(max(i, 1) for i in range(32))


def test_predicated_exit_and_partial_warp():
    out, trace, _ = run("setp.gt.u32 %p1, %r1, 35; @%p1 ret; st.global.u32 [%rd2], 7;", block=(40, 1, 1))
    assert (out == np.where(np.arange(64) < 36, 7, 0)).all()
    assert trace.pattern_mask[trace.access_pattern].tolist() == [0xFFFFFFFF, 0xF]
    assert trace.warp_path.tolist() == [0, 0]


def test_call_of_brx():
    out, _, _ = run(
        "and.b32 %r3, %r1, 1; t: .branchtargets a, b; brx.idx %r3, t; a: mov.u32 %r2, 10; bra.uni j;"
        "b: mov.u32 %r2, 20; j: st.global.u32 [%rd2], %r2;"
    )
    assert out[:4].tolist() == [10, 20, 10, 20]


def test_barrier_orders_the_warps():
    out, trace, _ = run(
        "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.sync 0;"
        "xor.b32 %r4, %r1, 63; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4];"
        "st.global.u32 [%rd2], %r5;",
        head=".shared .align 4 .b8 s[256];",
        block=(64, 1, 1),
    )
    assert (out == 63 - np.arange(64)).all()
    assert trace.access_space.tolist() == [1, 1, 0] * 2
    assert trace.access_base.tolist()[:2] == [0, 252]  # offsets of lane 0


def test_barrier_reduction():
    out, _, _ = run(
        "setp.lt.u32 %p1, %r1, 5; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1;"
        "bar.red.or.pred %p3, 0, %p1; selp.u32 %r3, 100, 0, %p2; selp.u32 %r4, 1000, 0, %p3;"
        "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%rd2], %r2;",
        block=(64, 1, 1),
    )
    assert (out == 1005).all()


def test_barrier_that_never_opens():
    with pytest.raises(PptError, match="barrier 1 never opens: 1 of 2 warps arrived") as caught:
        run("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64;", block=(64, 1, 1))
    assert caught.value.line is not None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("shfl.sync.up.b32 %r2|%p1, %r1, 1, 0, 0xffffffff;", [max(i - 1, 0) for i in range(32)]),
        ("shfl.sync.down.b32 %r2, %r1, 2, 31, 0xffffffff;", [i + 2 if i < 30 else i for i in range(32)]),
        ("shfl.sync.bfly.b32 %r2, %r1, 5, 31, 0xffffffff;", [i ^ 5 for i in range(32)]),
        ("shfl.sync.idx.b32 %r2, %r1, 3, 0x181f, 0xffffffff;", [i & 24 | 3 for i in range(32)]),
        ("shfl.sync.down.b32 %r2|%p1, %r1, 1, 0x181f, 0xffffffff; selp.u32 %r2, %r2, 99, %p1;",
         [i + 1 if i % 8 < 7 else 99 for i in range(32)]),
        ("setp.gt.u32 %p1, %r1, 29; vote.sync.ballot.b32 %r2, %p1, 0xffffffff;", [0xC0000000] * 32),
        ("setp.gt.u32 %p1, %r1, 29; vote.sync.any.pred %p2, %p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", [1] * 32),
        ("setp.gt.u32 %p1, %r1, 29; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r2, 1, 0, %p2;", [0] * 32),
        ("shr.u32 %r3, %r1, 4; match.any.sync.b32 %r2, %r3, 0xffffffff;", [0xFFFF] * 16 + [0xFFFF0000] * 16),
        ("redux.sync.add.s32 %r2, %r1, 0xffffffff;", [496] * 32),
        ("setp.lt.u32 %p1, %r1, 4; mov.u32 %r2, 0; @%p1 activemask.b32 %r2;", [15] * 4 + [0] * 28),
        ("mov.u32 %r2, %laneid;", list(range(32))),
        ("mov.u32 %r2, %lanemask_lt;", [(1 << i) - 1 for i in range(32)]),
        ("mov.u32 %r2, %ntid.x;", [32] * 32),
    ],
)  # fmt: skip
def test_collectives(body, expected):
    out, _, _ = run(f"{body} st.global.u32 [%rd2], %r2;")
    assert out[:32].tolist() == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("atom.global.add.u32 %r2, [%rd1], 3;", 96),
        ("red.global.max.s32 [%rd1], %r1;", 31),
        ("atom.global.exch.b32 %r2, [%rd1], %r1;", 31),
        ("atom.global.cas.b32 %r2, [%rd1], %r1, 77;", 77),
        ("atom.global.inc.u32 %r2, [%rd1], 6;", 32 % 7),
        ("atom.global.or.b32 %r2, [%rd1], %r1;", 31),
    ],
)
def test_atomics(body, expected):
    out, trace, _ = run(body)
    assert out[0] == expected
    assert trace.pattern_offset.tolist() == [[0] * 32]


def test_atomic_returns_the_old_value_in_lane_order():
    out, _, _ = run("add.s64 %rd3, %rd1, 128; atom.add.u32 %r2, [%rd3], %r1; st.global.u32 [%rd2], %r2;")
    assert out[:32].tolist() == [i * (i - 1) // 2 for i in range(32)]


def test_float_atomic():
    out, _, _ = run("red.global.add.f32 [%rd1], 0f3F000000;", kind="f32")
    assert out[0] == 16.0


def test_generic_local_and_constant_memory():
    out, trace, _ = run(
        "mov.u64 %rd3, l; cvta.local.u64 %rd4, %rd3; add.s64 %rd4, %rd4, 4; st.u32 [%rd4], %r1;"
        "ld.local.u32 %r2, [l+4]; mov.u64 %rd5, c; cvta.const.u64 %rd5, %rd5; ld.u32 %r3, [%rd5+4];"
        "ld.const.u32 %r4, [c]; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; isspacep.local %p1, %rd4;"
        "@!%p1 mov.u32 %r2, 0; st.global.u32 [%rd2], %r2;",
        head=".const .align 4 .u32 c[2] = {100, 2000};\n.local .align 8 .b8 l[8];",
    )
    assert out[:32].tolist() == [i + 2100 for i in range(32)]
    assert trace.access_space.tolist()[:2] == [2, 2]
    assert trace.pattern_offset[trace.access_pattern[0]].tolist() == [4 * i for i in range(32)]  # interleaved


def test_vectors():
    out, _, _ = run(
        "shl.b32 %r3, %r1, 3; cvt.u64.u32 %rd3, %r3; add.s64 %rd3, %rd3, %rd1; add.u32 %r4, %r1, 100;"
        "st.global.v2.u32 [%rd3], {%r1, %r4}; ld.global.v2.u32 {%r5, %r6}, [%rd3]; st.global.v2.b32 [%rd3], {%r6, %r5};"
    )
    assert out[:4].tolist() == [100, 0, 101, 1]


def test_blocks_and_special_registers():
    out, trace, _ = run(
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r2, %r3, %r4, %r2;"
        "shl.b32 %r5, %r2, 2; cvt.u64.u32 %rd3, %r5; add.s64 %rd3, %rd3, %rd1; add.u32 %r2, %r2, 1;"
        "st.global.u32 [%rd3], %r2;",
        grid=(3, 2, 1),
        blocks=[5, 0],
    )
    assert out[:6].tolist() == [1, 0, 0, 0, 0, 6]
    assert trace.blocks.tolist() == [5, 0]
    assert trace.warp_block.tolist() == [0, 1]


def test_no_blocks_and_unknown_blocks():
    _, trace, _ = run("st.global.u32 [%rd2], %r1;", blocks=[])
    assert (trace.warps, trace.warp_instructions, trace.thread_instructions) == (0, 0, 0)
    with pytest.raises(PptError, match="block 7 is not in the grid"):
        run("", blocks=[7])


def test_guarded_access_without_lanes_is_recorded():
    _, trace, _ = run("setp.gt.u32 %p1, %r1, 99; @%p1 st.global.u32 [%rd2], %r1;")
    assert trace.pattern_mask.tolist() == [0]
    assert trace.access_base.tolist() == [0]
    assert trace.pc_executed[5] == 1
    assert trace.pc_threads[5] == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("st.global.u32 [%rd2+256], %r1;", "4 bytes at"),
        ("st.global.u32 [%rd1+2], %r1;", "is not aligned to the 4 bytes accessed"),
        ("ld.shared.u32 %r2, [0];", "outside the 0 shared bytes"),
        ("trap;", "trapped in block 0"),
        ("setp.lt.u32 %p1, %r1, 3; @%p1 trap;", "trapped in block 0"),
        ("tanh.approx.f32 %f1, %f1; mov.u32 %r1, %envreg3; fma.rn.oob.f16x2 %r1, %r1, %r1, %r1;", "is not documented"),
        ("cvt.rs.f16x2.f32 %r1, %f1, %f1, %r1;", "stochastic rounding"),
    ],
)  # fmt: skip
def test_errors_name_the_line(body, message):
    with pytest.raises(PptError) as caught:
        run(body)
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line) == ("test.ptx", 9)


def test_budget():
    with pytest.raises(BudgetError, match="ran out of its budget"):
        run("loop: bra loop;", budget=Budget(instructions=1000))


def test_patterns_are_numbered_by_first_appearance_in_the_order_of_warps():
    """Not by the order of execution, in which the second warp comes before the first one's barrier opens."""
    _, trace, _ = run(
        "shr.u32 %r2, %r1, 5; shl.b32 %r2, %r2, 2; mad.wide.u32 %rd3, %r1, %r2, %rd1; ld.global.u32 %r3, [%rd3];"
        "bar.sync 0; shr.u32 %r2, %r1, 1; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd3, %rd1;"
        "ld.global.u32 %r3, [%rd3];",
        block=(64, 1, 1),
    )
    assert trace.access_pattern.tolist() == [0, 1, 2, 1]
    assert trace.pattern_offset[:, 31].tolist() == [0, 60, 124]


def test_missing_argument():
    module = parse_module(f"{HEAD}.visible .entry k(.param .u32 n)\n{{ ret; }}", "test.ptx")
    memory = DeviceMemory.build(module)
    with pytest.raises(InputErrors, match="missing: n \\(u32\\)"):
        interpret(module.kernels["k"], module, Launch("k", (1, 1, 1), (1, 1, 1), ()), memory, [0])


def test_spinning_on_another_warp_ends(monkeypatch):
    """A warp that waits for a flag gives the others a turn."""
    monkeypatch.setattr(interp_runner, "TURN", 500)
    out, _, _ = run(
        "setp.lt.u32 %p1, %r1, 32; @!%p1 bra set; wait: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0;"
        "@%p2 bra wait; bra.uni end; set: st.global.u32 [%rd1], 1; end:",
        block=(64, 1, 1),
    )
    assert out[0] == 1


def test_same_run_twice_gives_the_same_values():
    first, second = (lanes("mul.f32 %d, %a, %a;", ["f32"], "f32", [1.5, 2.5]) for _ in range(2))
    assert first.tolist() == second.tolist() == [2.25, 6.25]
