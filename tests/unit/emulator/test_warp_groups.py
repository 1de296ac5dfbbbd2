"""Groups of lanes that give different member masks to one instruction, as tiles of cooperative groups do: each works
apart from the others, in both engines."""

import numpy as np
import pytest
from jit_kernels import text_case
from ptx_lanes import lanes
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.workload import Argument, Buffer

ENGINES = pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
SIGNED = np.array([(k * 37 + 11) % 64 - 32 for k in range(32)], "i4")
FLOATS = (SIGNED / 4).astype("f4")
#: masks of tiles of 8, and of lanes that are even or odd
TILES = np.array([0xFF << (k & ~7) for k in range(32)], "u4")
PARITY = np.array([0x55555555 << (k & 1) for k in range(32)], "u4")
MASKS = {"tiles": TILES, "parity": PARITY, "one": np.full(32, 0xFFFFFFFF, "u4")}


def of_groups(masks, function):
    """`function` of the lane numbers in each lane's group."""
    return [function([k for k in range(32) if int(mask) >> k & 1]) for mask in masks.tolist()]


def bits(members):
    return sum(1 << k for k in members)


VOTE = "setp.gt.s32 %p, %a, 14; vote.sync."
CASES = {
    "redux.sync.add.s32 %d, %a, %b;": lambda g: int(SIGNED[g].sum()),
    "redux.sync.min.s32 %d, %a, %b;": lambda g: int(SIGNED[g].min()),
    "redux.sync.xor.b32 %d, %a, %b;": lambda g: int(np.bitwise_xor.reduce(SIGNED[g])),
    f"{VOTE}ballot.b32 %d, %p, %b;": lambda g: bits([k for k in g if SIGNED[k] > 14]),
    f"{VOTE}any.pred %q, %p, %b; selp.b32 %d, 1, 0, %q;": lambda g: int((SIGNED[g] > 14).any()),
    f"{VOTE}all.pred %q, %p, %b; selp.b32 %d, 1, 0, %q;": lambda g: int((SIGNED[g] > 14).all()),
    f"{VOTE}uni.pred %q, %p, %b; selp.b32 %d, 1, 0, %q;": lambda g: int(len(set((SIGNED[g] > 14).tolist())) == 1),
    "elect.sync %d|%q, %b; @!%q mov.b32 %d, 77; @%q mov.b32 %d, %i; min.u32 %d, %d, 77;": None,
}


@ENGINES
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("body", CASES, ids=lambda body: body.replace("%", "").split("sync.")[-1].split()[0])
def test_groups(engine, body, masks):
    found = lanes(body, ["s32", "u32"], "b32", SIGNED, MASKS[masks], run=engine)
    function = CASES[body]
    if function is None:  # the lowest lane of each group is elected
        expected = [k if k == low else 77 for k, low in enumerate(of_groups(MASKS[masks], min))]
    else:
        expected = of_groups(MASKS[masks], function)
    assert found.astype("i4").tolist() == np.array(expected, "i8").astype("i4").tolist()


@ENGINES
@pytest.mark.parametrize("masks", MASKS)
def test_matches(engine, masks):
    values, given = SIGNED & 3, MASKS[masks]
    body = "match.any.sync.b32 %d, %a, %b;"
    found = lanes(body, ["s32", "u32"], "b32", values, given, run=engine)
    expected = [bits([j for j in range(32) if int(given[k]) >> j & 1 and values[j] == values[k]]) for k in range(32)]
    assert found.tolist() == expected
    same = np.arange(32) // 8 % 2  # one value in each tile
    found = lanes("match.all.sync.b32 %d|%p, %a, %b;", ["s32", "u32"], "b32", same, given, run=engine)
    assert found.tolist() == of_groups(given, lambda g: bits(g) if len(set(same[g].tolist())) == 1 else 0)


@ENGINES
def test_floats(engine):
    body = "redux.sync.max.abs.f32 %d, %a, %b;"
    found = lanes(body, ["f32", "u32"], "f32", FLOATS, TILES, run=engine)
    assert found.tolist() == of_groups(TILES, lambda g: float(np.abs(FLOATS[g]).max()))


@ENGINES
def test_groups_apart(engine):
    """Lanes 0-7 are elsewhere: the tiles that are there do not wait for them, and get their own results."""
    body = "mov.b32 %d, 0; setp.lt.u32 %p, %i, 8; @%p bra past; redux.sync.add.s32 %d, %a, %b; past:"
    found = lanes(body, ["s32", "u32"], "s32", SIGNED, TILES, run=engine)
    assert found.tolist() == [0] * 8 + of_groups(TILES, lambda g: int(SIGNED[g].sum()))[8:]


BARRIER = """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p<4>;
    .shared .align 4 .b8 s[128];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r4, %r3, %r2;
    and.b32 %r5, %r1, 24; shl.b32 %r6, 255, %r5;  // tiles of 8 lanes
    setp.ge.u32 %p1, %r1, 16; selp.b32 %r6, 0xffff0000, %r6, %p1;  // and one of 16
    and.b32 %r7, %r1, 8; setp.COMPARE.u32 %p2, %r7, 0;
    xor.b32 %r8, %r1, 8; selp.b32 %r8, %r8, %r1, %p1; shl.b32 %r8, %r8, 2; add.s32 %r8, %r3, %r8;
    @%p2 bra OTHER;
    st.shared.u32 [%r4], %r1; bar.warp.sync %r6; ld.shared.u32 %r9, [%r8]; bra SEEN;
OTHER:
    st.shared.u32 [%r4], %r1; bar.warp.sync %r6; ld.shared.u32 %r9, [%r8];
SEEN:
    ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r9;
    ret;
}
"""


@ENGINES
@pytest.mark.parametrize("compare", ["eq", "ne"])
def test_barriers_of_groups(engine, compare):
    """Lanes 0 to 7 and 16 to 23 come together; the latter wait for 24 to 31, which come with 8 to 15."""
    case = text_case(
        BARRIER.replace("COMPARE", compare), (1,), (32,), [Argument("u64", buffer="o")], [Buffer("o", "u32", 32)]
    )
    memory, trace = case.run(engine=engine)
    assert memory.view("o", "u4").tolist() == [k ^ 8 if k >= 16 else k for k in range(32)]
    assert trace.pc_executed.min() >= 1
