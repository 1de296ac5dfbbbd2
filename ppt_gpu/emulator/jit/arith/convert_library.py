"""Helper functions for conversions that involve floating-point formats: exact, rounded once.

Every source is held exactly by an f64, but for 64-bit integers, whose f64 is rounded to odd where that does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.conversions import FLOATS, INTEGERS, not_a_number, storage
from ppt_gpu.emulator.forms.float_formats import FORMATS
from ppt_gpu.emulator.jit.arith.float_values import (
    canonical,
    flush_bits,
    in_double,
    is_nan,
    raw,
    rectify,
    saturate,
    values_of,
)
from ppt_gpu.emulator.jit.arith.formats import decode, encode, narrow
from ppt_gpu.emulator.jit.arith.rounded import rounded
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, Text, const, vec

_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil", "": "trunc"}


def _width(kind: str) -> int:
    return 32 if kind == "tf32" else FLOATS.get(kind) or INTEGERS[kind]


@writes("cvt")
def write_convert(target: str, source: str, rounding: str, integral: str, flags: str) -> Helper:
    """One number: bits of `source` in, bits of `target` out."""
    result = vec(f"i{_width(target)}")
    f = Helper(result, f"{vec(f'i{_width(source)}')} %a")
    f.label("entry")
    words = flags.split("_")
    if source in INTEGERS:
        bits = _from_integer(f, "%a", source, target, rounding, words)
    elif target in INTEGERS:
        bits = _to_integer(f, "%a", source, target, integral, words)
    else:
        bits = _between_floats(f, "%a", source, target, rounding, integral, words)
    f.do(f"ret {result} {bits}")
    return f


def _between_floats(
    t: Text, bits: str, source: str, target: str, rounding: str, integral: str, flags: Sequence[str]
) -> str:
    if "ftz" in flags and source == "f32":
        bits = flush_bits(t, source, bits)
    if source == target and not integral and not set(flags) & {"sat", "relu"}:
        return bits
    if target != "f64" and source != "f64" and not integral and not set(flags) & {"sat", "satfinite"}:
        quick = _quick(t, values_of(t, source, bits), target, rounding, flags)
        if quick:
            return quick
    value = in_double(t, source, values_of(t, source, bits))
    if integral:
        value = t.intrinsic(_INTEGRAL[integral], "double", value)
    return to_float(t, value, target, rounding, flags)


def _quick(t: Text, value: str, target: str, rounding: str, flags: Sequence[str]) -> str:
    """The bits of f32 values in `target` where few operations give them, else ""."""
    if "relu" in flags:
        value = rectify(t, "float", value)
    if target == "f32":
        bits = t.cast(canonical(t, "f32", value), "float", "i32")
        return flush_bits(t, "f32", bits) if "ftz" in flags else bits
    return narrow(t, target, value) if target in ("f16", "bf16") and rounding == "rn" else ""


def to_float(t: Text, value: str, target: str, rounding: str, flags: Sequence[str]) -> str:
    """Doubles rounded to the bits of a format, saturated as the flags say."""
    if "sat" in flags:
        value = saturate(t, "double", value)
    if "relu" in flags:
        value = rectify(t, "double", value)
    if target == "f64":
        return t.cast(canonical(t, "f64", value), "double", "i64")
    bits = encode(t, value, target, rounding, "satfinite" in flags)
    return flush_bits(t, "f32", bits) if "ftz" in flags and target == "f32" else bits


def _to_integer(t: Text, bits: str, source: str, target: str, integral: str, flags: Sequence[str]) -> str:
    """Rounded, then saturated to the range of the type."""
    if "ftz" in flags and source == "f32":
        bits = flush_bits(t, source, bits)
    value = in_double(t, source, values_of(t, source, bits))
    value = t.intrinsic(_INTEGRAL[integral], "double", value)
    width = INTEGERS[target]
    name = f"llvm.fpto{'s' if target[0] == 's' else 'u'}i.sat.v32i{width}.v32f64"
    result = t.call(vec(f"i{width}"), name, (vec("double"), value))
    return t.select(is_nan(t, "double", value), f"i{width}", const(f"i{width}", not_a_number(source, target)), result)


def _from_integer(t: Text, bits: str, source: str, target: str, rounding: str, flags: Sequence[str]) -> str:
    element, signed = f"i{INTEGERS[source]}", source[0] == "s"
    operation = "sitofp" if signed else "uitofp"
    if target == "f64" and "sat" not in flags:
        if INTEGERS[source] < 64:  # exact; processors without this conversion would give -0 for 0 where they round down
            value = t.convert(operation, element, bits, "double")
        else:
            value = rounded(t, operation, rounding, element, bits, target="double")
        return t.cast(value, "double", raw("f64"))
    if INTEGERS[source] < 64:
        value = t.convert(operation, element, bits, "double")
    else:
        value = _odd(t, bits, signed)
    return to_float(t, value, target, rounding, flags)


def _odd(t: Text, bits: str, signed: bool) -> str:
    """A 64-bit integer as a double, rounded to odd: its 53 highest bits, the last one set if others were lost."""
    negative = t.v64("icmp slt", bits, "zeroinitializer")
    magnitude = bits
    if signed:
        magnitude = t.select(negative, "i64", t.v64("sub", "zeroinitializer", bits), bits)
    low = t.v64("and", magnitude, const("i64", 0x7FF))
    sticky = t.convert("zext", "i1", t.v64("icmp ne", low, "zeroinitializer"), "i64")
    cut = t.v64("xor", magnitude, low)
    cut = t.v64("or", cut, t.v64("shl", sticky, const("i64", 11)))
    large = t.v64("icmp uge", magnitude, const("i64", 1 << 53))
    value = t.convert("uitofp", "i64", t.select(large, "i64", cut, magnitude), "double")
    return t.select(negative, "double", t.op(f"fneg {vec('double')} {value}"), value) if signed else value


@writes("cvt2")
def write_convert_packed(target: str, source: str, rounding: str, flags: str, source_count: int) -> Helper:
    """Two numbers of `source`, in two registers (source_count 1: the upper one first) or packed, to packed `target`."""
    width, words = storage(target, 2), flags.split("_")
    element = f"i{width}"
    inputs = [32, 32] if source_count == 1 else [storage(source, 2)]
    f = Helper(vec(element), *(f"{vec(f'i{n}')} %a{k}" for k, n in enumerate(inputs)))
    f.label("entry")
    total = ""
    for place in (0, 1):  # the lower number first
        if source_count == 1:
            bits = f"%a{1 - place}"
        else:
            size = storage(source, 1)
            bits = f.binary("lshr", f"i{2 * size}", "%a0", const(f"i{2 * size}", place * size)) if place else "%a0"
            bits = _resize(f, bits, 2 * size, FORMATS[source].width)
        if source == "e2m1":
            bits = f.binary("and", "i8", bits, const("i8", 15))
        value = decode(f, source, bits)
        found = "" if "satfinite" in words else _quick(f, value, target, rounding, words)
        found = found or to_float(f, f.convert("fpext", "float", value, "double"), target, rounding, words)
        found = _resize(f, found, FORMATS[target].width, width)
        size = storage(target, 1)
        total = (
            f.binary("or", element, total, f.binary("shl", element, found, const(element, size))) if place else found
        )
    f.do(f"ret {vec(element)} {total}")
    return f


def _resize(t: Text, bits: str, have: int, want: int) -> str:
    if have == want:
        return bits
    return t.convert("trunc" if have > want else "zext", f"i{have}", bits, f"i{want}")
