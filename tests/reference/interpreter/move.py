"""Moves of the interpreter."""

from __future__ import annotations

import numpy as np

from ppt_gpu.ptx.module import Instruction, Operand, Vec
from reference.interpreter.block import LANES
from reference.interpreter.warp import Execute, Warp, type_of, width_of


def move(warp: Warp, ins: Instruction) -> None:
    """mov: a register, constant, address or special register; packing and unpacking of vectors."""
    kind = type_of(ins)
    width = width_of(kind)
    destination, source = ins.operands
    if isinstance(destination, Vec) and isinstance(source, Vec):  # vector registers
        values = [warp.read_typed(item, kind) for item in source.items]
        for item, value in zip(destination.items, values, strict=True):
            warp.write(item, value)
    elif kind == "b128":
        _move_wide(warp, destination, source)
    elif isinstance(destination, Vec):
        part = width // len(destination.items)
        whole = warp.read(source, width)
        for place, item in enumerate(destination.items):
            warp.write(item, (whole >> np.uint64(place * part)) & np.uint64((1 << part) - 1))
    elif isinstance(source, Vec):
        part = width // len(source.items)
        whole = np.zeros(LANES, np.uint64)
        for place, item in enumerate(source.items):
            whole |= warp.read(item, part) << np.uint64(place * part)
        warp.write(destination, whole)
    else:
        warp.write(destination, warp.read_typed(source, kind))


def _move_wide(warp: Warp, destination: Operand, source: Operand) -> None:
    """mov.b128: between parts, two of 64 or four of 32 bits, and a 128-bit register, or of one."""
    if isinstance(source, Vec):
        part = 128 // len(source.items)
        parts = zip(*(warp.read(item, part).tolist() for item in source.items), strict=True)
        whole = [sum(bits << part * place for place, bits in enumerate(lane)) for lane in parts]
    else:
        whole = warp.read_wide(source)
    if isinstance(destination, Vec):
        part = 128 // len(destination.items)
        for place, item in enumerate(destination.items):
            warp.write(item, np.array([v >> part * place & (1 << part) - 1 for v in whole], np.uint64))
    else:
        warp.write_wide(destination, whole)


MOVES: dict[str, Execute] = {"mov": move}
