"""The floating-point formats of PTX in compiled code: bits to values and back, exact, 32 lanes at once.

The same algorithms as `float_formats`, where the formats are described; that module is the reference.
"""

from __future__ import annotations

import math

from ppt_gpu.emulator.forms.float_formats import FORMATS, Format
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, Helper, Text, const, vec

D, W = vec("double"), vec("i64")
_INFINITE = 0x7FF << 52


def decode(t: Text, name: str, bits: str) -> str:
    """The f32 values of <32 x iN> `bits`, N the width of the format's storage. Exact: every format fits into f32."""
    f = FORMATS[name]
    raw = bits if f.width == 32 else t.convert("zext", f"i{f.width}", bits, "i32")
    if name == "f32":
        return t.cast(raw, "i32", "float")
    if name == "f16":
        return t.convert("fpext", "half", t.cast(bits, "i16", "half"), "float")
    if name == "tf32":
        return t.cast(t.v32("and", raw, const("i32", -(1 << 13))), "i32", "float")
    if name == "bf16":
        return t.cast(t.v32("shl", raw, const("i32", 16)), "i32", "float")
    if name == "ue8m0":
        value = t.v32("shl", raw, const("i32", 23))
        lowest = t.v32("icmp eq", raw, "zeroinitializer")
        value = t.select(lowest, "i32", const("i32", 1 << 22), value)  # 2^-127
        nan = t.v32("icmp eq", raw, const("i32", 255))
        return t.cast(t.select(nan, "i32", const("i32", 0x7FFFFFFF), value), "i32", "float")
    return _decode_small(t, f, raw)


def _decode_small(t: Text, f: Format, raw: str) -> str:
    """The magnitude as a tiny f32, scaled up: subnormals of the format come out right without a special case."""
    magnitude = t.v32("and", raw, const("i32", f.sign - 1))
    tiny = t.cast(t.v32("shl", magnitude, const("i32", 23 - f.mantissa)), "i32", "float")
    value = t.binary("fmul", "float", tiny, const("float", 2.0 ** (127 - f.bias)))
    if f.infinity is not None:
        infinite = t.v32("icmp eq", magnitude, const("i32", f.infinity))
        value = t.select(infinite, "float", const("float", math.inf), value)
    found = t.cast(value, "float", "i32")
    if f.nan is not None:
        limit = f.infinity if f.infinity is not None else f.largest
        nan = t.v32("icmp ugt", magnitude, const("i32", limit))
        found = t.select(nan, "i32", const("i32", 0x7FFFFFFF), found)
    up = 31 - (f.sign.bit_length() - 1)
    sign = t.v32("and", t.v32("shl", raw, const("i32", up)), const("i32", -(1 << 31)))
    return t.cast(t.v32("or", found, sign), "i32", "float")


def to_odd(t: Text, value: str, error: str, element: str = "double") -> str:
    """A value that rounds like the exact one; `error` has the sign of (exact - value), or is 0 (or NaN)."""
    raw = f"i{BITS[element]}"
    bits = t.cast(value, element, raw)
    even = t.binary("icmp eq", raw, t.binary("and", raw, bits, const(raw, 1)), "zeroinitializer")
    wrong = t.binary("fcmp one", element, error, "zeroinitializer")
    below, positive = (
        t.binary("fcmp " + p, element, v, "zeroinitializer") for p, v in (("olt", error), ("ogt", value))
    )
    step = t.select(t.binary("xor", "i1", below, positive), raw, const(raw, 1), const(raw, -1))
    finite = t.binary("fcmp one", element, t.intrinsic("fabs", element, value), const(element, math.inf))
    move = t.binary("and", "i1", t.binary("and", "i1", even, wrong), finite)
    return t.cast(t.binary("add", raw, bits, t.select(move, raw, step, "zeroinitializer")), raw, element)


def narrow(t: Text, name: str, value: str) -> str:
    """<32 x i16> bits of f32 values rounded to nearest even to f16 or bf16: `encode`, but quick."""
    nan = t.op(f"fcmp uno {vec('float')} {value}, {value}")
    if name == "f16":
        bits = t.cast(t.convert("fptrunc", "float", value, "half"), "half", "i16")
    else:
        raw = t.cast(value, "float", "i32")
        odd = t.v32("and", t.v32("lshr", raw, const("i32", 16)), const("i32", 1))
        up = t.v32("add", t.v32("add", raw, const("i32", 0x7FFF)), odd)
        bits = t.convert("trunc", "i32", t.v32("lshr", up, const("i32", 16)), "i16")
    return t.select(nan, "i16", const("i16", 0x7FFF), bits)


def encode(t: Text, value: str, name: str, mode: str = "rn", saturate: bool = False) -> str:
    """<32 x iN> bits of <32 x double> values, rounded once; see `float_formats.encode`."""
    f = FORMATS[name]
    raw = t.cast(value, "double", "i64")
    magnitude = t.v64("and", raw, const("i64", (1 << 63) - 1))
    if name == "ue8m0":
        found = _encode_power(t, magnitude, mode, saturate)
    else:
        found = _encode(t, f, raw, magnitude, mode, saturate)
    return t.convert("trunc", "i64", found, f"i{f.width}")


