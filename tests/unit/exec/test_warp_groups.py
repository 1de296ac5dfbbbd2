"""Groups of lanes that give different member masks to one instruction, as tiles of cooperative groups do: each works
apart from the others, in both engines."""

import numpy as np
import pytest
from ptx_lanes import lanes

from ppt_gpu.exec.interpreter import interpret
from ppt_gpu.exec.run import run

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
