"""What cvt says and computes: between integers and floats of every width and format, one number or two, rounded once.

Source: PTX ISA, "cvt", "cvt.pack".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from ppt_gpu.emulator.forms.computes import Form, Unsupported, computes
from ppt_gpu.emulator.forms.float_formats import FORMATS, MANTISSA
from ppt_gpu.emulator.forms.floating import flush, is_nan, rectify, saturate
from ppt_gpu.emulator.forms.integer import into_range
from ppt_gpu.emulator.forms.opcode import WIDTH, is_signed
from ppt_gpu.emulator.forms.value import Value, const, least, node, pick

#: types of one number
INTEGERS = {f"{s}{n}": n for s in "us" for n in (8, 16, 32, 64)}
FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
#: types narrower than a byte that only cvt.pack knows
_SMALL = {f"{s}{n}": n for s in "us" for n in (2, 4)}
_PACKED = re.compile(r"(f16|bf16|e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|s2f6)x([24])")
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")


@dataclass(frozen=True)
class Conversion:
    """`target` and `source` are types of one number; `count` numbers are packed on the packed side, 1 for none."""

    target: str
    source: str
    target_count: int
    source_count: int
    rounding: str  # rn, rz, rm, rp, rna, rs
    integral: str  # rni, rzi, rmi, rpi, or ""
    flags: tuple[str, ...]  # of ftz, sat, satfinite, relu

    @property
    def count(self) -> int:
        return max(self.target_count, self.source_count)


@lru_cache(maxsize=4096)
def conversion(modifiers: tuple[str, ...]) -> Conversion | None:
    """None where the modifiers do not name a target and a source."""
    types: list[tuple[str, int]] = []
    for modifier in modifiers:
        packed = _PACKED.fullmatch(modifier)
        if packed:
            types.append((packed[1], int(packed[2])))
        elif modifier in INTEGERS or modifier in FLOATS or modifier == "tf32" or modifier in _SMALL:
            types.append((modifier, 1))
    if len(types) < 2:
        return None
    (target, target_count), (source, source_count) = types[:2]
    return Conversion(
        target, source, target_count, source_count,
        next((m for m in modifiers if m in ("rn", "rz", "rm", "rp", "rna", "rs")), "rn"),
        next((m for m in modifiers if m in _TO_INTEGER), ""),
        tuple(m for m in ("ftz", "sat", "satfinite", "relu") if m in modifiers),
    )  # fmt: skip


def storage(name: str, count: int) -> int:
    """Bits of the register that holds `count` packed numbers of a format."""
    return {"e2m1": 4}.get(name, FLOATS.get(name, 8)) * count


def refusal(c: Conversion) -> str:
    """Why a conversion is not executed; "" where it is."""
    if c.rounding == "rs":
        return "stochastic rounding (.rs): the manual shows its use of the random bits in figures only"
    if "s2f6" in (c.target, c.source):
        return "the fixed-point type .s2f6x2"
    return ""


def not_a_number(source: str, target: str) -> int:
    """What a NaN becomes as an integer of type `target` (PTX ISA, "cvt")."""
    bits = INTEGERS[target]
    return 1 << (bits - 1) if source == "f64" or bits == 64 else 0


def limits(target: str) -> tuple[int, int]:
    """Least and largest value of an integer type, also of 2 and 4 bits."""
    bits = int(target[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target[0] == "s" else (0, (1 << bits) - 1)


#: integers that the host converts itself
_NATIVE = ("s16", "u16", "s32", "u32", "s64", "u64")


def conversion_of(form: Form) -> Conversion:
    found = conversion(form.opcode.order)
    if found is None:
        raise Unsupported("a conversion without types")
    reason = refusal(found)
    if found.count > 1 and found.target_count == 1:
        reason = reason or "this conversion of packed numbers"
    if reason:
        raise Unsupported(reason)
    return found


def types(form: Form) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the operands, and of the result."""
    c = conversion_of(form)
    if form.has("pack"):
        return (c.source, c.source, "b32"), ("b32",)
    if c.count > 1:
        sources = (c.source,) * 2 if c.source_count == 1 else (f"b{storage(c.source, c.source_count)}",)
        return sources, (f"b{storage(c.target, c.target_count)}",)
    return (c.source,), (c.target,)


