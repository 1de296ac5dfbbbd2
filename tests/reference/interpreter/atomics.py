"""Atomics of the interpreter: the lanes one after another, the lowest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction, Operand
from reference.interpreter import float_rounding as fp
from reference.interpreter.access import Access, access_of, record
from reference.interpreter.block import LANES
from reference.interpreter.memory import Elements, complete_async, load, read_elements, store, write_elements
from reference.interpreter.warp import Execute, Warp, as_int, is_signed, type_of, unsupported, width_of


def _exchange(old: int, operands: list[int], bits: int) -> int:
    return operands[0]


def _compare_and_swap(old: int, operands: list[int], bits: int) -> int:
    return operands[1] if old == operands[0] else old


def _increment(old: int, operands: list[int], bits: int) -> int:
    return 0 if old >= operands[0] else old + 1


def _decrement(old: int, operands: list[int], bits: int) -> int:
    return operands[0] if old == 0 or old > operands[0] else old - 1


_BITWISE: dict[str, Callable[[int, list[int], int], int]] = {
    "exch": _exchange,
    "cas": _compare_and_swap,
    "inc": _increment,
    "dec": _decrement,
    "and": lambda old, operands, bits: old & operands[0],
    "or": lambda old, operands, bits: old | operands[0],
    "xor": lambda old, operands, bits: old ^ operands[0],
}


def atomic(warp: Warp, ins: Instruction) -> None:
    """atom, red, and multimem.red: one element of a lane after another."""
    kind, count = type_of(ins), vector_length(ins)
    size = width_of(kind) // 8
    returns = ins.base == "atom"
    operation = next((m for m in ins.modifiers if m in _BITWISE or m in ("add", "min", "max")), "")
    if not operation or (kind == "b128" and operation not in ("exch", "cas")):
        raise unsupported(ins)
    access = access_of(warp, ins, ins.operands[int(returns)], count * size)
    access.only_in(("global", "shared"))
    record(warp, ins, access)
    before = apply(warp, ins, access, kind, count, ins.operands[int(returns) + 1 :])
    complete_async(warp, ins, size)
    if returns:
        write_elements(warp, ins.operands[0], kind, before)


def apply(warp: Warp, ins: Instruction, access: Access, kind: str, count: int, operands: Sequence[Operand]) -> Elements:
    """Do the operation of the instruction on the places of an access. Returns the old elements."""
    operation = next(m for m in ins.modifiers if m in _BITWISE or m in ("add", "min", "max"))
    size = width_of(kind) // 8
    sources = [read_elements(warp, operand, kind) for operand in operands[: 1 + (operation == "cas")]]
    before: Elements = [[0] * LANES for _ in range(count)]
    for lane in access.lanes():
        data = access.load(lane)
        after = b""
        for i in range(count):
            old = before[i][lane] = int.from_bytes(data[i * size : (i + 1) * size], "little")
            values = [source[i][lane] for source in sources]
            flush = (operation, kind) == ("add", "f32") and access.space(lane) == "global"
            new = (_flushed_sum if flush else _updated)(operation, kind, old, values)
            after += (new & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        access.store(lane, after)
    return before


def _flushed_sum(operation: str, kind: str, old: int, operands: list[int]) -> int:
    """In global memory additions of f32 flush subnormal inputs and results to zero (PTX ISA, atom)."""
    old, operand = (int(fp.flush(np.array([bits], np.uint64), kind)[0]) for bits in (old, operands[0]))
    total = _updated(operation, kind, old, [operand])
    return int(fp.flush(np.array([total], np.uint64), kind)[0])


def _updated(operation: str, kind: str, old: int, operands: list[int]) -> int:
    if operation in _BITWISE:
        return _BITWISE[operation](old, operands, width_of(kind))
    if kind in fp.PACKED:
        half = width_of(fp.PACKED[kind])
        mask = (1 << half) - 1
        parts = [_updated(operation, fp.PACKED[kind], old >> s & mask, [operands[0] >> s & mask]) for s in (0, half)]
        return parts[1] << half | parts[0]
    if kind in fp.FLOATS:
        return _updated_float(operation, kind, old, operands[0])
    width = width_of(kind)
    a, b = (as_int(value, width, is_signed(kind)) for value in (old, operands[0]))
    return a + b if operation == "add" else min(a, b) if operation == "min" else max(a, b)


def _updated_float(operation: str, kind: str, old: int, operand: int) -> int:
    a, b = np.array([old], np.uint64), np.array([operand], np.uint64)
    if operation == "add":
        total = fp.add(fp.widen(a, kind), fp.widen(b, kind), "rn")
        return fp.canonical_nan(kind) if np.isnan(total[0]).any() else int(fp.round_to(total, kind)[0])
    return int(fp.extremum([a, b], kind, operation == "max", ())[0])


def multimem(warp: Warp, ins: Instruction) -> None:
    """On one device a multicast address is that of its one buffer: a plain load, store or reduction."""
    {"ld_reduce": load, "st": store, "red": atomic}[ins.modifiers[0]](warp, ins)


ATOMICS: dict[str, Execute] = {"atom": atomic, "red": atomic, "multimem": multimem}
