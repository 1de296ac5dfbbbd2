"""Instructions that are described as values (`ppt_gpu.emulator.forms.described`): exact, lane by lane.

In Python integers; operations on floating-point numbers in NumPy, rounded once (`float_rounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ppt_gpu.emulator.forms.convert import limits
from ppt_gpu.emulator.forms.described import Described
from ppt_gpu.emulator.forms.float_formats import decode
from ppt_gpu.emulator.forms.opcode import WIDTH, is_signed
from ppt_gpu.emulator.forms.value import EXACT, Value, apply, signed
from ppt_gpu.ptx.module import Operand, Reg
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import Bits, Mask
from reference.interpreter.warp import Warp, as_int, width_of


def evaluate(value: Value, inputs: Sequence[list[int]], known: dict[Value, list[int]]) -> list[int]:
    """What the value is in each lane. `known`: values that are worked out already; grows."""
    if value not in known:
        if value.op == "const":
            known[value] = [value.number] * len(inputs[0] if inputs else range(1))
        elif value.op == "input":
            known[value] = inputs[value.number]
        else:
            columns = [evaluate(arg, inputs, known) for arg in value.args]
            if value.op in EXACT:
                rows = zip(*columns, strict=True)
                known[value] = [apply(value.op, value.width, value.args, list(row)) for row in rows]
            else:
                with np.errstate(all="ignore"):
                    known[value] = on_numbers(value.op, [np.array(column, np.uint64) for column in columns]).tolist()
    return known[value]


_COMPARISONS: dict[str, Callable[[fp.Floats, fp.Floats], Mask]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_INTEGRAL: dict[str, Callable[[fp.Floats], fp.Floats]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip
#: in f64, rounded to nearest: a compiled run may differ in the last place
_APPROXIMATE: dict[str, Callable[[fp.Floats], fp.Floats]] = {
    "frsqrt": lambda x: 1.0 / np.sqrt(x),
    "fsin": np.sin,
    "fcos": np.cos,
    "fex2": np.exp2,
    "flg2": np.log2,
    "ftanh": np.tanh,
}


def on_numbers(op: str, operands: list[Bits]) -> Bits:
    """An operation on floating-point numbers (`ppt_gpu.emulator.forms.floating`), from bits to bits."""
    name, kind, *rest = op.split(".")
    if name == "fcmp":
        return _compare(kind, *(fp.widen(bits, rest[0]) for bits in operands)).astype(np.uint64)
    if name == "itofp":
        numbers = [as_int(bits, width_of(kind), is_signed(kind)) for bits in operands[0].tolist()]
        return fp.round_to(_nearest_f64(numbers), rest[0], rest[1])
    values = [fp.widen(bits, kind) if kind in fp.FLOATS else decode(bits, kind) for bits in operands]
    if name == "fcvt":
        return fp.round_to(fp.exactly(values[0]), rest[0], rest[1], "satfinite" in rest)
    if name == "fround":
        return fp.round_to(fp.exactly(_INTEGRAL[rest[0]](values[0])), kind)
    if name == "fptoi":
        return _to_integer(values[0], rest[0])
    if name in _APPROXIMATE:
        return fp.round_to(fp.exactly(_APPROXIMATE[name](values[0])), kind)
    (mode,) = rest
    results: dict[str, Callable[[], fp.Rounded]] = {
        "fadd": lambda: fp.add(values[0], values[1], mode),
        "fsub": lambda: fp.add(values[0], -values[1], mode),
        "fmul": lambda: fp.multiply(values[0], values[1], kind),
        "fma": lambda: fp.fma(values[0], values[1], values[2], kind, mode),
        "fdiv": lambda: fp.divide(values[0], values[1]),
        "fsqrt": lambda: fp.square_root(values[0]),
    }
    return fp.round_to(results[name](), kind, mode)


def _nearest_f64(exact: list[int]) -> fp.Rounded:
    """The f64 nearest to integers, and on which side of it they lie."""
    value = [float(x) for x in exact]
    error = [(x > int(v)) - (x < int(v)) for x, v in zip(exact, value, strict=True)]
    return np.array(value), np.array(error, np.int8)


def _to_integer(values: fp.Floats, kind: str) -> Bits:
    """Without their fractions, clamped to the range of the type; NaN gives 0."""
    low, high = limits(kind)
    whole = [0 if np.isnan(x) else low if x <= low else high if x >= high else int(x) for x in values]
    return np.array([x & ((1 << width_of(kind)) - 1) for x in whole], np.uint64)


def _compare(name: str, x: fp.Floats, y: fp.Floats) -> Mask:
    """By LLVM's names: o... is false with a NaN, u... is true."""
    unordered = np.isnan(x) | np.isnan(y)
    if name in ("uno", "ord"):
        return unordered if name == "uno" else ~unordered
    found = _COMPARISONS[name[1:]](x, y)
    return found & ~unordered if name[0] == "o" else found | unordered


def execute(warp: Warp, found: Described) -> None:
    """Read the operands, work the results out, write them in the active lanes."""
    inputs = [_read(warp, operand, kind) for operand, kind in found.sources] or [[0] * 32]
    known: dict[Value, list[int]] = {}
    results = [evaluate(value, inputs, known) for _, _, value in found.results]
    for (operand, kind, _), lanes in zip(found.results, results, strict=True):
        if is_signed(kind):  # a wider register is extended
            lanes = [signed(lane, WIDTH[kind]) & (1 << 64) - 1 for lane in lanes]
        warp.write(operand or _carry(warp), np.array(lanes, np.uint64))


def _read(warp: Warp, operand: Operand | None, kind: str) -> list[int]:
    if operand is None:
        return warp.read(_carry(warp), 1).tolist()
    if kind in fp.FLOATS:
        return warp.read_typed(operand, kind).tolist()
    return warp.read(operand, WIDTH[kind]).tolist()


def _carry(warp: Warp) -> Reg:
    return next(Reg(number) for number, r in enumerate(warp.kernel.registers) if r.name.startswith("%cc"))
