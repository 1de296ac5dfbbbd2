"""Moves and conversions of the interpreter."""

from __future__ import annotations

import math

import numpy as np

from ppt_gpu.emulator.forms.conversions import INTEGERS, Conversion, conversion, limits, not_a_number, refusal, storage
from ppt_gpu.emulator.forms.float_formats import decode
from ppt_gpu.ptx.module import Instruction, Operand, Vec
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import LANES, Bits
from reference.interpreter.warp import Execute, Warp, signed, truncate, type_of, unsupported, width_of

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


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


def convert(warp: Warp, ins: Instruction) -> None:
    """cvt between integers and floats of every format, scalar and packed; cvt.pack."""
    c = conversion(ins.modifiers)
    if c is None:
        raise unsupported(ins, "its types are missing")
    if refusal(c):
        raise unsupported(ins, refusal(c))
    if "pack" in ins.modifiers:
        _pack_integers(warp, ins, c)
    elif c.count > 1:
        _convert_packed(warp, ins, c)
    else:
        bits = _read(warp, ins.operands[1], c.source)
        result = _convert(c, bits)
        if c.target[0] == "s":  # a register wider than the type takes the sign
            result = signed(result, width_of(c.target)).view(np.uint64)
        warp.write(ins.operands[0], result)


def _read(warp: Warp, operand: Operand, kind: str) -> Bits:
    return warp.read(operand, 32) if kind == "tf32" else warp.read_typed(operand, kind)


def _convert(c: Conversion, bits: Bits) -> Bits:
    """The bits of one number as another type."""
    if c.source not in INTEGERS:
        return _from_float(c, bits)
    values = (signed(bits, width_of(c.source)) if c.source[0] == "s" else bits).tolist()
    if c.target not in INTEGERS:
        return _round(c, _nearest_f64(values))
    low, high = limits(c.target)
    if "sat" in c.flags:
        values = [max(low, min(high, v)) for v in values]
    return np.array([v & ((1 << INTEGERS[c.target]) - 1) for v in values], np.uint64)


def _from_float(c: Conversion, bits: Bits) -> Bits:
    if "ftz" in c.flags and c.source == "f32":
        bits = fp.flush(bits, c.source)
    if c.source == c.target and not c.integral and not {"sat", "relu"} & set(c.flags):
        return bits
    value = _values(c.source, bits)
    if c.target in INTEGERS:
        return _to_integer(c, value)
    if c.integral:
        value = _TO_INTEGER[c.integral](value)
    return _round(c, fp.exactly(value))


def _values(name: str, bits: Bits) -> fp.Floats:
    return fp.widen(bits, name) if name in fp.FLOATS else decode(bits, name)


def _round(c: Conversion, exact: fp.Rounded) -> Bits:
    """Rounded once to the target's format, saturated as the instruction says."""
    if "sat" in c.flags:
        exact = fp.saturate(exact)
    if "relu" in c.flags:
        exact = fp.rectify(exact)
    bits = fp.round_to(exact, c.target, c.rounding, "satfinite" in c.flags)
    return fp.flush(bits, "f32") if "ftz" in c.flags and c.target == "f32" else bits


def _nearest_f64(exact: list[int]) -> fp.Rounded:
    """The f64 nearest to integers, and on which side of it they lie."""
    value = [float(x) for x in exact]
    error = [(x > int(v)) - (x < int(v)) for x, v in zip(exact, value, strict=True)]
    return np.array(value), np.array(error, np.int8)


def _to_integer(c: Conversion, values: fp.Floats) -> Bits:
    """Rounded as the instruction says, clamped to the range of the type."""
    low, high = limits(c.target)
    mode = _TO_INTEGER[c.integral or "rzi"]

    def lane(value: float) -> int:
        if math.isnan(value):
            return not_a_number(c.source, c.target)
        if math.isinf(value):
            return high if value > 0 else low
        return max(low, min(high, int(mode(value))))

    mask = (1 << INTEGERS[c.target]) - 1
    return np.array([lane(float(v)) & mask for v in values], np.uint64)


def _convert_packed(warp: Warp, ins: Instruction, c: Conversion) -> None:
    """Two numbers: from two registers, the upper one first, or from a packed one."""
    if c.target_count == 1:
        raise unsupported(ins, "from packed numbers to one")
    size = np.uint64(storage(c.source, 1))
    if c.source_count == 1:
        upper, lower = (warp.read_typed(operand, c.source) for operand in ins.operands[1:3])
    else:
        both = warp.read(ins.operands[1], 2 * int(size))
        upper, lower = both >> size, both & np.uint64((1 << int(size)) - 1)
    high, low = (_round(c, fp.exactly(_values(c.source, bits))) for bits in (upper, lower))
    warp.write(ins.operands[0], high << np.uint64(storage(c.target, 1)) | low)


def _pack_integers(warp: Warp, ins: Instruction, c: Conversion) -> None:
    """cvt.pack: a and b saturated side by side, b lower; what is above them comes from the low end of c."""
    size = int(c.target[1:])
    low, high = limits(c.target)
    total = (
        warp.read(ins.operands[3], 32) << np.uint64(2 * size) if len(ins.operands) > 3 else np.zeros(LANES, np.uint64)
    )
    for operand, shift in ((ins.operands[1], size), (ins.operands[2], 0)):
        values = np.clip(signed(warp.read(operand, 32), 32), low, high)
        total = total | truncate(values, size) << np.uint64(shift)
    warp.write(ins.operands[0], total)


CONVERT: dict[str, Execute] = {"mov": move, "cvt": convert}
