"""cvt: between integers and floats of every width and format.

Conversions between integers, and the usual ones that the host has too, are written in place; the rest are helper
functions (`arith.convert_library`).
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.emulator.forms.conversions import FLOATS, INTEGERS, Conversion, conversion, limits, refusal, storage
from ppt_gpu.emulator.forms.float_formats import encode
from ppt_gpu.emulator.forms.opcode import is_signed
from ppt_gpu.emulator.jit.arith.float_values import VALUE, canonical, flush, raw
from ppt_gpu.emulator.jit.emit import Emitter, Unsupported, emits
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, const, vec
from ppt_gpu.ptx.module import Imm, Instruction, Operand

_NATIVE = ("s16", "u16", "s32", "u32", "s64", "u64")


@emits("cvt")
def emit_convert(e: Emitter, i: Instruction) -> None:
    c = conversion(i.modifiers)
    if c is None:
        raise Unsupported("a conversion without types")
    if refusal(c):
        raise Unsupported(refusal(c))
    if "pack" in i.modifiers:
        _pack_integers(e, i, c)
    elif c.count > 1:
        _convert_packed(e, i, c)
    elif c.source in INTEGERS and c.target in INTEGERS:
        value = e.read(i.operands[1], c.source)
        e.write(i.operands[0], c.target, _integer_to_integer(e, c, value))
    elif not _in_place(e, i, c):
        value = _read(e, i.operands[1], c.source)
        result = e.helper(_key(c), vec(f"i{_bits(c.target)}"), (vec(f"i{_bits(c.source)}"), value))
        _write(e, i.operands[0], c.target, result)


def read_bits(e: Emitter, operand: Operand, kind: str) -> str:
    """The bits of a floating-point operand; literals become values of its type."""
    if kind == "bf16" and isinstance(operand, Imm) and (operand.bits is None or operand.width != 16):
        return const("i16", int(encode(np.array([float(operand.value)]), "bf16")[0]))
    element = ELEMENT[kind]
    return e.cast(e.read(operand, kind), element, raw(kind))


def write_bits(e: Emitter, operand: Operand, kind: str, bits: str) -> None:
    if kind == "bf16":
        e.write(operand, "b16", bits)
    else:
        e.write(operand, kind, e.cast(bits, raw(kind), ELEMENT[kind]))


def _bits(kind: str) -> int:
    return 32 if kind == "tf32" else FLOATS.get(kind) or INTEGERS[kind]


def _key(c: Conversion) -> tuple[str, ...]:
    return ("cvt", c.target, c.source, c.rounding, c.integral, "_".join(c.flags))


def _read(e: Emitter, operand: Operand, kind: str) -> str:
    return read_bits(e, operand, kind) if kind in FLOATS else e.read(operand, kind)


def _write(e: Emitter, operand: Operand, kind: str, bits: str) -> None:
    if kind in FLOATS:
        write_bits(e, operand, kind, bits)
    else:
        e.write(operand, kind, bits)


def _in_place(e: Emitter, i: Instruction, c: Conversion) -> bool:
    """Write a conversion that is one or two operations of the host. Returns whether it is one."""
    flags = set(c.flags)
    pair = (c.target, c.source)
    if pair == ("f64", "f32") and not flags and not c.integral:
        value = e.convert("fpext", "float", e.read(i.operands[1], "f32"), "double")
        e.write(i.operands[0], "f64", canonical(e, "f64", value))
    elif pair == ("f32", "f64") and not flags and c.rounding == "rn" and not c.integral:
        value = e.convert("fptrunc", "double", e.read(i.operands[1], "f64"), "float")
        e.write(i.operands[0], "f32", canonical(e, "f32", value))
    elif pair == ("s32", "f32") and c.integral and flags <= {"ftz"}:
        value = e.read(i.operands[1], "f32")
        value = flush(e, value) if flags else value
        name = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[c.integral]
        value = e.intrinsic(name, "float", value)
        result = e.call(vec("i32"), "llvm.fptosi.sat.v32i32.v32f32", (vec("float"), value))
        e.write(i.operands[0], "s32", result)
    elif c.source in _NATIVE and c.target in ("f32", "f64") and c.rounding == "rn" and not flags - {"ftz"}:
        operation = "sitofp" if is_signed(c.source) else "uitofp"
        value = e.read(i.operands[1], c.source)
        e.write(i.operands[0], c.target, e.convert(operation, ELEMENT[c.source], value, VALUE[c.target]))
    else:
        return False
    return True


def _integer_to_integer(e: Emitter, c: Conversion, value: str) -> str:
    have, want = ELEMENT[c.source], ELEMENT[c.target]
    if "sat" in c.flags:
        value = _clamp(e, value, c.source, c.target)
    if BITS[have] == BITS[want]:
        return value
    if BITS[have] > BITS[want]:
        return e.convert("trunc", have, value, want)
    return e.convert("sext" if is_signed(c.source) else "zext", have, value, want)


def _clamp(e: Emitter, value: str, source: str, target: str) -> str:
    """Into the range of the target, as far as the source can leave it."""
    have = f"i{INTEGERS[source]}"
    (low, high), (own_low, own_high) = limits(target), limits(source)
    sign = "s" if is_signed(source) else "u"
    if own_high > high:
        value = e.intrinsic(f"{sign}min", have, value, const(have, high))
    if own_low < low:
        value = e.intrinsic("smax", have, value, const(have, low))
    return value


def _pack_integers(e: Emitter, i: Instruction, c: Conversion) -> None:
    """cvt.pack: a and b saturated side by side, b lower; what is above them comes from the low end of c."""
    size = int(c.target[1:])
    a, b = (_clamp(e, e.read(o, c.source), c.source, c.target) for o in i.operands[1:3])
    mask = const("i32", (1 << size) - 1)
    both = e.v32("or", e.v32("shl", e.v32("and", a, mask), const("i32", size)), e.v32("and", b, mask))
    if len(i.operands) > 3:
        both = e.v32("or", both, e.v32("shl", e.read(i.operands[3], "b32"), const("i32", 2 * size)))
    e.write(i.operands[0], "b32", both)


def _convert_packed(e: Emitter, i: Instruction, c: Conversion) -> None:
    """Two numbers at once: from two f32 registers or one packed register."""
    width = storage(c.target, c.target_count)
    if c.target_count == 1:
        raise Unsupported("this conversion of packed numbers")
    if c.source_count == 1:
        values = [(vec("i32"), read_bits(e, o, "f32")) for o in i.operands[1:3]]
    else:
        source = storage(c.source, c.source_count)
        values = [(vec(f"i{source}"), e.read(i.operands[1], f"b{source}"))]
    key = ("cvt2", c.target, c.source, c.rounding, "_".join(c.flags), c.source_count)
    e.write(i.operands[0], f"b{width}", e.helper(key, vec(f"i{width}"), *values))
