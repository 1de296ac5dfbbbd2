"""Threads that wait for each other in a warp, in a block and across blocks: both engines agree, and nobody hangs."""

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, file_case, integer, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.workload import Buffer

ENGINES = pytest.mark.parametrize("engine", [run, interpret])


def case(kernel, grid, block, arguments, buffers, **options):
    return file_case("waiting.ptx", kernel, (grid,), (block,), arguments, buffers, **options)


def short(trace, most):
    """Waiting leaves little in the trace."""
    return trace.warp_instructions < most


def test_a_lock_that_every_thread_takes():
    found = case("spin_lock", 3, 64, [pointer("sum")], [Buffer("sum", "s32", 1)])
    memory, trace = check_against_interpreter(found)
    assert memory.view("sum", "i4").tolist() == [3 * 64 * 65 // 2]
    assert short(trace, 20_000)


def test_a_lock_with_tickets():
    memory, trace = check_against_interpreter(case("ticket_lock", 2, 64, [pointer("o")], [Buffer("o", "s32", 128)]))
    assert sorted(memory.view("o", "i4")) == list(range(128))
    assert short(trace, 100_000)


def test_one_half_of_a_warp_waits_for_the_other():
    found = case("halves", 1, 32, [pointer("f"), pointer("o")], [Buffer("f", "s32", 1), Buffer("o", "s32", 32)])
    memory, trace = check_against_interpreter(found)
    assert memory.view("o", "i4").tolist() == [7] * 16 + [5] * 16
    assert short(trace, 200)


def test_two_warps_hand_over_in_turn():
    found = case("ping_pong", 1, 64, [pointer("o"), integer(50)], [Buffer("o", "s32", 1)])
    memory, trace = check_against_interpreter(found)
    assert memory.view("o", "i4").tolist() == [150]
    assert short(trace, 10_000)


CHAIN = [Buffer("done", "s32", 20), Buffer("out", "s32", 20 * 64)]


@pytest.mark.parametrize(("backwards", "order"), [(0, range(20)), (1, range(20)), (0, [7, 3, 0, 1, 2, 6, 4, 5])])
def test_blocks_that_wait_for_others(backwards, order):
    found = case("chain", 20, 64, [pointer("done"), pointer("out"), integer(backwards)], CHAIN)
    memory, trace = check_against_interpreter(found, blocks=list(order))
    values = memory.view("out", "i4").reshape(20, 64)
    for block in range(20):
        want = 0 if block not in order else 100 + (19 - block if backwards else block)
        assert (values[block] == want).all()
    assert trace.block_threads is not None
    lone = case("chain", 20, 64, [pointer("done"), pointer("out"), integer(backwards)], CHAIN)
    alone = lone.run(blocks=[19 if backwards else 0])[1]
    position = list(order).index(19 if backwards else 0)
    assert np.array_equal(trace.block_threads[position], alone.block_threads[0])  # counted for the right block


@ENGINES
def test_a_block_whose_partner_does_not_run(engine):
    found = case("chain", 20, 64, [pointer("done"), pointer("out"), integer(0)], CHAIN)
    with pytest.raises(PptError, match=r"block \(5, 0, 0\) of kernel 'chain' waits for ever: .* none of the 4 bl") as e:
        found.run(engine=engine, blocks=[5, 6, 7, 0])
    assert "ld.volatile.global" in "".join(found.module.lines[e.value.line - 1 : e.value.line + 3])


def test_all_blocks_meet():
    n = 200
    a = np.arange(n, dtype="i4")
    buffers = [Buffer("a", "s32", n), Buffer("b", "s32", n)]
    found = case("grid_wide", 4, 64, [pointer("a"), pointer("b"), integer(n)], buffers, fill={"a": a})
    memory, _ = check_against_interpreter(found)
    for _ in range(3):
        a = a + np.roll(a, -1)
    assert np.array_equal(memory.view("a", "i4"), a)


def test_a_barrier_in_each_arm_of_a_branch():
    memory, trace = check_against_interpreter(case("both_arms", 1, 64, [pointer("o")], [Buffer("o", "s32", 64)]))
    t = np.arange(64)
    assert np.array_equal(memory.view("o", "i4"), np.where(t % 2, 10 * (t ^ 1), t ^ 1))
    texts = [w for w in trace.warnings if "a barrier in divergent code" in w]
    assert len(texts) == 2 and all("waiting.ptx:" in w and "'barrier.sync'" in w for w in texts)


def test_a_warp_barrier_in_each_arm_of_a_branch():
    memory, trace = check_against_interpreter(case("warp_arms", 1, 64, [pointer("o")], [Buffer("o", "s32", 64)]))
    t = np.arange(64)
    values = np.select([t % 4 == 1, t % 4 == 0], [t, 100 + t], 1000 * t)
    assert np.array_equal(memory.view("o", "i4"), values[t ^ 1])
    assert trace.warnings == ()


LOCKED_QUEUE = """
.global .u32 head; .global .u32 lock;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<9>; .reg .b64 %d<2>; .reg .pred %p<4>; .shared .u32 s;
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; ld.param.u64 %d1, [out];
NEXT:
    @%p1 bra TAKEN;
    atom.global.add.u32 %r2, [head], 1; st.shared.u32 [s], %r2;
TAKEN:
    bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0;
    setp.lt.u32 %p2, %r2, 5;
    @%p2 bra WORK;
    ret;
WORK:
    @%p1 bra NEXT;
WAIT:
    atom.global.cas.b32 %r3, [lock], 0, 1; setp.ne.u32 %p3, %r3, 0;
    @%p3 bra WAIT;
    ld.global.u32 %r4, [%d1]; add.u32 %r4, %r4, %r2; st.global.u32 [%d1], %r4;
    membar.gl; atom.global.exch.b32 %r3, [lock], 0;
    bra NEXT;
}
"""


def test_a_lock_that_is_free_parts_no_warp():
    found = text_case(LOCKED_QUEUE, (3,), (64,), [pointer("o")], [Buffer("o", "u32", 1)])
    memory, trace = check_against_interpreter(found)
    assert memory.view("o", "u4").tolist() == [10]
    assert trace.warnings == ()


def test_named_barriers():
    memory, _ = check_against_interpreter(case("named", 1, 192, [pointer("o")], [Buffer("o", "s32", 256)]))
    want = [100 * r + t for r in range(4) for t in range(64)]
    assert memory.view("o", "i4").tolist() == want


def test_reductions_at_barriers():
    memory, _ = check_against_interpreter(case("counted", 1, 100, [pointer("o")], [Buffer("o", "s32", 100)]))
    assert memory.view("o", "i4").tolist() == [34 * 100 + 1] * 100


ONE_LANE_WAITS = """.visible .entry k(.param .u64 out) {
    .reg .pred %p, %q; .reg .b32 %r<8>; .reg .b64 %d<3>;
    .shared .align 8 .b64 ready;
    mov.u32 %r0, %tid.x; mov.u32 %r1, ready; setp.eq.u32 %p, %r0, 0;
    @%p mbarrier.init.shared.b64 [%r1], 32;
    bar.sync 0;
    setp.ge.u32 %p, %r0, 32; @%p bra second;
    setp.ne.u32 %p, %r0, 5; @%p bra join;
wait:
    mbarrier.test_wait.parity.shared.b64 %q, [%r1], 0; @!%q bra wait;
join:
    activemask.b32 %r2;
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; ret;
second:
    mov.u32 %r3, 0;
work:
    add.u32 %r3, %r3, 1; setp.lt.u32 %q, %r3, 30000; @%q bra work;
    mbarrier.arrive.shared.b64 _, [%r1]; ret;
}
"""


def test_the_other_lanes_stay_at_the_join_while_one_waits_for_another_warp():
    found = text_case(ONE_LANE_WAITS, (1,), (64,), [pointer("o")], [Buffer("o", "u32", 32)])
    memory, trace = check_against_interpreter(found)
    assert memory.view("o", "u4").tolist() == [0xFFFFFFFF] * 32
    assert trace.warnings == ()


def test_they_go_on_where_nobody_else_can_end_the_waiting():
    """The lanes at the join are those that arrive at the mbarrier."""
    arrives = ONE_LANE_WAITS.replace("join:", "join:\n    @%p mbarrier.arrive.shared.b64 _, [%r1];")
    text = arrives.replace("[%r1], 32;", "[%r1], 31;")
    assert text.count("mbarrier.arrive") == 2
    found = text_case(text, (1,), (32,), [pointer("o")], [Buffer("o", "u32", 32)])
    memory, trace = check_against_interpreter(found)
    lanes = memory.view("o", "u4").tolist()
    assert lanes[5] == 1 << 5 and set(lanes[:5] + lanes[6:]) == {0xFFFFFFFF ^ 1 << 5}
    assert short(trace, 200)
