"""Predictions of kernels whose blocks wait for other blocks: no part of the grid can run alone."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.analysis.dynamic_work import waits_for_blocks
from ppt_gpu.ptx.parsing.parser import parse_module

HEAD = ".version 8.0\n.target sm_70\n.address_size 64\n"

#: every block adds 1 to a counter, waits until all have, and does so `rounds` times
MEETING = (
    HEAD
    + """
.visible .entry meeting(.param .u64 data, .param .u64 count, .param .u32 rounds)
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [count];
  ld.param.u32 %r9, [rounds];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.s32 %r5, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd3, %rd1, %rd3;
  mov.u32 %r6, 0;
ROUND:
  ld.global.f32 %f1, [%rd3];
  fma.rn.f32 %f1, %f1, 0f3FC00000, 0f3F800000;
  st.global.f32 [%rd3], %f1;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra MET;
  atom.global.add.u32 %r7, [%rd2], 1;
  add.u32 %r8, %r6, 1;
  mul.lo.u32 %r8, %r8, %r4;
POLL:
  ld.volatile.global.u32 %r7, [%rd2];
  setp.lt.u32 %p2, %r7, %r8;
  @%p2 bra POLL;
MET:
  bar.sync 0;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p3, %r6, %r9;
  @%p3 bra ROUND;
  ret;
}
"""
)

#: every block waits for the one before it, as in a scan with look-back
CHAIN = (
    HEAD
    + """
.visible .entry chain(.param .u64 flags)
{
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flags];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra FIRST;
POLL:
  ld.volatile.global.u32 %r2, [%rd1+-4];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra POLL;
FIRST:
  bar.sync 0;
  mov.u32 %r3, 1;
  st.volatile.global.u32 [%rd1], %r3;
  ret;
}
"""
)


def meeting(rounds, blocks=20):
    data, count = np.zeros(blocks * 128, np.float32), np.zeros(1, np.uint32)
    return ppt_gpu.predict(MEETING, "v100", grid=blocks, block=128, args=[data, count, np.uint32(rounds)])


def test_a_barrier_over_the_grid():
    short, long = meeting(2), meeting(6)
    for result, rounds in ((short, 2), (long, 6)):
        launch = result.launches[0]
        # one warp of a block polls: at most once before the others are there, and once when they are
        # a round moves a constant into a register, and three instructions let lanes part and meet again
        per_warp, polls = 7 + rounds * 14, rounds * 9
        assert 4 * per_warp < launch.value("sim.warp_instructions") <= 4 * per_warp + polls
        assert any("wait for others: the whole grid was run" in text for text in launch.warnings)
        assert not any("divergent" in text for text in launch.warnings)
    one_round = (long.time - short.time) / 4
    assert 0.2e-6 < one_round < 3e-6  # load, atomic and poll: some trips to memory and back


def test_kept_traces_say_the_same():
    assert meeting(3).launches[0].value("kernel.cycles") == meeting(3).launches[0].value("kernel.cycles")


def test_blocks_in_a_chain():
    flags = np.zeros(300, np.uint32)
    result = ppt_gpu.predict(CHAIN, "k40", grid=300, block=64, args=[flags])
    assert any("wait for others" in text for text in result.launches[0].warnings)


#: the same, but blocks draw tickets, so that each runs after the one that it waits for
TICKETS = CHAIN.replace("  ld.param.u64 %rd1, [flags];", "  ld.param.u64 %rd3, [flags];").replace(
    "  cvta.to.global.u64 %rd1, %rd1;\n  mov.u32 %r1, %ctaid.x;",
    """  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r4, %tid.x;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra DRAWN;
  atom.global.add.u32 %r1, [%rd3], 1;
  st.shared.u32 [ticket], %r1;
DRAWN:
  bar.sync 0;
  ld.shared.u32 %r1, [ticket];
  add.s64 %rd1, %rd3, 4;""",
).replace(".reg .pred", ".shared .align 4 .b32 ticket;\n  .reg .pred")  # fmt: skip


@pytest.mark.parametrize("cached", [False, True])
def test_blocks_in_a_chain_by_tickets(cached: bool) -> None:
    """They wait for nobody as they are run, one after another; on a GPU they do, and the report has to say so."""
    flags = np.zeros(301, np.uint32)
    result = ppt_gpu.predict(TICKETS, "v100", grid=300, block=64, args=[flags], cache=cached)
    assert any("wait for others" in text for text in result.main.warnings)


#: one block after another adds to a sum
LOCK = (
    HEAD
    + """
.visible .entry locked(.param .u64 lock)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [lock];
  cvta.to.global.u64 %rd1, %rd1;
AGAIN:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ld.volatile.global.u32 %r2, [%rd1+4];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd1+4], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;
}
"""
)


def test_blocks_that_take_turns_by_a_lock() -> None:
    data = np.zeros(2, np.uint32)
    result = ppt_gpu.predict(LOCK, "v100", grid=300, block=1, args=[data])
    assert any("wait for others, as for a lock" in text for text in result.main.warnings)
    ppt_gpu.launch(LOCK, grid=300, block=1, args=[data])
    assert data.tolist() == [0, 300]
    # what retries with what it found is no lock, but an atomic addition of one's own
    added = LOCK.replace("AGAIN:", "mov.u32 %r1, 0;\nAGAIN:\n mov.u32 %r3, %r1;\n add.u32 %r2, %r1, 1;").replace(
        "[%rd1], 0, 1;\n  setp.ne.u32 %p1, %r1, 0;", "[%rd1], %r3, %r2;\n  setp.ne.u32 %p1, %r1, %r3;"
    )
    assert not waits_for_blocks(parse_module(added, "k.ptx").kernels["locked"])


def test_who_takes_work_waits_for_nobody() -> None:
    """Blocks that come back to a queue, and loops that go through memory, are not taken for it."""
    queue = MEETING.replace("ld.volatile.global.u32 %r7, [%rd2];", "add.u32 %r7, %r7, 1;")
    walk = MEETING.replace(
        "ld.volatile.global.u32 %r7, [%rd2];", "ld.volatile.global.u32 %r7, [%rd2];\n add.s64 %rd2, %rd2, 4;"
    )
    for text in (queue, walk):
        assert not waits_for_blocks(parse_module(text, "k.ptx").kernels["meeting"])
    for text in (MEETING, CHAIN, TICKETS):
        (kernel,) = parse_module(text, "k.ptx").kernels.values()
        assert waits_for_blocks(kernel)


def test_blocks_that_wait_for_nobody():
    nobody_counts = MEETING.replace("atom.global.add.u32 %r7, [%rd2], 1;", "atom.global.add.u32 %r7, [%rd2], 0;")
    arguments = [np.zeros(20 * 128, np.float32), np.zeros(1, np.uint32), np.uint32(1)]
    with pytest.raises(PptError, match=r"waits for ever: .* none of the 20 blocks that run writes"):
        ppt_gpu.predict(nobody_counts, "v100", grid=20, block=128, args=arguments)