def is_long(form: Form) -> bool:
    """All but conversions of integers and what is one or two operations of the host."""
    c = conversion_of(form)
    flags = set(c.flags)
    if c.count > 1:
        return True
    if c.source in INTEGERS:
        return c.target not in INTEGERS and not (
            c.source in _NATIVE and c.target in ("f32", "f64") and c.rounding == "rn" and flags <= {"ftz"}
        )
    if (c.target, c.source) == ("s32", "f32"):
        return not c.integral or not flags <= {"ftz"}
    return bool(flags or c.integral) or c.rounding != "rn" or {c.target, c.source} != {"f32", "f64"}


@computes("cvt", operands=types, apart=is_long)
@computes("cvt", operands=types, floats=True, apart=is_long)
def convert(form: Form, a: Value, b: Value | None = None, c: Value | None = None) -> Value:
    """Of two f32 registers the first gives the upper number."""
    how = conversion_of(form)
    if b is not None and c is not None:
        return pack(how, a, b, c)
    if how.count == 1:
        return one(how, a)
    size = storage(how.source, 1)
    numbers = (b, a) if b is not None else tuple(a.bits(at, size) for at in (0, size))
    width = storage(how.target, 2)
    low, high = (one(how, x.resize(_width(how.source))).resize(width // 2).resize(width) for x in numbers)
    return high << width // 2 | low


def _width(kind: str) -> int:
    """Bits in which a number of a type or format is held."""
    return FORMATS[kind].width if kind in FORMATS else WIDTH[kind]


def pack(c: Conversion, a: Value, b: Value, rest: Value) -> Value:
    """a and b saturated side by side, b lower; what is above them comes from the low end of the rest."""
    size = int(c.target[1:])
    a, b = (_clamp(x, c.source, c.target) & ((1 << size) - 1) for x in (a, b))
    return rest << 2 * size | a << size | b if 2 * size < 32 else a << size | b


def _clamp(x: Value, source: str, target: str) -> Value:
    """Into the range of the target, as far as the source can leave it."""
    (low, high), (own_low, own_high) = limits(target), limits(source)
    if own_low == 0:
        return least(x, high) if own_high > high else x
    return into_range(x, max(low, own_low), min(high, own_high))


def one(c: Conversion, x: Value) -> Value:
    """One number."""
    if c.source in INTEGERS and c.target in INTEGERS:
        x = _clamp(x, c.source, c.target) if "sat" in c.flags else x
        return x.resize(INTEGERS[c.target], is_signed(c.source))
    if c.source in INTEGERS:
        return _finish(c, node(f"itofp.{c.source}.{c.target}.{c.rounding}", _width(c.target), x))
    if "ftz" in c.flags and c.source == "f32":
        x = flush(x, "f32")
    if c.target in INTEGERS:
        return _to_integer(c, x)
    if "relu" in c.flags and c.target not in MANTISSA:
        x = rectify(x, c.source)
    if c.source != c.target or c.integral:
        saturates = ".satfinite" if "satfinite" in c.flags else ""
        x, held = _integral(c, x)
        x = node(f"fcvt.{held}.{c.target}.{c.rounding}{saturates}", _width(c.target), x) if held != c.target else x
    return _finish(c, x)


def _integral(c: Conversion, x: Value) -> tuple[Value, str]:
    """(rounded to an integer where the instruction says so, the type in which it is)."""
    if not c.integral:
        return x, c.source
    held = "f64" if c.source == "f64" else "f32"
    if c.source != held:
        x = node(f"fcvt.{c.source}.{held}.rn", WIDTH[held], x)
    return node(f"fround.{held}.{c.integral}", WIDTH[held], x), held


def _to_integer(c: Conversion, x: Value) -> Value:
    """Rounded, then saturated to the range of the type."""
    number, held = _integral(replace(c, integral=c.integral or "rzi"), x)
    found = node(f"fptoi.{held}.{c.target}", INTEGERS[c.target], number)
    nothing = not_a_number(c.source, c.target)
    return pick(is_nan(number, held), const(nothing, found.width), found) if nothing else found


def _finish(c: Conversion, x: Value) -> Value:
    if c.target not in MANTISSA:
        return x
    if "sat" in c.flags:
        x = saturate(x, c.target)
    if "relu" in c.flags:
        x = rectify(x, c.target)
    return flush(x, "f32") if "ftz" in c.flags and c.target == "f32" else x
