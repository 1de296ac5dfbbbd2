"""Arithmetic that takes many operations: the special functions in f64, and integer division as helper functions.

sin, cos, ex2, lg2 and tanh are series in f64 on a reduced argument, in every lane at once: the same bits on every
host, unlike a C library's. Truncation errors are below 1e-13, far below one f32 unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, Helper, Text, const, vec

D = vec("double")


def fma(t: Text, a: str, b: str, c: str) -> str:
    return t.intrinsic("fma", "double", a, b, c)


def compare(t: Text, predicate: str, left: str, right: str) -> str:
    return t.op(f"fcmp {predicate} {D} {left}, {right}")


def horner(t: Text, x: str, coefficients: Sequence[float]) -> str:
    """The polynomial with these coefficients, the constant one first."""
    total = const("double", coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(t, total, x, const("double", c))
    return total


def clamp(t: Text, value: str, low: float, high: float) -> str:
    """NaN becomes `low`."""
    for predicate, limit in (("ogt", low), ("olt", high)):
        bound = const("double", limit)
        value = t.select(compare(t, predicate, value, bound), "double", value, bound)
    return value


_HALF_PI_HIGH = 1.5707963267948966
_HALF_PI_LOW = 6.123233995736766e-17
_SIN = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(8)]
_COS = [(-1.0) ** k / math.factorial(2 * k) for k in range(9)]
_EXP = [math.log(2) ** k / math.factorial(k) for k in range(13)]
_LOG = [2 / math.log(2) / (2 * k + 1) for k in range(9)]


def _sine(t: Text, x: str, quarter: int) -> str:
    """sin(x + quarter pi/2): x = n pi/2 + r, then the sine or cosine of r by n modulo 4."""
    n = t.intrinsic("rint", "double", t.binary("fmul", "double", x, const("double", 2 / math.pi)))
    minus = t.op(f"fneg {D} {n}")
    r = fma(t, minus, const("double", _HALF_PI_LOW), fma(t, minus, const("double", _HALF_PI_HIGH), x))
    square = t.binary("fmul", "double", r, r)
    sine = t.binary("fmul", "double", r, horner(t, square, _SIN))
    cosine = horner(t, square, _COS)
    bounded = clamp(t, n, -(2.0**62), 2.0**62)
    turn = t.v64("add", t.convert("fptosi", "double", bounded, "i64"), const("i64", quarter))
    odd = t.v64("icmp ne", t.v64("and", turn, const("i64", 1)), "zeroinitializer")
    minus_sign = t.v64("icmp ne", t.v64("and", turn, const("i64", 2)), "zeroinitializer")
    value = t.select(odd, "double", cosine, sine)
    value = t.select(minus_sign, "double", t.op(f"fneg {D} {value}"), value)
    limited = clamp(t, value, -1.0, 1.0)
    if quarter == 0:  # keeps -0
        small = compare(t, "olt", t.intrinsic("fabs", "double", x), const("double", 2.0**-30))
        limited = t.select(small, "double", x, limited)
    infinite = compare(t, "oeq", t.intrinsic("fabs", "double", x), const("double", math.inf))
    bad = t.binary("or", "i1", infinite, compare(t, "uno", x, x))
    return t.select(bad, "double", const("double", math.nan), limited)


def sine(t: Text, x: str) -> str:
    return _sine(t, x, 0)


def cosine(t: Text, x: str) -> str:
    return _sine(t, x, 1)


def _power_of_two(t: Text, x: str) -> str:
    """2^x for |x| < 1000."""
    n = t.intrinsic("rint", "double", x)
    fraction = horner(t, t.binary("fsub", "double", x, n), _EXP)
    exponent = t.v64("add", t.convert("fptosi", "double", n, "i64"), const("i64", 1023))
    scale = t.cast(t.v64("shl", exponent, const("i64", 52)), "i64", "double")
    return t.binary("fmul", "double", fraction, scale)


def exponential(t: Text, x: str) -> str:
    """2^x."""
    value = _power_of_two(t, clamp(t, x, -200.0, 200.0))
    return t.select(compare(t, "uno", x, x), "double", x, value)


def tangent(t: Text, x: str) -> str:
    """The hyperbolic tangent, (e^2x - 1) / (e^2x + 1); x - x^3/3 where that cancels."""
    doubled = t.binary("fmul", "double", clamp(t, x, -20.0, 20.0), const("double", 2 / math.log(2)))
    power, one = _power_of_two(t, doubled), const("double", 1.0)
    value = t.binary("fdiv", "double", t.binary("fsub", "double", power, one), t.binary("fadd", "double", power, one))
    cube = t.binary("fmul", "double", x, t.binary("fmul", "double", x, x))
    near = fma(t, cube, const("double", -1 / 3), x)
    small = compare(t, "olt", t.intrinsic("fabs", "double", x), const("double", 1e-3))
    value = t.intrinsic("copysign", "double", t.select(small, "double", near, value), x)  # keeps -0
    return t.select(compare(t, "uno", x, x), "double", x, value)


def logarithm(t: Text, x: str) -> str:
    """log2 x; x = 2^e m with m in [sqrt 1/2, sqrt 2]: e + log2 m, by the series of atanh((m - 1) / (m + 1))."""
    raw = t.cast(x, "double", "i64")
    exponent = t.v64("sub", t.v64("and", t.v64("lshr", raw, const("i64", 52)), const("i64", 2047)), const("i64", 1023))
    fraction = t.v64("and", raw, const("i64", (1 << 52) - 1))
    mantissa = t.cast(t.v64("or", fraction, const("i64", 1023 << 52)), "i64", "double")
    large = compare(t, "ogt", mantissa, const("double", math.sqrt(2)))
    halved = t.binary("fmul", "double", mantissa, const("double", 0.5))
    mantissa = t.select(large, "double", halved, mantissa)
    whole = t.convert("sitofp", "i64", exponent, "double")
    one = const("double", 1.0)
    whole = t.select(large, "double", t.binary("fadd", "double", whole, one), whole)
    above, below = t.binary("fadd", "double", mantissa, one), t.binary("fsub", "double", mantissa, one)
    s = t.binary("fdiv", "double", below, above)
    value = fma(t, s, horner(t, t.binary("fmul", "double", s, s), _LOG), whole)
    value = t.select(compare(t, "oeq", x, const("double", math.inf)), "double", x, value)
    value = t.select(compare(t, "oeq", x, "zeroinitializer"), "double", const("double", -math.inf), value)
    return t.select(compare(t, "ult", x, "zeroinitializer"), "double", const("double", math.nan), value)


def inverse_root(t: Text, x: str) -> str:
    """1 / sqrt x."""
    return t.binary("fdiv", "double", const("double", 1.0), t.intrinsic("sqrt", "double", x))


#: base opcode -> function of one double, correct to about 1e-13
FUNCTIONS: dict[str, Callable[[Text, str], str]] = {
    "sin": sine,
    "cos": cosine,
    "ex2": exponential,
    "lg2": logarithm,
    "tanh": tangent,
    "rsqrt": inverse_root,
}


@writes("quotient")
def write_quotient(element: str, signed: bool) -> Helper:
    """Rounded toward zero; all ones where the divisor is 0."""
    v = vec(element)
    f = Helper(v, f"{v} %a", f"{v} %b")
    f.label("entry")
    zero = unsafe = f.op(f"icmp eq {v} %b, zeroinitializer")
    if signed:
        minus = f.op(f"icmp eq {v} %b, {const(element, -1)}")
        unsafe = f.op(f"or {vec('i1')} {zero}, {minus}")
    divisor = f.op(f"select {vec('i1')} {unsafe}, {v} {const(element, 1)}, {v} %b")
    if BITS[element] <= 32:  # exact: both fit f64, and a quotient that is no integer is far enough from one
        convert, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
        wide = [f.op(f"{convert} {v} {x} to {D}") for x in ("%a", divisor)]
        quotient = f.op(f"{back} {D} {f.op(f'fdiv {D} {wide[0]}, {wide[1]}')} to {v}")
    else:
        quotient = f.op(f"{'sdiv' if signed else 'udiv'} {v} %a, {divisor}")
    if signed:
        quotient = f.select(minus, element, f.op(f"sub {v} zeroinitializer, %a"), quotient)
    f.do(f"ret {v} {f.select(zero, element, const(element, -1), quotient)}")
    return f
