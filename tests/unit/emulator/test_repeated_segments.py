"""Loops of one segment: a record of a path counts how often it was repeated; the trace is that of the interpreter."""

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, integer, pointer, text_case

from ppt_gpu.emulator.trace.record_words import MOST_REPEATS
from ppt_gpu.workload.workload import Buffer

#: each thread turns as often as its word of x says: all alike, or some leave earlier
LOOP = """.visible .entry k(.param .u64 x, .param .u32 more)
{
.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<9>;
START
ld.param.u64 %d1, [x]; ld.param.u32 %r1, [more]; mov.u32 %r2, %tid.x; mov.u32 %r6, %ctaid.x;
mad.lo.u32 %r2, %r6, 64, %r2; mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2;
ld.global.u32 %r3, [%d3]; add.u32 %r3, %r3, %r1; mov.u32 %r4, 0;
LOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r3; @%p1 bra LOOP;
st.global.u32 [%d3], %r4;
AGAIN: sub.u32 %r4, %r4, 1; setp.gt.s32 %p2, %r4, 2; @%p2 bra AGAIN;
ret;
}
"""


#: the same with the other turns, and with two records
LONG = (
    *((n, MOST_REPEATS + more) for n, more in ((1, 0), (1, 1), (3, 0), (3, 1), (1, 2), (3, 2))),
    *((n, 2 * MOST_REPEATS + 3) for n in (1, 3)),
)


@pytest.mark.parametrize(
    ("most", "more"),
    [(1, 1), (3, 1), (40, 1), (1, 2), (3, 2), (40, 2)] + [pytest.param(*case, marks=pytest.mark.slow) for case in LONG],
)
def test_turns_of_a_loop(most, more):
    case = text_case(LOOP.replace("START", ""), (2,), (64,), [pointer("x"), integer(more)], [Buffer("x", "u32", 128)])
    case.fill = {"x": np.random.default_rng(more).integers(0, most, 128).astype("u4")}
    check_against_interpreter(case)


def test_a_loop_that_a_block_begins_with():
    """The block before ended in the same segment, or it may have: every block has records of its own."""
    loop = "FIRST: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra FIRST;"
    case = text_case(LOOP.replace("START", loop), (5,), (64,), [pointer("x"), integer(2)], [Buffer("x", "u32", 320)])
    check_against_interpreter(case)
    text = ".visible .entry k(.param .u64 x)\n{\n.reg .pred %p; .reg .b32 %r;\n"
    whole = text + "FIRST: add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 3; @%p bra FIRST;\n}"
    check_against_interpreter(text_case(whole, (5,), (64,), [pointer("x")], [Buffer("x", "u32", 64)]))


def test_a_path_that_is_longer_than_the_room_for_paths_at_first():
    """Of the first warp, when nothing is known yet."""
    case = text_case(LOOP.replace("START", ""), (1,), (1,), [pointer("x"), integer(70_000)], [Buffer("x", "u32", 1)])
    memory, trace = case.run()
    assert trace.path_start[-1] > 5 * 70_000
    assert memory.view("x", np.uint32)[0] == 70_000