def _encode(t: Text, f: Format, raw: str, magnitude: str, mode: str, saturate: bool) -> str:
    negative = t.v64("icmp slt", raw, "zeroinitializer")
    bits = _rounded(t, f, magnitude, negative, mode)
    if f.pad:
        bits = t.v64("shl", bits, const("i64", f.pad))
    infinite = t.v64("icmp eq", magnitude, const("i64", _INFINITE))
    over = t.binary("or", "i1", infinite, t.v64("icmp ugt", bits, const("i64", f.largest)))
    bits = t.select(over, "i64", _overflow(t, f, mode, saturate, negative, infinite), bits)
    bits = t.v64("or", bits, t.select(negative, "i64", const("i64", f.sign), "zeroinitializer"))
    nan = t.v64("icmp ugt", magnitude, const("i64", _INFINITE))
    return t.select(nan, "i64", const("i64", f.largest if f.nan is None else f.nan), bits)


def _rounded(t: Text, f: Format, magnitude: str, negative: str, mode: str) -> str:
    """Exponent and mantissa of the result, as if the exponent had no end."""
    exponent = t.v64("lshr", magnitude, const("i64", 52))
    fraction = t.v64("and", magnitude, const("i64", (1 << 52) - 1))
    subnormal = t.v64("icmp eq", exponent, "zeroinitializer")
    implicit = t.select(subnormal, "i64", "zeroinitializer", const("i64", 1 << 52))
    significand = t.v64("or", fraction, implicit)
    exponent = t.v64("sub", t.intrinsic("umax", "i64", exponent, const("i64", 1)), const("i64", 1023 - f.bias))
    above = t.intrinsic("smax", "i64", exponent, const("i64", 1))
    shift = t.v64("add", t.v64("sub", above, exponent), const("i64", 52 - f.mantissa))
    shift = t.intrinsic("smin", "i64", shift, const("i64", 62))
    kept = t.v64("lshr", significand, shift)
    lead = t.v64("shl", t.v64("sub", above, const("i64", 1)), const("i64", f.mantissa))
    total = t.v64("add", lead, kept)
    if mode == "rz":
        return total
    one = t.v64("shl", const("i64", 1), shift)
    rest = t.v64("and", significand, t.v64("sub", one, const("i64", 1)))
    if mode in ("rm", "rp"):
        lost = t.v64("icmp ne", rest, "zeroinitializer")
        side = negative if mode == "rm" else t.binary("xor", "i1", negative, const("i1", 1))
        up = t.binary("and", "i1", lost, side)
    else:
        half = t.v64("lshr", one, const("i64", 1))
        up = t.v64("icmp uge" if mode == "rna" else "icmp ugt", rest, half)
        if mode == "rn":
            odd = t.convert("trunc", "i64", kept, "i1")
            tie = t.v64("icmp eq", rest, half)
            up = t.binary("or", "i1", up, t.binary("and", "i1", tie, odd))
    return t.v64("add", total, t.convert("zext", "i1", up, "i64"))


def _overflow(t: Text, f: Format, mode: str, saturate: bool, negative: str, infinite: str) -> str:
    beyond = f.infinity if f.infinity is not None else f.nan if f.nan is not None else f.largest
    outside = const("i64", f.largest if saturate else beyond)
    if mode in ("rn", "rna"):
        return outside
    inward = t.binary("xor", "i1", infinite, const("i1", 1))
    if mode == "rp":
        inward = t.binary("and", "i1", inward, negative)
    elif mode == "rm":
        inward = t.binary("and", "i1", inward, t.binary("xor", "i1", negative, const("i1", 1)))
    return t.select(inward, "i64", const("i64", f.largest), outside)


def _encode_power(t: Text, magnitude: str, mode: str, saturate: bool) -> str:
    exponent = t.v64("sub", t.v64("lshr", magnitude, const("i64", 52)), const("i64", 1023 - 127))
    if mode == "rp":
        fraction = t.v64("and", magnitude, const("i64", (1 << 52) - 1))
        more = t.v64("icmp ne", fraction, "zeroinitializer")
        exponent = t.v64("add", exponent, t.convert("zext", "i1", more, "i64"))
    low = t.v64("icmp ule", magnitude, const("i64", (1023 - 127) << 52))
    exponent = t.select(low, "i64", "zeroinitializer", exponent)
    exponent = t.intrinsic("smin", "i64", exponent, const("i64", 254 if saturate else 255))
    nan = t.v64("icmp ugt", magnitude, const("i64", _INFINITE))
    return t.select(nan, "i64", const("i64", 255), exponent)


@writes("decode")
def write_decode(name: str) -> Helper:
    """decode as a helper function: <32 x float> (<32 x iN>)."""
    f = Helper(vec("float"), f"{vec(f'i{FORMATS[name].width}')} %a")
    f.label("entry")
    f.do(f"ret {vec('float')} {decode(f, name, '%a')}")
    return f


@writes("encode")
def write_encode(name: str, mode: str, saturate: bool) -> Helper:
    """encode as a helper function: <32 x iN> (<32 x double>)."""
    kind = vec(f"i{FORMATS[name].width}")
    f = Helper(kind, f"{D} %a")
    f.label("entry")
    f.do(f"ret {kind} {encode(f, '%a', name, mode, saturate)}")
    return f
