"""Comparison, selection, logic, shifts and bit instructions of the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.exec import interp_float as fp
from ppt_gpu.exec import interp_integer as integer
from ppt_gpu.exec.interp_arith import Execute, is_signed, type_of
from ppt_gpu.exec.interp_warp import Bits, Mask, Warp, signed, unsupported, width_of
from ppt_gpu.ptx.module import Imm, Instruction, Pair
from ppt_gpu.ptx.operations import types_of

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


def set_predicate(warp: Warp, ins: Instruction) -> None:
    """setp and set: compare, combine with a predicate, write the predicate (and its complement) or a number."""
    types, kind = types_of(ins.modifiers), type_of(ins)
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:3])
    if kind in fp.PACKED:
        raise unsupported(ins, "the interpreter has no packed comparisons")
    if "ftz" in ins.modifiers:
        a, b = fp.flush(a, kind), fp.flush(b, kind)
    found = compare(ins.modifiers[0], a, b, kind)
    other = ~found
    if len(ins.operands) == 4:
        predicate = warp.read(ins.operands[3], 1) == 1
        combine = _COMBINE[ins.modifiers[1]]
        found, other = combine(found, predicate), combine(other, predicate)
    if ins.base == "set":
        one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(types[0], 0xFFFFFFFF)
        warp.write(ins.operands[0], np.where(found, np.uint64(one), np.uint64(0)))
        return
    destination = ins.operands[0]
    warp.write(destination, found.astype(np.uint64))
    if isinstance(destination, Pair):
        warp.write(destination.second, other.astype(np.uint64))


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
    """lop3, without its predicate form."""
    if len(ins.operands) != 5 or not isinstance(ins.operands[4], Imm):
        raise unsupported(ins, "the interpreter knows lop3 with three operands and a table")
    a, b, c = (warp.read(operand, 32) for operand in ins.operands[1:4])
    warp.write(ins.operands[0], integer.logic3(a, b, c, int(ins.operands[4].value)))


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
    **dict.fromkeys(("setp", "set"), set_predicate),
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
