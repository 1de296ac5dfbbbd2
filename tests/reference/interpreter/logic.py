"""Comparison, selection, logic, shifts and bit instructions of the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.ptx.module import Imm, Instruction, Pair
from ppt_gpu.ptx.operations import types_of
from reference.interpreter import float_rounding as fp
from reference.interpreter import integer
from reference.interpreter.arith import Execute, is_signed, type_of
from reference.interpreter.block import Bits, Mask
from reference.interpreter.warp import Warp, signed, unsupported, width_of

_ORDERED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE: dict[str, Callable[[Mask, Mask], Mask]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def compare(operator: str, a: Bits, b: Bits, kind: str) -> Mask:
    """A comparison of two values of type `kind`. Plain float comparisons are false with a NaN, those with u true."""
    if kind in fp.FLOATS:
        x, y = fp.widen(a, kind), fp.widen(b, kind)
        unordered = np.isnan(x) | np.isnan(y)
        if operator in ("num", "nan"):
            return unordered if operator == "nan" else ~unordered
        if operator in _ORDERED:
            return _ORDERED[operator](x, y) & ~unordered
        return _ORDERED[operator.removesuffix("u")](x, y) | unordered
    if operator in _UNSIGNED:
        return _ORDERED[_UNSIGNED[operator]](a, b)
    if is_signed(kind):
        return _ORDERED[operator](signed(a, width_of(kind)), signed(b, width_of(kind)))
    return _ORDERED[operator](a, b)


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


def select(warp: Warp, ins: Instruction) -> None:
    """selp: a where the predicate holds, else b."""
    kind = type_of(ins)
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:3])
    warp.write(ins.operands[0], np.where(warp.read(ins.operands[3], 1) == 1, a, b))


def select_by_sign(warp: Warp, ins: Instruction) -> None:
    """slct: a where c >= 0, else b (also where c is NaN)."""
    kind, test = types_of(ins.modifiers)
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:3])
    c = warp.read_typed(ins.operands[3], test)
    c = fp.flush(c, test) if "ftz" in ins.modifiers else c
    zero = np.zeros_like(c)
    warp.write(ins.operands[0], np.where(compare("ge", c, zero, test), a, b))


def logic(warp: Warp, ins: Instruction) -> None:
    """and, or, xor, not, cnot."""
    width = width_of(type_of(ins))
    a, *rest = (warp.read(operand, width) for operand in ins.operands[1:])
    functions: dict[str, Callable[[], Bits]] = {
        "and": lambda: a & rest[0],
        "or": lambda: a | rest[0],
        "xor": lambda: a ^ rest[0],
        "not": lambda: integer.wrap(~a, width),
        "cnot": lambda: (a == 0).astype(np.uint64),
    }
    warp.write(ins.operands[0], functions[ins.base]())


def logic3(warp: Warp, ins: Instruction) -> None:
    """lop3; with .and or .or also a predicate, (d != 0) combined with the last operand."""
    table, destination = ins.operands[4], ins.operands[0]
    if not isinstance(table, Imm):
        raise unsupported(ins, "the table is not a literal")
    a, b, c = (warp.read(operand, 32) for operand in ins.operands[1:4])
    result = integer.logic3(a, b, c, int(table.value))
    if isinstance(destination, Pair):
        predicate = warp.read(ins.operands[5], 1) == 1
        found = _COMBINE[ins.modifiers[0]](result != 0, predicate)
        warp.write(destination, result)
        warp.write(destination.second, found.astype(np.uint64))
    else:
        warp.write(destination, result)


def shift(warp: Warp, ins: Instruction) -> None:
    """shl, shr: the amount is 32 bits wide, whatever the type."""
    kind = type_of(ins)
    width = width_of(kind)
    a, amount = warp.read(ins.operands[1], width), warp.read(ins.operands[2], 32)
    if ins.base == "shl":
        warp.write(ins.operands[0], integer.shift_left(a, amount, width))
    else:
        warp.write(ins.operands[0], integer.shift_right(a, amount, width, is_signed(kind)))


def funnel(warp: Warp, ins: Instruction) -> None:
    """shf.l, shf.r."""
    a, b, amount = (warp.read(operand, 32) for operand in ins.operands[1:])
    left, wraps = "l" in ins.modifiers, "wrap" in ins.modifiers
    warp.write(ins.operands[0], integer.funnel_shift(a, b, amount, left, wraps))


def count(warp: Warp, ins: Instruction) -> None:
    """popc, clz, brev."""
    width = width_of(type_of(ins))
    functions = {"popc": integer.population_count, "clz": integer.leading_zeros, "brev": integer.reverse}
    warp.write(ins.operands[0], functions[ins.base](warp.read(ins.operands[1], width), width))


def find(warp: Warp, ins: Instruction) -> None:
    """bfind."""
    kind = type_of(ins)
    width = width_of(kind)
    a = warp.read(ins.operands[1], width)
    warp.write(ins.operands[0], integer.find_highest(a, width, is_signed(kind), "shiftamt" in ins.modifiers))


def field(warp: Warp, ins: Instruction) -> None:
    """bfe, bfi."""
    kind = type_of(ins)
    width = width_of(kind)
    start, length = (warp.read(operand, 32) for operand in ins.operands[-2:])
    a = warp.read(ins.operands[1], width)
    if ins.base == "bfe":
        result = integer.extract(a, start, length, width, is_signed(kind))
    else:
        result = integer.insert(a, warp.read(ins.operands[2], width), start, length, width)
    warp.write(ins.operands[0], result)


def bytes_permuted(warp: Warp, ins: Instruction) -> None:
    """prmt."""
    a, b, selector = (warp.read(operand, 32) for operand in ins.operands[1:])
    warp.write(ins.operands[0], integer.permute(a, b, selector, ins.modifiers[-1]))


def mask(warp: Warp, ins: Instruction) -> None:
    """bmsk, szext."""
    a, b = (warp.read(operand, 32) for operand in ins.operands[1:])
    wraps = "wrap" in ins.modifiers
    if ins.base == "bmsk":
        warp.write(ins.operands[0], integer.bit_mask(a, b, wraps))
    else:
        warp.write(ins.operands[0], integer.sign_extend_at(a, b, is_signed(type_of(ins)), wraps))


def nth(warp: Warp, ins: Instruction) -> None:
    """fns."""
    warp.write(ins.operands[0], integer.find_nth(*(warp.read(operand, 32) for operand in ins.operands[1:])))


LOGIC: dict[str, Execute] = {
    "setp": set_predicate,
    "set": set_number,
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), logic),
    **dict.fromkeys(("shl", "shr"), shift),
    **dict.fromkeys(("popc", "clz", "brev"), count),
    **dict.fromkeys(("bfe", "bfi"), field),
    **dict.fromkeys(("bmsk", "szext"), mask),
    "selp": select,
    "slct": select_by_sign,
    "lop3": logic3,
    "shf": funnel,
    "bfind": find,
    "prmt": bytes_permuted,
    "fns": nth,
}
