"""Moves, conversions and address-space instructions of the interpreter."""

from __future__ import annotations

import math

import numpy as np

from ppt_gpu.errors import PptError
from ppt_gpu.exec import interp_float as fp
from ppt_gpu.exec.interp_arith import Execute, is_signed, type_of
from ppt_gpu.exec.interp_warp import LANES, Bits, Mask, Warp, signed, truncate, unsupported, width_of
from ppt_gpu.exec.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ppt_gpu.ptx.module import Instruction, Vec
from ppt_gpu.ptx.operations import space_of, types_of

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def move(warp: Warp, ins: Instruction) -> None:
    """mov: a register, constant, address or special register; packing and unpacking of vectors."""
    kind = type_of(ins)
    width = width_of(kind)
    destination, source = ins.operands
    if isinstance(destination, Vec):
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


def convert(warp: Warp, ins: Instruction) -> None:
    """cvt between integer and floating-point types, and packing two floats into one register."""
    types = types_of(ins.modifiers)
    if len(types) != 2 or types[1] in fp.PACKED:
        raise unsupported(ins, "the interpreter does not know this conversion")
    to, source = types
    if to in fp.PACKED:
        upper, lower = (_to_float(ins, warp.read_typed(o, source), source, fp.PACKED[to]) for o in ins.operands[1:])
        warp.write(ins.operands[0], upper << np.uint64(width_of(fp.PACKED[to])) | lower)
        return
    bits = warp.read_typed(ins.operands[1], source)
    if to == "tf32":
        result = _to_tf32(ins, bits)
    elif to in fp.FLOATS:
        result = _to_float(ins, bits, source, to)
    elif source in fp.FLOATS:
        result = _float_to_integer(ins, bits, source, to)
    else:
        result = _integer_to_integer(ins, bits, source, to)
    if to not in fp.FLOATS and is_signed(to):  # a register wider than the type takes the sign
        result = signed(result, width_of(to)).view(np.uint64)
    warp.write(ins.operands[0], result)


def _to_float(ins: Instruction, bits: Bits, source: str, to: str) -> Bits:
    mode = next((m for m in ins.modifiers if m in fp.ROUNDINGS), "rn")
    if source in fp.FLOATS:
        bits = fp.flush(bits, source) if "ftz" in ins.modifiers and source == "f32" else bits
        integral = next((m for m in ins.modifiers if m in _TO_INTEGER), None)
        if source == to and integral is None:
            result = bits
        else:
            value = fp.widen(bits, source)
            value = value if integral is None else _TO_INTEGER[integral](value)
            result = fp.round_to(fp.exactly(value), to, mode)
    else:
        width = width_of(source)
        result = fp.round_to(_integer_value(bits, width, is_signed(source)), to, mode)
    result = fp.flush(result, to) if "ftz" in ins.modifiers and to == "f32" else result
    result = fp.saturate(result, to) if "sat" in ins.modifiers else result
    if "relu" in ins.modifiers:
        result = fp.minimum(result, np.zeros_like(result), to, largest=True, keep_nan=True)
    return result


def _integer_value(bits: Bits, width: int, has_sign: bool) -> fp.Rounded:
    """The f64 nearest to an integer, and on which side of it the integer lies."""
    exact = (signed(bits, width) if has_sign else bits).tolist()
    value = [float(x) for x in exact]
    error = [(x > int(v)) - (x < int(v)) for x, v in zip(exact, value, strict=True)]
    return np.array(value), np.array(error, np.int8)


def _to_tf32(ins: Instruction, bits: Bits) -> Bits:
    """To 10 bits of mantissa: to nearest, ties away from zero (.rna) or to even (.rn)."""
    half = np.uint64(0x1000) if "rna" in ins.modifiers else np.uint64(0xFFF) + ((bits >> np.uint64(13)) & np.uint64(1))
    finite = (bits & np.uint64(0x7F800000)) != np.uint64(0x7F800000)
    return np.where(finite, (bits + half) & np.uint64(0xFFFFE000), bits)


def _float_to_integer(ins: Instruction, bits: Bits, source: str, to: str) -> Bits:
    """Rounded as the instruction says, clamped to the range of the type; NaN gives 0."""
    bits = fp.flush(bits, source) if "ftz" in ins.modifiers and source == "f32" else bits
    mode = next((m for m in ins.modifiers if m in _TO_INTEGER), "rzi")
    width = width_of(to)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed(to) else (0, (1 << width) - 1)

    def lane(value: float) -> int:
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return high if value > 0 else low
        return max(low, min(high, int(_TO_INTEGER[mode](value))))

    mask = (1 << width) - 1
    return np.array([lane(float(v)) & mask for v in fp.widen(bits, source)], np.uint64)


def _integer_to_integer(ins: Instruction, bits: Bits, source: str, to: str) -> Bits:
    width = width_of(to)
    values = (signed(bits, width_of(source)) if is_signed(source) else bits).tolist()
    if "sat" in ins.modifiers:
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed(to) else (0, (1 << width) - 1)
        values = [max(low, min(high, v)) for v in values]
    return np.array([v & ((1 << width) - 1) for v in values], np.uint64)


def convert_address(warp: Warp, ins: Instruction) -> None:
    """cvta: an address of a space to a generic one, or back (.to)."""
    space, width = space_of(ins.modifiers), width_of(type_of(ins))
    if space == "param":
        raise unsupported(ins, "parameters have no generic addresses here")
    window = np.uint64(_window(space))
    address = warp.read(ins.operands[1], width)
    result = address - window if "to" in ins.modifiers else address + window
    warp.write(ins.operands[0], truncate(result.view(np.int64), width))


def _window(space: str) -> int:
    return {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)


def in_window(address: Bits, space: str) -> Mask:
    """Which generic addresses lie in the window of "shared" or "local"."""
    window = np.uint64(_window(space))
    return (address >= window) & (address < window + np.uint64(WINDOW_BYTES))


def is_space(warp: Warp, ins: Instruction) -> None:
    """isspacep."""
    space = space_of(ins.modifiers)
    address = warp.read(ins.operands[1], 64)
    if space in ("shared", "local"):
        found = in_window(address, space)
    elif space in ("global", "constant"):
        name = "const" if space == "constant" else space
        memory = warp.launched.memory
        places = [memory.find(int(a)) for a in address]
        found = np.array([place >= 0 and memory.spaces[place] == name for place in places])
    else:
        raise PptError(f"isspacep does not know the space '{space}' here")
    warp.write(ins.operands[0], found.astype(np.uint64))


CONVERT: dict[str, Execute] = {"mov": move, "cvt": convert, "cvta": convert_address, "isspacep": is_space}
