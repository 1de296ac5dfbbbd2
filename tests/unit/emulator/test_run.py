"""What can go wrong in a run, and what a run leaves: faults with their place, budgets, order of blocks, warnings."""

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, file_case, integer, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run import collect
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace import pattern_store
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Argument, Buffer, Launch

HEAD = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .f32 %f<9>;\n"
ADDRESS = HEAD + "ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\n"


def kernel(body, *, block=(64,), grid=(2,), count=64, before="", **options):
    """A kernel with one parameter p, a buffer of `count` words called a."""
    text = f"{before}\n.visible .entry k(.param .u64 p)\n{{\n{ADDRESS}{body}\nret;\n}}"
    return text_case(text, grid, block, [pointer("a")], [Buffer("a", "u32", count, "iota")], **options)


FAULTS = [
    ("ld.global.u32 %r2, [%d3+16];", {}, [
        "'ld.global.u32' reads out of bounds, block (0, 0, 0), thread (60, 0, 0)",
        "0 bytes after the end of 'a' (u32, 256 bytes",
        "test.ptx:12:1: ",
    ]),
    ("st.global.u32 [%d1+-8], %r1;", {}, ["writes out of bounds", "thread (0, 0, 0)", "8 bytes before 'a'"]),
    ("atom.global.add.u32 %r2, [%d3+128], 1;", {}, ["accesses out of bounds", "thread (32, 0, 0)"]),
    ("red.global.add.u32 [%d1+2], 1;", {},
     ["'red.global.add.u32' is misaligned", "address 0x700000000202 is byte 2 of 'a'"]),
    ("ld.global.u64 %d4, [%d1+4];", {}, ["is misaligned", "thread (0, 0, 0)"]),
    ("ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%d3];", {}, ["is misaligned", "thread (1, 0, 0)"]),
    ("shl.b32 %r2, %r1, 2; st.shared.u32 [%r2], %r1;", {"before": ".shared .align 4 .b8 s[128];"},
     ["address 0x0 of shared memory, which has 0 bytes"]),  # nobody names s
    ("mov.u64 %d4, 0; ld.u32 %r2, [%d4+8];", {},
     ["thread (0, 0, 0): address 0x8 is in no memory: a null pointer plus 8 bytes"]),
    ("mov.u32 %r3, s; mad.lo.u32 %r2, %r1, 4, %r3; st.shared.u32 [%r2], %r1;",
     {"before": ".shared .align 4 .b8 s[128];"},
     ["thread (32, 0, 0): address 0x80 of shared memory, which has 128 bytes"]),
    ("mov.u32 %r3, s; atom.shared.add.u32 %r2, [%r3+122], 1;", {"before": ".shared .align 4 .b8 s[128];"},
     ["is misaligned, block (0, 0, 0), thread (0, 0, 0): address 0x7a"]),
    ("mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 16, %r3; atom.shared.add.u32 %r2, [%r3], 1;",
     {"before": ".shared .align 4 .b8 s[128];"},
     ["accesses out of bounds", "thread (8, 0, 0): address 0x80 of shared memory, which has 128 bytes"]),
    ("mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 7, %r3; red.shared.add.u32 [%r3], 1;",
     {"before": ".shared .align 4 .b8 s[512];"},
     ["is misaligned", "thread (1, 0, 0): address 0x7"]),
    ("atom.shared.add.u32 %r2, [4], 1;", {}, ["accesses out of bounds", "thread (0, 0, 0): address 0x4"]),
    ("mul.wide.u32 %d4, %r1, 16; add.s64 %d4, %d1, %d4; red.global.add.u32 [%d4], 1;", {},
     ["accesses out of bounds", "thread (16, 0, 0)", "0 bytes after the end of 'a'"]),
    ("mov.u64 %d4, s; cvta.shared.u64 %d5, %d4; ld.u32 %r2, [%d5+128];", {"before": ".shared .align 4 .b8 s[128];"},
     ["'ld.u32' reads out of bounds", "address 0x80 of shared memory"]),
    (".local .align 4 .b8 l[16]; mov.u64 %d4, l; st.local.u32 [%d4+16], %r1;", {},
     ["address 0x10 of local memory, which has 16 bytes a thread"]),
    ("setp.gt.u32 %p1, %r1, 40; @%p1 trap;", {}, ["'trap' was reached, block (0, 0, 0), thread (41, 0, 0)"]),
    ("setp.gt.u32 %p1, %r1, 40; @%p1 tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r1, %r1, %r1, %r1}];",
     {"before": ".global .texref t;"},
     ["is not executed yet: multi-sample textures, block (0, 0, 0), thread (41, 0, 0)", "hint: "]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "options", "texts"), FAULTS, ids=[fault[0][:40] for fault in FAULTS])
