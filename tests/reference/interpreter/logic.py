"""Comparison and selection of floats in the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.ptx.module import Instruction, Pair
from ppt_gpu.ptx.operations import types_of
from reference.interpreter import float_rounding as fp
from reference.interpreter.arith import Execute
from reference.interpreter.block import Bits, Mask
from reference.interpreter.warp import Warp, width_of

_ORDERED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_COMBINE: dict[str, Callable[[Mask, Mask], Mask]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def compare(operator: str, a: Bits, b: Bits, kind: str) -> Mask:
    """A comparison of two values of a floating-point type. Plain ones are false with a NaN, those with u true."""
    x, y = fp.widen(a, kind), fp.widen(b, kind)
    unordered = np.isnan(x) | np.isnan(y)
    if operator in ("num", "nan"):
        return unordered if operator == "nan" else ~unordered
    if operator in _ORDERED:
        return _ORDERED[operator](x, y) & ~unordered
    return _ORDERED[operator.removesuffix("u")](x, y) | unordered


def _compared(warp: Warp, ins: Instruction) -> list[Mask]:
    """The comparison of setp or set, combined with its predicate; of packed types that of each half, lower first.

    A second destination of setp takes the opposite, combined too: it is the second mask of the other types.
    """
    kind = ins.modifiers[-1]
    part = fp.PACKED.get(kind, kind)
    a, b = (warp.read_typed(o, kind) if kind == part else warp.read(o, 32) for o in ins.operands[1:3])
    pairs = [(a, b)]
    if kind != part:
        half = np.uint64(0xFFFF)
        pairs = [(a & half, b & half), (a >> np.uint64(16), b >> np.uint64(16))]
    if "ftz" in ins.modifiers:
        pairs = [(fp.flush(x, part), fp.flush(y, part)) for x, y in pairs]
    found = [compare(ins.modifiers[0], x, y, part) for x, y in pairs]
    if kind == part:
        found.append(~found[0])
    if len(ins.operands) < 4:
        return found
    predicate = warp.read(ins.operands[3], 1) == 1
    return [_COMBINE[ins.modifiers[1]](mask, predicate) for mask in found]


def set_predicate(warp: Warp, ins: Instruction) -> None:
    """setp: one predicate, or two."""
    first, second = _compared(warp, ins)
    destination = ins.operands[0]
    warp.write(destination, first.astype(np.uint64))
    if isinstance(destination, Pair):
        warp.write(destination.second, second.astype(np.uint64))


#: what set writes for "true", by destination type; integers: all ones
_TRUE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "f16x2": 0x3C00, "bf16x2": 0x3F80}


def set_number(warp: Warp, ins: Instruction) -> None:
    """set: 1.0 or 0.0, all ones or 0; of packed types in each half."""
    target = types_of(ins.modifiers)[0]
    first, second = _compared(warp, ins)
    if ins.modifiers[-1] in fp.PACKED:
        low, high = (mask.astype(np.uint64) * np.uint64(_TRUE.get(target, 0xFFFF)) for mask in (first, second))
        warp.write(ins.operands[0], high << np.uint64(16) | low)
    else:
        one = _TRUE.get(target, (1 << width_of(target)) - 1)
        warp.write(ins.operands[0], first.astype(np.uint64) * np.uint64(one))


def select_by_sign(warp: Warp, ins: Instruction) -> None:
    """slct: a where c >= 0, else b (also where c is NaN)."""
    kind, test = types_of(ins.modifiers)
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:3])
    c = warp.read_typed(ins.operands[3], test)
    c = fp.flush(c, test) if "ftz" in ins.modifiers else c
    zero = np.zeros_like(c)
    warp.write(ins.operands[0], np.where(compare("ge", c, zero, test), a, b))


LOGIC: dict[str, Execute] = {"setp": set_predicate, "set": set_number, "slct": select_by_sign}
