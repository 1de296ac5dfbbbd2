"""Helper functions for arithmetic that takes many operations: division, special functions.

sin, cos, ex2, lg2 and tanh are series in f64 on a reduced argument, in every lane at once: the same bits on every
host, unlike a C library's. Truncation errors are below 1e-13, far below one f32 unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ppt_gpu.exec.jit_library import Helper, writes
from ppt_gpu.exec.jit_text import BITS, ELEMENT, canonical_nan, const, vec

F, D = vec("float"), vec("double")


class Math(Helper):
    """A function of one f32 vector %x, computed in f64."""

    def __init__(self) -> None:
        super().__init__(F, f"{F} %x")
        self.label("entry")
        self.wide = self.op(f"fpext {F} %x to {D}")

    def f64(self, operation: str, left: str, right: str) -> str:
        return self.binary(operation, "double", left, right)

    def fma(self, a: str, b: str, c: str) -> str:
        return self.intrinsic("fma", "double", a, b, c)

    def choose(self, flags: str, yes: str, no: str) -> str:
        return self.select(flags, "double", yes, no)

    def compare(self, predicate: str, left: str, right: str) -> str:
        return self.op(f"fcmp {predicate} {D} {left}, {right}")

    def horner(self, x: str, coefficients: Sequence[float]) -> str:
        """The polynomial with these coefficients, the constant one first."""
        total = const("double", coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.fma(total, x, const("double", c))
        return total

    def clamp(self, value: str, low: float, high: float) -> str:
        """NaN becomes `low`."""
        value = self.choose(self.compare("ogt", value, const("double", low)), value, const("double", low))
        return self.choose(self.compare("olt", value, const("double", high)), value, const("double", high))

    def give(self, value: str) -> None:
        """Return `value` as f32; a NaN as the canonical one."""
        result = self.op(f"fptrunc {D} {value} to {F}")
        nan = self.op(f"fcmp uno {F} {result}, {result}")
        canonical = self.op(f"bitcast {vec('i32')} {const('i32', canonical_nan(32))} to {F}")
        chosen = self.op(f"select {vec('i1')} {nan}, {F} {canonical}, {F} {result}")
        self.do(f"ret {F} {chosen}")


_HALF_PI_HIGH = 1.5707963267948966
_HALF_PI_LOW = 6.123233995736766e-17
_SIN = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(8)]
_COS = [(-1.0) ** k / math.factorial(2 * k) for k in range(9)]
_EXP = [math.log(2) ** k / math.factorial(k) for k in range(13)]
_LOG = [2 / math.log(2) / (2 * k + 1) for k in range(9)]


def _sine(quarter: int) -> Math:
    """sin(x + quarter pi/2): x = n pi/2 + r, then the sine or cosine of r by n modulo 4."""
    f = Math()
    n = f.intrinsic("rint", "double", f.f64("fmul", f.wide, const("double", 2 / math.pi)))
    minus = f.op(f"fneg {D} {n}")
    r = f.fma(minus, const("double", _HALF_PI_LOW), f.fma(minus, const("double", _HALF_PI_HIGH), f.wide))
    square = f.f64("fmul", r, r)
    sine = f.f64("fmul", r, f.horner(square, _SIN))
    cosine = f.horner(square, _COS)
    bounded = f.clamp(n, -(2.0**62), 2.0**62)
    turn = f.v64("add", f.op(f"fptosi {D} {bounded} to {vec('i64')}"), const("i64", quarter))
    odd = f.v64("icmp ne", f.v64("and", turn, const("i64", 1)), "zeroinitializer")
    minus_sign = f.v64("icmp ne", f.v64("and", turn, const("i64", 2)), "zeroinitializer")
    value = f.choose(odd, cosine, sine)
    value = f.choose(minus_sign, f.op(f"fneg {D} {value}"), value)
    limited = f.clamp(value, -1.0, 1.0)
    infinite = f.compare("oeq", f.intrinsic("fabs", "double", f.wide), const("double", math.inf))
    bad = f.op(f"or {vec('i1')} {infinite}, {f.compare('uno', f.wide, f.wide)}")
    f.give(f.choose(bad, const("double", math.nan), limited))
    return f


@writes("sin")
def write_sin() -> Helper:
    return _sine(0)


@writes("cos")
def write_cos() -> Helper:
    return _sine(1)


def _power_of_two(f: Math, x: str) -> str:
    """2^x for |x| < 1000."""
    n = f.intrinsic("rint", "double", x)
    fraction = f.horner(f.f64("fsub", x, n), _EXP)
    exponent = f.v64("add", f.op(f"fptosi {D} {n} to {vec('i64')}"), const("i64", 1023))
    scale = f.op(f"bitcast {vec('i64')} {f.v64('shl', exponent, const('i64', 52))} to {D}")
    return f.f64("fmul", fraction, scale)


@writes("ex2")
def write_ex2() -> Helper:
    f = Math()
    value = _power_of_two(f, f.clamp(f.wide, -200.0, 200.0))
    f.give(f.choose(f.compare("uno", f.wide, f.wide), f.wide, value))
    return f


@writes("tanh")
def write_tanh() -> Helper:
    """(e^2x - 1) / (e^2x + 1); x itself where that is the nearest f32."""
    f = Math()
    power = _power_of_two(f, f.f64("fmul", f.clamp(f.wide, -20.0, 20.0), const("double", 2 / math.log(2))))
    one = const("double", 1.0)
    value = f.f64("fdiv", f.f64("fsub", power, one), f.f64("fadd", power, one))
    small = f.compare("olt", f.intrinsic("fabs", "double", f.wide), const("double", 1e-4))
    value = f.choose(small, f.wide, value)
    f.give(f.choose(f.compare("uno", f.wide, f.wide), f.wide, value))
    return f


@writes("lg2")
def write_lg2() -> Helper:
    """x = 2^e m with m in [sqrt 1/2, sqrt 2]: e + log2 m, by the series of atanh((m - 1) / (m + 1))."""
    f = Math()
    raw = f.op(f"bitcast {D} {f.wide} to {vec('i64')}")
    exponent = f.v64("sub", f.v64("and", f.v64("lshr", raw, const("i64", 52)), const("i64", 2047)), const("i64", 1023))
    fraction = f.v64("and", raw, const("i64", (1 << 52) - 1))
    mantissa = f.op(f"bitcast {vec('i64')} {f.v64('or', fraction, const('i64', 1023 << 52))} to {D}")
    large = f.compare("ogt", mantissa, const("double", math.sqrt(2)))
    mantissa = f.choose(large, f.f64("fmul", mantissa, const("double", 0.5)), mantissa)
    whole = f.op(f"sitofp {vec('i64')} {exponent} to {D}")
    whole = f.choose(large, f.f64("fadd", whole, const("double", 1.0)), whole)
    one = const("double", 1.0)
    s = f.f64("fdiv", f.f64("fsub", mantissa, one), f.f64("fadd", mantissa, one))
    value = f.fma(s, f.horner(f.f64("fmul", s, s), _LOG), whole)
    value = f.choose(f.compare("oeq", f.wide, const("double", math.inf)), f.wide, value)
    value = f.choose(f.compare("oeq", f.wide, "zeroinitializer"), const("double", -math.inf), value)
    bad = f.compare("ult", f.wide, "zeroinitializer")  # negative or NaN
    f.give(f.choose(bad, const("double", math.nan), value))
    return f


def _integer_division(base: str, kind: str) -> Helper:
    element = ELEMENT[kind]
    v = vec(element)
    signed = kind[0] == "s"
    f = Helper(v, f"{v} %a", f"{v} %b")
    f.label("entry")
    zero = f.op(f"icmp eq {v} %b, zeroinitializer")
    unsafe = zero
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
        negated = f.op(f"sub {v} zeroinitializer, %a")
        quotient = f.op(f"select {vec('i1')} {minus}, {v} {negated}, {v} {quotient}")
    quotient = f.op(f"select {vec('i1')} {zero}, {v} {const(element, -1)}, {v} {quotient}")
    if base == "rem":
        product = f.op(f"mul {v} {quotient}, %b")
        quotient = f.op(f"sub {v} %a, {product}")
    f.do(f"ret {v} {quotient}")
    return f


@writes("div")
def write_div(kind: str) -> Helper:
    return _integer_division("div", kind)


@writes("rem")
def write_rem(kind: str) -> Helper:
    return _integer_division("rem", kind)


@writes("mulhi64")
def write_mul_high(kind: str) -> Helper:
    """The upper 64 bits of the 128-bit product."""
    v, w = vec("i64"), vec("i128")
    extend = "sext" if kind[0] == "s" else "zext"
    f = Helper(v, f"{v} %a", f"{v} %b")
    f.label("entry")
    wide = [f.op(f"{extend} {v} {x} to {w}") for x in ("%a", "%b")]
    product = f.op(f"mul {w} {wide[0]}, {wide[1]}")
    shift = f"<{', '.join(['i128 64'] * 32)}>"
    high = f.op(f"lshr {w} {product}, {shift}")
    f.do(f"ret {v} {f.op(f'trunc {w} {high} to {v}')}")
    return f