@pytest.mark.parametrize("trace", [True, False])
def test_fault_names_its_place(body, options, texts, trace):
    with pytest.raises(PptError) as info:
        kernel(body, **options).run(trace=trace)
    for text in texts:
        assert text in str(info.value)
    assert str(info.value).startswith("test.ptx:")


def test_block_and_thread_of_a_fault_are_three_dimensional():
    body = "mov.u32 %r2, %ctaid.y; setp.eq.u32 %p1, %r2, 1; @%p1 st.global.u32 [%d1+-4], %r1;"
    with pytest.raises(PptError, match=r"block \(0, 1, 0\), thread \(0, 0, 0\)"):
        kernel(body, grid=(3, 2), block=(4, 2, 3)).run()


def test_a_fault_of_a_lane_whose_guard_is_false_does_not_count():
    memory, _ = check_against_interpreter(kernel("setp.lt.u32 %p1, %r1, 60; @%p1 ld.global.u32 %r2, [%d3+16];"))
    assert memory.view("a", "u4").tolist() == list(range(64))


def test_unsupported_instruction_is_no_error_until_reached():
    body = "setp.gt.u32 %p1, %r1, 99; @%p1 bra L; st.global.u32 [%d3], 7; ret;\n"
    body += "L: tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r1}];"
    memory, _ = kernel(body, before=".global .texref t;").run()
    assert set(memory.view("a", "u4").tolist()) == {7}


def test_lanes_of_one_access_in_different_buffers():
    text = (
        ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n" + ADDRESS
        + "ld.param.u64 %d4, [q]; setp.lt.u32 %p1, %r1, 7; selp.b64 %d5, %d1, %d4, %p1; add.s64 %d5, %d5, %d2;\n"
        "ld.global.u32 %r2, [%d5]; add.u32 %r2, %r2, 1; st.global.u32 [%d5], %r2; ret;\n}"
    )  # fmt: skip
    buffers = [Buffer("a", "u32", 32), Buffer("gap", "u32", 999), Buffer("b", "u32", 32, "const:5")]
    memory, _ = check_against_interpreter(text_case(text, (1,), (32,), [pointer("a"), pointer("b")], buffers))
    assert memory.view("a", "u4").tolist() == [1] * 7 + [0] * 25
    assert memory.view("b", "u4").tolist() == [5] * 7 + [6] * 25


def test_lanes_of_one_atomic_in_different_buffers():
    text = (
        ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n" + ADDRESS
        + "ld.param.u64 %d4, [q]; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %d5, %d1, %d4, %p1;\n"
        "atom.global.add.u32 %r3, [%d5], %r1; add.s64 %d5, %d1, %d2; st.global.u32 [%d5+4], %r3; ret;\n}"
    )  # fmt: skip
    buffers = [Buffer("a", "u32", 33), Buffer("gap", "u32", 999), Buffer("b", "u32", 1, "const:5")]
    memory, _ = check_against_interpreter(text_case(text, (1,), (32,), [pointer("a"), pointer("b")], buffers))
    before = [[k * (k - 1), 5 + k * k] for k in range(16)]  # sums of the even, and of the odd numbers below
    assert memory.view("a", "u4").tolist() == [240, *(value for pair in before for value in pair)]
    assert memory.view("b", "u4").tolist() == [5 + 256]


def test_stores_to_one_address_the_highest_lane_wins():
    memory, _ = check_against_interpreter(kernel("st.global.u32 [%d1], %r1;", grid=(1,), block=(20,)))
    assert memory.view("a", "u4")[0] == 19


def test_chosen_blocks_run_in_the_order_asked_for():
    body = "mov.u32 %r2, %ctaid.x; atom.global.exch.b32 %r3, [%d1], %r2; st.global.u32 [%d1+4], %r3;"
    case = kernel(body, grid=(9,), block=(1,))
    memory, trace = case.run(blocks=[7, 2, 5])
    assert memory.view("a", "u4")[:2].tolist() == [5, 2]
    assert trace.blocks.tolist() == [7, 2, 5] and trace.warp_block.tolist() == [0, 1, 2]
    with pytest.raises(PptError, match="block 9 is outside of the grid of kernel 'k', which has 9 blocks"):
        case.run(blocks=[9])
    memory, trace = case.run(blocks=[])
    assert trace.warps == 0 and trace.thread_instructions == 0


