"""Instructions that are described as values (`ppt_gpu.emulator.forms.described`): exact, in Python integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppt_gpu.emulator.forms.described import Described
from ppt_gpu.emulator.forms.opcode import WIDTH, is_signed
from ppt_gpu.emulator.forms.value import Value, apply, signed
from ppt_gpu.ptx.module import Operand, Reg
from reference.interpreter.float_rounding import FLOATS
from reference.interpreter.warp import Warp


def evaluate(value: Value, inputs: Sequence[list[int]], known: dict[Value, list[int]]) -> list[int]:
    """What the value is in each lane. `known`: values that are worked out already; grows."""
    if value not in known:
        if value.op == "const":
            known[value] = [value.number] * len(inputs[0] if inputs else range(1))
        elif value.op == "input":
            known[value] = inputs[value.number]
        else:
            columns = [evaluate(arg, inputs, known) for arg in value.args]
            rows = zip(*columns, strict=True)
            known[value] = [apply(value.op, value.width, value.args, list(row)) for row in rows]
    return known[value]


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
    if kind in FLOATS:
        return warp.read_typed(operand, kind).tolist()
    return warp.read(operand, WIDTH[kind]).tolist()


def _carry(warp: Warp) -> Reg:
    return next(Reg(number) for number, r in enumerate(warp.kernel.registers) if r.name.startswith("%cc"))
