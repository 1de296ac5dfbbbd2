"""cvt: between integers and floats of every width."""

from __future__ import annotations

from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits
from ppt_gpu.exec.jit_float import flush, round_directed
from ppt_gpu.exec.jit_text import BITS, ELEMENT, const, vec
from ppt_gpu.exec.jit_types import Opcode, is_float, is_signed, parts
from ppt_gpu.ptx.module import Instruction

_ROUND_TO_INTEGER = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_NARROW = ("bf16", "f16x2", "bf16x2", "tf32")


@emits("cvt")
def emit_convert(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    if len(p.types) != 2 or p.has("relu", "satfinite", "pack"):
        raise Unsupported("this conversion")
    target, source = p.types
    if target in ("f16x2", "bf16x2"):
        return _pack_halves(e, i, p)
    if (target in _NARROW and target != "bf16") or (source in _NARROW and source != "bf16"):
        raise Unsupported("this conversion")
    value = e.read(i.operands[1], source)
    if source == "bf16":
        value, source = bf16_to_float(e, value), "f32"
    if source == "f32" and p.has("ftz"):
        value = flush(e, value)
    if target == "bf16":
        if source != "f32" or p.rounding not in ("rn", "rz"):
            raise Unsupported("this conversion to bf16")
        e.write(i.operands[0], "bf16", float_to_bf16(e, value, p.rounding))
        return
    e.write(i.operands[0], target, _convert(e, p, value, source, target))


def _convert(e: Emitter, p: Opcode, value: str, source: str, target: str) -> str:
    if is_float(source):
        if is_float(target):
            return _float_to_float(e, p, value, source, target)
        return _float_to_integer(e, p, value, source, target)
    if is_float(target):
        return _integer_to_float(e, p, value, source, target)
    return _integer_to_integer(e, p, value, source, target)


def _integer_to_integer(e: Emitter, p: Opcode, value: str, source: str, target: str) -> str:
    have, want = ELEMENT[source], ELEMENT[target]
    if p.has("sat"):
        value = _clamp(e, value, source, target)
    if BITS[have] == BITS[want]:
        return value
    if BITS[have] > BITS[want]:
        return e.convert("trunc", have, value, want)
    return e.convert("sext" if is_signed(source) else "zext", have, value, want)


def _clamp(e: Emitter, value: str, source: str, target: str) -> str:
    """Into the range of the target, as far as the source can leave it."""
    have, bits = ELEMENT[source], BITS[ELEMENT[target]]
    signed = is_signed(target)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    own_bits = BITS[have]
    own_low = -(1 << (own_bits - 1)) if is_signed(source) else 0
    own_high = (1 << (own_bits - 1 if is_signed(source) else own_bits)) - 1
    sign = "s" if is_signed(source) else "u"
    if own_high > high:
        over = e.op(f"icmp {sign}gt {vec(have)} {value}, {const(have, high)}")
        value = e.select(over, have, const(have, high), value)
    if own_low < low:
        under = e.op(f"icmp {sign}lt {vec(have)} {value}, {const(have, low)}")
        value = e.select(under, have, const(have, low), value)
    return value


def _float_to_integer(e: Emitter, p: Opcode, value: str, source: str, target: str) -> str:
    """Rounds, then saturates; NaN gives 0."""
    have, want = ELEMENT[source], ELEMENT[target]
    if have == "half":
        value, have = e.convert("fpext", have, value, "float"), "float"
    if not p.integer_rounding:
        raise Unsupported("a conversion to integer without rounding")
    value = e.intrinsic(_ROUND_TO_INTEGER[p.integer_rounding], have, value)
    name = f"llvm.fpto{'s' if is_signed(target) else 'u'}i.sat.v32{want}.v32{'f32' if have == 'float' else 'f64'}"
    return e.call(vec(want), name, (vec(have), value))


def _integer_to_float(e: Emitter, p: Opcode, value: str, source: str, target: str) -> str:
    have, want = ELEMENT[source], ELEMENT[target]
    operation = "sitofp" if is_signed(source) else "uitofp"
    if p.rounding == "rn":
        if want == "half":
            wide = e.convert(operation, have, value, "float")  # exact as far as f16 reaches
            return e.convert("fptrunc", "float", wide, "half")
        return e.convert(operation, have, value, want)
    if BITS[have] > 32 or want == "half":
        raise Unsupported(f"rounding .{p.rounding} from .{source} to .{target}")
    wide = e.convert(operation, have, value, "double")  # exact
    return wide if want == "double" else round_directed(e, p.rounding, wide, "zeroinitializer")


def _float_to_float(e: Emitter, p: Opcode, value: str, source: str, target: str) -> str:
    have, want = ELEMENT[source], ELEMENT[target]
    if p.integer_rounding:
        value = e.intrinsic(_ROUND_TO_INTEGER[p.integer_rounding], have, value)
    if BITS[have] < BITS[want]:
        value = e.convert("fpext", have, value, want)
    elif BITS[have] > BITS[want]:
        if p.rounding == "rn" and (have, want) == ("double", "half"):
            value = e.convert("fptrunc", "float", _odd_float(e, value), "half")
        elif p.rounding == "rn":
            value = e.convert("fptrunc", have, value, want)
        elif (have, want) == ("double", "float"):
            value = round_directed(e, p.rounding, value, "zeroinitializer")
        else:
            raise Unsupported(f"rounding .{p.rounding} to .{target}")
    if want == "float" and p.has("ftz"):
        value = flush(e, value)
    return _saturate(e, want, value) if p.has("sat") else value


def _odd_float(e: Emitter, value: str) -> str:
    """f64 rounded to f32 so that a further rounding gives what one rounding would (Boldo and Melquiond 2008).

    Toward zero, and the last bit set where that lost something.
    """
    cut = round_directed(e, "rz", value, "zeroinitializer")
    inexact = e.op(f"fcmp une {vec('double')} {e.convert('fpext', 'float', cut, 'double')}, {value}")
    sticky = e.convert("zext", "i1", inexact, "i32")
    nan = e.op(f"fcmp uno {vec('double')} {value}, {value}")
    odd = e.cast(e.v32("or", e.cast(cut, "float", "i32"), sticky), "i32", "float")
    return e.select(nan, "float", e.convert("fptrunc", "double", value, "float"), odd)


def _saturate(e: Emitter, element: str, value: str) -> str:
    one = const(element, 1.0)
    above = e.op(f"fcmp ogt {vec(element)} {value}, zeroinitializer")
    value = e.select(above, element, value, "zeroinitializer")
    return e.select(e.op(f"fcmp olt {vec(element)} {value}, {one}"), element, value, one)


def bf16_to_float(e: Emitter, value: str) -> str:
    raw = e.v32("shl", e.convert("zext", "i16", value, "i32"), const("i32", 16))
    return e.cast(raw, "i32", "float")


def float_to_bf16(e: Emitter, value: str, rounding: str) -> str:
    """The upper half, rounded to nearest even or cut; NaN stays NaN."""
    raw = e.cast(value, "float", "i32")
    kept = raw
    if rounding == "rn":
        odd = e.v32("and", e.v32("lshr", raw, const("i32", 16)), const("i32", 1))
        kept = e.v32("add", e.v32("add", raw, const("i32", 0x7FFF)), odd)
    nan = e.op(f"fcmp uno {vec('float')} {value}, {value}")
    kept = e.select(nan, "i32", const("i32", 0x7FFF0000), kept)
    return e.convert("trunc", "i32", e.v32("lshr", kept, const("i32", 16)), "i16")


def _pack_halves(e: Emitter, i: Instruction, p: Opcode) -> None:
    """d = {a in the upper half, b in the lower half}."""
    if p.types[1] != "f32" or len(i.operands) != 3 or p.rounding not in ("rn", "rz"):
        raise Unsupported("this packed conversion")
    halves = []
    for operand in i.operands[1:3]:
        value = e.read(operand, "f32")
        if p.types[0] == "bf16x2":
            half = float_to_bf16(e, value, p.rounding)
        elif p.rounding == "rn":
            half = e.cast(e.convert("fptrunc", "float", value, "half"), "half", "i16")
        else:
            raise Unsupported("rounding .rz to f16x2")
        halves.append(e.convert("zext", "i16", half, "i32"))
    e.write(i.operands[0], "b32", e.v32("or", e.v32("shl", halves[0], const("i32", 16)), halves[1]))