def test_a_block_that_waits_for_another():
    case = file_case("mixed.ptx", "wait_for_block", (2,), (32,), [pointer("flag")], [Buffer("flag", "s32", 1)])
    for order in ([0, 1], [1, 0]):
        case.run(blocks=order, budget=Budget(instructions=100_000))
    with pytest.raises(PptError, match=r"block \(0, 0, 0\) of kernel '.*' waits for ever") as caught:
        case.run(blocks=[0])
    text = (case.module.lines[caught.value.line - 1]) if caught.value.line else ""
    assert "ld." in text or "atom" in text or "bra" in text


def test_trace_budget():
    case = kernel("mov.u32 %r4, 0;\nL: add.u32 %r4, %r4, 1; ld.global.u32 %r2, [%d3]; "
                  "setp.lt.u32 %p1, %r4, 60000; @%p1 bra L;", grid=(1,), block=(32,))  # fmt: skip
    with pytest.raises(BudgetError, match="the trace budget is 100 KiB"):
        case.run(budget=Budget(trace=100 << 10))
    case.run(budget=Budget(trace=100 << 10), trace=False)


def test_a_barrier_that_not_every_warp_reaches():
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0, 64;\nL: add.u32 %r2, %r1, 1;"
    with pytest.raises(PptError, match=r"waits for ever: warp 1 stands at barrier 0, which not all"):
        kernel(body).run()


@pytest.mark.parametrize("body", ["bar.sync 16;", "mov.u32 %r2, 77; bar.sync %r2, 64;", "bar.arrive -1, 64;"])
def test_a_block_has_16_barriers(body):
    with pytest.raises(PptError, match="names a barrier that there is not") as caught:
        kernel(body).run()
    assert caught.value.line is not None
    with pytest.raises(PptError, match="there is no barrier"):
        kernel(body).run(engine=interpret)
    check_against_interpreter(kernel("mov.u32 %r2, 15; bar.sync %r2, 64; bar.sync 15;"))


def test_a_barrier_in_divergent_code_is_a_warning():
    body = "setp.lt.u32 %p1, %r1, 5; @%p1 bra L; bar.sync 0;\nL: st.global.u32 [%d3], 1;"
    _, trace = kernel(body, block=(32,)).run()
    assert any("test.ptx:" in text and "a barrier in divergent code" in text for text in trace.warnings)
    _, trace = kernel("bar.sync 0;").run()
    assert not trace.warnings


def test_a_sync_instruction_without_all_its_lanes_is_a_warning():
    body = "setp.lt.u32 %p1, %r1, 5; @%p1 bra L; shfl.sync.idx.b32 %r2, %r1, 9, 31, -1;\nL: st.global.u32 [%d3], 1;"
    _, trace = kernel(body, block=(32,)).run()
    assert any(".sync instruction named lanes" in text for text in trace.warnings)


def test_named_barriers_with_arrive_and_reduction():
    body = """
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra consumer;
    mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; add.u32 %r5, %r1, 100; st.shared.u32 [%r4], %r5;
    bar.arrive 1, 64;
    bra both;
consumer:
    bar.sync 1, 64;
    sub.u32 %r6, %r1, 32; mov.u32 %r3, s; shl.b32 %r4, %r6, 2; add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%d3], %r5;
both:
    setp.lt.u32 %p2, %r1, 40;
    bar.red.popc.u32 %r7, 0, %p2;
    bar.red.and.pred %p3, 0, %p2;
    bar.red.or.pred %p4, 0, %p2;
    selp.u32 %r8, 1000, 0, %p3; selp.u32 %r9, 100, 0, %p4; add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r9;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 st.global.u32 [%d3], %r7;"""
    memory, _ = check_against_interpreter(kernel(body, grid=(1,), before=".shared .align 4 .b8 s[128];"))
    assert memory.view("a", "u4").tolist() == [140] * 32 + list(range(100, 132))


