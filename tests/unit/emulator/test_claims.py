"""By which atomics blocks share work out among themselves: decided from the text of a kernel."""

import pytest

from ppt_gpu.emulator.analysis.dynamic_work import claims_of
from ppt_gpu.ptx import parse_module

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 count)
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .shared .align 4 .b32 item;
  ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [count]; mov.u32 %r1, %tid.x;
AGAIN:
"""
TAIL = "\nEND: ret;\n}\n"

#: body, and the claims in it: whether each is repeated
BODIES = {
    "queue": ("atom.global.add.u32 %r2, [%rd2], 1; setp.lt.u32 %p1, %r2, 99; @%p1 bra AGAIN;", [True]),
    "generic address": ("atom.add.u32 %r2, [%rd2], 1; setp.lt.u32 %p1, %r2, 99; @%p1 bra AGAIN;", [True]),
    "ticket": (
        "atom.global.inc.u32 %r2, [%rd2], 99; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd1, %rd3;"
        "ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd1], %r3;",
        [False],
    ),
    "ticket through shared memory": (
        "atom.global.add.u32 %r2, [%rd2], 1; st.shared.u32 [item], %r2; bar.sync 0; ld.shared.u32 %r3, [item];"
        "mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r1;",
        [False],
    ),
    "ticket of another lane": (
        "atom.global.add.u32 %r2, [%rd2], 1; shfl.sync.idx.b32 %r3|%p2, %r2, 0, 31, -1; setp.eq.u32 %p1, %r3, 7;"
        "@%p1 st.global.u32 [%rd1], %r1;",
        [False],
    ),
    "last block": ("atom.global.inc.u32 %r2, [%rd2], 99; setp.ne.u32 %p1, %r2, 98; @%p1 bra END;", [False]),
    "old value as data": ("atom.global.add.u32 %r2, [%rd2], 1; st.global.u32 [%rd1], %r2;", []),
    "nobody wants the old value": ("red.global.add.u32 [%rd2], 1; atom.global.add.u32 %r2, [%rd2], 1;", []),
    "counter of the block": (
        "atom.shared.add.u32 %r2, [item], 1; setp.lt.u32 %p1, %r2, 99; @%p1 bra AGAIN;",
        [],
    ),
    "lock": (
        "atom.global.cas.b32 %r2, [%rd2], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN; st.global.u32 [%rd1], %r1;",
        [],
    ),
    "appends in a loop": (
        "atom.global.add.u32 %r2, [%rd2], 1; setp.gt.u32 %p2, %r2, 98; @%p2 bra FULL;"
        "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd3], %r1;"
        "FULL: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 99; @%p1 bra AGAIN;",
        [False],
    ),
    "a queue with a loop for each part": (
        "atom.global.add.u32 %r2, [%rd2], 1; setp.ge.u32 %p1, %r2, 99; @%p1 bra END; mov.u32 %r3, 0;"
        "PART: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra PART; bra AGAIN;",
        [True],
    ),
    "a ticket, then a queue": (
        "atom.global.add.u32 %r2, [%rd2], 1; setp.eq.u32 %p1, %r2, 7; @%p1 bra END;"
        "MORE: atom.global.dec.u32 %r3, [%rd1], 99; setp.ne.u32 %p2, %r3, 0; @%p2 bra MORE;",
        [False, True],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_claims(name: str) -> None:
    body, expected = BODIES[name]
    module = parse_module(HEAD + body + TAIL)
    assert [claim.repeated for claim in claims_of(module.kernels["k"])] == expected
