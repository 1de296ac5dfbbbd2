"""Instructions in which the lanes of a warp exchange values: shuffles, votes, matches, reductions.

Lanes that do not execute the instruction contribute nothing; reading from one gives the reader's own value. Lanes that
give different member masks to one .sync instruction, as tiles of cooperative groups do, work apart from each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from ppt_gpu.emulator.memory.warp_context import Flag
from ppt_gpu.ptx.module import Instruction, Operand, Pair
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import LANES, Bits, Mask, lane_bits
from reference.interpreter.warp import Execute, Warp, as_int, is_signed, type_of, width_of


def shuffle(warp: Warp, ins: Instruction) -> None:
    """shfl: pseudo code of the PTX ISA; c holds the clamp in bits 0-4 and the segment mask in bits 8-12."""
    a, b, c = (warp.read(operand, 32) for operand in ins.operands[1:4])
    if "sync" in ins.modifiers:
        _named(warp, ins, ins.operands[4])
    mode = next(m for m in ins.modifiers if m in ("up", "down", "bfly", "idx"))
    values, inside = a.copy(), np.zeros(LANES, bool)
    for lane in range(LANES):
        clamp, segment = int(c[lane]) & 31, int(c[lane]) >> 8 & 31
        step = int(b[lane]) & 31
        high = (lane & segment) | (clamp & ~segment)
        low = lane & segment
        source, valid = {
            "up": (lane - step, lane - step >= high),
            "down": (lane + step, lane + step <= high),
            "bfly": (lane ^ step, lane ^ step <= high),
            "idx": (low | (step & ~segment), (low | (step & ~segment)) <= high),
        }[mode]
        inside[lane] = valid
        if valid and warp.active[source]:
            values[lane] = a[source]
    warp.write(ins.operands[0], values)
    if isinstance(ins.operands[0], Pair):
        warp.write(ins.operands[0].second, inside.astype(np.uint64))


def _groups(warp: Warp, ins: Instruction) -> list[tuple[Mask, Mask]]:
    """Executing lanes with one member mask (the last operand of .sync forms), and the executing lanes that it names."""
    if "sync" not in ins.modifiers:
        return [(warp.active, warp.active)]
    return [(lanes, named & warp.active) for lanes, named in _named(warp, ins, ins.operands[-1])]


def _named(warp: Warp, ins: Instruction, mask: Operand) -> list[tuple[Mask, Mask]]:
    """Executing lanes with one member mask, and all lanes that it names; noted when one of those is elsewhere."""
    masks = warp.read(mask, 32)
    groups = []
    for value in np.unique(masks[warp.active]):
        named = (value >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1) == 1
        if (named & warp.live & ~warp.active).any():
            warp.note(ins, Flag.DIVERGENT_SYNC)
        groups.append((warp.active & (masks == value), named))
    return groups


def vote(warp: Warp, ins: Instruction) -> None:
    """vote: all, any, uni, ballot over the members."""
    mode = next(m for m in ins.modifiers if m in ("all", "any", "uni", "ballot"))
    predicate = warp.read(ins.operands[1], 1) == 1
    for lanes, members in _groups(warp, ins):
        holds = predicate & members
        results = {
            "all": bool((holds == members).all()),
            "any": bool(holds.any()),
            "uni": bool((holds == members).all() or not holds.any()),
            "ballot": lane_bits(holds),
        }
        warp.write_where(ins.operands[0], np.full(LANES, int(results[mode]), np.uint64), lanes)


def active_mask(warp: Warp, ins: Instruction) -> None:
    """activemask."""
    warp.write(ins.operands[0], np.full(LANES, lane_bits(warp.active), np.uint64))


def match(warp: Warp, ins: Instruction) -> None:
    """match.any: the members with the reader's value; match.all: the members if all have the same, else 0."""
    value = warp.read(ins.operands[1], width_of(type_of(ins)))
    for lanes, members in _groups(warp, ins):
        masks = [lane_bits(members & (value == value[lane])) for lane in range(LANES)]
        if "all" in ins.modifiers:
            everyone = lane_bits(members)
            masks = [mask if mask == everyone else 0 for mask in masks]
        warp.write_where(ins.operands[0], np.array(masks, np.uint64), lanes)
        if isinstance(ins.operands[0], Pair):
            warp.write_where(ins.operands[0].second, (np.array(masks) != 0).astype(np.uint64), lanes)


_REDUCE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def reduction(warp: Warp, ins: Instruction) -> None:
    """redux: one value from all members."""
    kind = type_of(ins)
    values: Bits = warp.read_typed(ins.operands[1], kind)
    operation = next(m for m in ins.modifiers if m in _REDUCE)
    for lanes, members in _groups(warp, ins):
        if kind == "f32":
            if members.any():
                found = _reduced_floats(values[members], operation == "max", ins.modifiers)
                warp.write_where(ins.operands[0], found, lanes)
            continue
        items = [as_int(int(value), 32, is_signed(kind)) for value in values[members]]
        total = reduce(_REDUCE[operation], items) if items else 0
        warp.write_where(ins.operands[0], np.full(LANES, total & 0xFFFFFFFF, np.uint64), lanes)


def _reduced_floats(values: Bits, largest: bool, flags: tuple[str, ...]) -> Bits:
    total = values[:1]
    for value in values:
        total = fp.extremum([total, np.array([value])], "f32", largest, flags)
    return np.repeat(total, LANES)


def elect(warp: Warp, ins: Instruction) -> None:
    """elect: the lowest member, and whether the reader is it."""
    destination = ins.operands[0]
    for lanes, members in _groups(warp, ins):
        if not members.any():
            continue
        leader = int(np.flatnonzero(members)[0])
        warp.write_where(destination, np.full(LANES, leader, np.uint64), lanes)
        if isinstance(destination, Pair):
            warp.write_where(destination.second, (np.arange(LANES) == leader).astype(np.uint64), lanes)


COLLECTIVE: dict[str, Execute] = {
    "shfl": shuffle,
    "vote": vote,
    "activemask": active_mask,
    "match": match,
    "redux": reduction,
    "elect": elect,
}