def test_switch_by_index():
    body = """
    and.b32 %r2, %r1, 3;
    brx.idx %r2, ts;
L0: mov.u32 %r3, 10; bra end;
L1: mov.u32 %r3, 11; bra end;
L2: mov.u32 %r3, 12;
end: st.global.u32 [%d3], %r3;"""
    text = f".visible .entry k(.param .u64 p)\n{{\n{ADDRESS}ts: .branchtargets L0, L1, L2, L1;\n{body}\nret;\n}}"
    case = text_case(text, (1,), (64,), [pointer("a")], [Buffer("a", "u32", 64)])
    memory, _ = check_against_interpreter(case)
    assert memory.view("a", "u4").tolist() == [10, 11, 12, 11] * 16
    with pytest.raises(PptError, match=r"'brx\.idx' has an index outside of its list"):
        text_case(text.replace("and.b32 %r2, %r1, 3", "and.b32 %r2, %r1, 7"), (1,), (64,), [pointer("a")],
                  [Buffer("a", "u32", 64)]).run()  # fmt: skip


def test_clock_counts_the_warps_instructions():
    body = "mov.u64 %d4, %clock64; add.u32 %r2, %r1, 1; mov.u64 %d5, %clock64; sub.s64 %d6, %d5, %d4;\n"
    body += "cvt.u32.u64 %r3, %d6; st.global.u32 [%d3], %r3;"
    memory, _ = check_against_interpreter(kernel(body, grid=(1,)))
    assert set(memory.view("a", "u4").tolist()) == {2}


def test_no_trace_leaves_memory_only():
    _, trace = kernel("st.global.u32 [%d3], 3;").run(trace=False)
    assert trace.thread_instructions == 0 and not len(trace.access_base)
    assert trace.pc_executed.sum() == 0


def test_arguments_are_checked():
    case = kernel("ret;")
    launch = case.launch
    for arguments in ((), (pointer("a"), integer(1)), (Argument("f32", 1.0),), (pointer("b"),)):
        wrong = type(launch)(launch.kernel, launch.grid, launch.block, arguments)
        with pytest.raises(PptError):
            run(case.kernel, case.module, wrong, case.memory(), [0])


def test_many_buffers_and_long_runs_across_buffer_ends(monkeypatch):
    """More accesses, patterns and paths than the raw buffers hold, blocks cut in two by full buffers."""
    body = """
    mov.u32 %r4, 0; mov.u32 %r9, %ctaid.x;
L:  mul.lo.u32 %r5, %r4, %r1; add.u32 %r5, %r5, %r9; and.b32 %r5, %r5, 63; mul.wide.u32 %d4, %r5, 4;
    add.s64 %d5, %d1, %d4; ld.global.u32 %r6, [%d5]; xor.b32 %r7, %r6, %r4; and.b32 %r8, %r7, 1;
    setp.eq.u32 %p2, %r8, 0; @%p2 bra M; ld.global.u32 %r6, [%d3];
M:  bar.sync 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 97; @%p1 bra L;"""
    case = kernel(body, grid=(40,), block=(64,))
    _, whole = check_against_interpreter(case, blocks=range(3))
    for module, name, size in (
        (collect, "RECORDS", 300), (collect, "PATHS", 500), (collect, "WAIT_PATTERNS", 8),
        (pattern_store, "SLACK", 8), (pattern_store, "LINES", 16), (pattern_store, "MANY", 16),
        (collect, "MANY_ACCESSES", 80),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, size)
    _, cut = case.run(blocks=range(3))
    _, plain = case.run(blocks=range(3), engine=interpret)
    assert len(cut.pattern_mask) > 64  # the store had to grow
    for field in ("path_pc", "path_start", "warp_path", "warp_threads", "access_start", "access_base", "access_pattern",
                  "pattern_offset", "pattern_mask", "pc_executed", "pc_threads"):  # fmt: skip
        assert np.array_equal(getattr(whole, field), getattr(cut, field)), field
    assert np.array_equal(cut.access_base, plain.access_base)


def test_local_memory_beyond_the_budget_is_refused_before_it_is_taken():
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .local .align 8 .b8 big[4294967296]; .reg .b64 %d<2>; mov.u64 %d1, big; ret; }
"""
    module = parse_module(text, "big.ptx")
    memory = DeviceMemory.build(module, [])
    with pytest.raises(BudgetError, match=r"4 GiB of local memory a thread(.|\n)*--max-memory"):
        run(module.kernels["k"], module, Launch("k", (1, 1, 1), (32, 1, 1), ()), memory, [0])


def test_a_barrier_with_an_operand_of_no_use_is_an_error_with_its_place():
    case = text_case(".visible .entry k() { .reg .b32 %r<2>;\n bar.sync [%r1]; ret; }", (1,), (32,), [], [])
    with pytest.raises(PptError, match=r"test.ptx:5:2: 'bar.sync' is not executed yet"):
        case.run()
