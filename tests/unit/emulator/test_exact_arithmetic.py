"""Floating-point arithmetic and conversions against exact fractions, rounded here by search through the format.

The truth is worked out from the operands' bits with Fraction and knows nothing of either engine. Both are held to it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from ptx_lanes import lanes
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.run.run import run

#: type -> (exponent bits, mantissa bits, canonical NaN)
FORMATS = {"f16": (5, 10, 0x7FFF), "bf16": (8, 7, 0x7FFF), "f32": (8, 23, 0x7FFFFFFF),
           "f64": (11, 52, 0xFFF8000000000000), "tf32": (8, 10, 0x7FFFFFFF)}  # fmt: skip
BITS = {"f16": "b16", "bf16": "b16", "f32": "b32", "f64": "b64", "tf32": "b32"}
ENGINES = pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
MODES = ("rn", "rz", "rm", "rp")


def value_of(bits, kind):
    """A Fraction, or inf, -inf, nan, or -0.0 (of which the fraction has no sign)."""
    e, m, _ = FORMATS[kind]
    sign = -1 if bits >> (e + m) else 1
    exponent, mantissa = bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if exponent == (1 << e) - 1:
        return math.nan if mantissa else sign * math.inf
    if not exponent and not mantissa:
        return Fraction(0) if sign > 0 else -0.0
    whole = mantissa + ((1 << m) if exponent else 0)
    return sign * whole * Fraction(2) ** (max(exponent, 1) - (1 << (e - 1)) + 1 - m)


def rounded(x, kind, mode, negative_zero=False):
    """Bits of the Fraction x rounded to a format: the two neighbours are found, one is chosen."""
    e, m, _ = FORMATS[kind]
    sign = 1 << (e + m)
    if x == 0:
        return sign if negative_zero else 0
    top = sign if x < 0 else 0
    size, least = abs(x), 2 - (1 << (e - 1)) - m
    unit = Fraction(2) ** max(math.floor(math.log2(size.numerator) - math.log2(size.denominator)) - m - 1, least)
    while size / unit >= 1 << (m + 1):
        unit *= 2
    low = size // unit
    rest = size / unit - low
    away = {"rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1), "rna": rest >= Fraction(1, 2),
            "rz": False, "rm": rest > 0 and x < 0, "rp": rest > 0 and x > 0}[mode]  # fmt: skip
    whole = low + away
    infinity = ((1 << e) - 1) << m
    power = unit.numerator.bit_length() - unit.denominator.bit_length()
    found = int(whole) + ((power - least) << m)
    if found >= infinity:
        found = infinity
        if mode == "rz" or (mode == "rm" and x > 0) or (mode == "rp" and x < 0):
            found = infinity - 1
    return top | found


def sample(kind, count, seed):
    """Random bits, small exponents near 1, and the corners of the format."""
    e, m, _ = FORMATS[kind]
    rng = np.random.default_rng(seed)
    width = 1 + e + m
    every = rng.integers(0, 1 << 63, count, dtype=np.uint64) >> np.uint64(63 - width if width < 64 else 0)
    bias = (1 << (e - 1)) - 1
    near = (rng.integers(bias - m, bias + m, count, dtype=np.uint64) << np.uint64(m)) | (
        every & np.uint64((1 << m) - 1)
    )
    near |= (every >> np.uint64(e + m)) << np.uint64(e + m)
    corners = [0, 1, 2, (1 << m) - 1, 1 << m, (1 << m) + 1, bias << m, (bias << m) + 1, (bias << m) - 1,
               (((1 << e) - 1) << m) - 1, ((1 << e) - 1) << m, (((1 << e) - 1) << m) + 1]  # fmt: skip
    corners += [c | 1 << (e + m) for c in corners]
    picked = rng.choice(np.array(corners, np.uint64), count)
    chosen = rng.integers(0, 3, count)
    return np.where(chosen == 0, every, np.where(chosen == 1, near, picked)).tolist()


def finite(*values):
    return all(isinstance(v, Fraction) or v == 0 for v in values)


def exact(operation, values):
    """(Fraction, or nan or infinity; whether a zero result is negative; whether its sign follows the mode)."""
    a, b, *rest = [*values, Fraction(1)] if len(values) == 1 else values
    with np.errstate(all="ignore"):
        floats = [np.float64(-0.0) if isinstance(v, float) and v == 0 else np.float64(math.copysign(min(abs(v), 2), v))
                  if isinstance(v, Fraction) and v else np.float64(v) for v in values]  # fmt: skip
    if operation == "sqrt":
        if a == 0 or not finite(a):
            return (a if a == 0 else math.inf if a == math.inf else math.nan), a == 0 and not isinstance(a, Fraction), 0
        return (math.nan, False, False) if a < 0 else (a, False, False)
    with np.errstate(all="ignore"):
        plain = {"add": lambda: floats[0] + floats[1], "sub": lambda: floats[0] - floats[1],
                 "mul": lambda: floats[0] * floats[1], "div": lambda: floats[0] / floats[1],
                 "fma": lambda: floats[0] * floats[1] + floats[2]}[operation]()  # fmt: skip
    if not finite(*values) or (operation == "div" and b == 0):
        if operation == "fma" and finite(a, b) and math.isinf(values[2]):
            return values[2], False, False
        return float(plain), bool(np.signbit(plain)), False
    x, y = Fraction(a), Fraction(b)
    if operation == "fma":
        total = x * y + Fraction(rest[0])
    else:
        total = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y if y else 0}[operation]
    product_zero = bool(np.signbit(floats[0]) != np.signbit(floats[1]))
    if operation in ("mul", "div"):
        return total, product_zero, False
    left = product_zero if operation == "fma" else bool(np.signbit(floats[0]))
    right = bool(np.signbit(floats[2] if operation == "fma" else floats[1])) != (operation == "sub")
    return total, left and right, left != right


def expected(operation, operands, kinds, kind, mode):
    values = [value_of(bits, k) for bits, k in zip(operands, kinds, strict=True)]
    if any(isinstance(v, float) and math.isnan(v) for v in values):
        return FORMATS[kind][2]
    total, negative, by_mode = exact(operation, values)
    if isinstance(total, float) and math.isnan(total):
        return FORMATS[kind][2]
    e, m, _ = FORMATS[kind]
    if isinstance(total, float) and math.isinf(total):
        return ((1 << e) - 1) << m | (1 << (e + m) if total < 0 else 0)
    if operation == "sqrt" and total != 0:
        return rounded_root(total, kind, mode)
    return rounded(Fraction(total), kind, mode, mode == "rm" if by_mode else negative)


def rounded_root(x, kind, mode):
    """The root to 1200 binary places, and one more that says whether it goes on."""
    shift = 1200
    root = math.isqrt((x.numerator << 2 * shift) // x.denominator)
    inexact = Fraction(root, 1 << shift) ** 2 != x
    return rounded(Fraction(2 * root + inexact, 2 << shift), kind, mode)


CASES = [(op, kind, mode) for kind in ("f32", "f64") for op in ("add", "sub", "mul", "div", "sqrt", "fma")
         for mode in MODES]  # fmt: skip
CASES += [(op, kind, "rn") for kind in ("f16", "bf16") for op in ("add", "sub", "mul", "fma")]
CASES += [("fma", "bf16", mode) for mode in ("rz", "rm", "rp")]  # undocumented; ptxas takes them


@ENGINES
@pytest.mark.parametrize(("operation", "kind", "mode"), CASES)
def test_rounded_once(engine, operation, kind, mode):
    count = {"sqrt": 1, "fma": 3}.get(operation, 2)
    columns = [sample(kind, 200, seed) for seed in range(count)]
    sources = ", ".join(f"%{name}" for name in "abc"[:count])
    found = lanes(f"{operation}.{mode}.{kind} %d, {sources};", [BITS[kind]] * count, BITS[kind], *columns, run=engine)
    for row, bits in zip(zip(*columns, strict=True), found.tolist(), strict=True):
        want = expected(operation, row, [kind] * count, kind, mode)
        assert bits == want, f"{[hex(b) for b in row]}: {bits:#x}, expected {want:#x}"


@ENGINES
@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_mixed_precision(engine, narrow, mode):
    a, b, c = sample(narrow, 200, 1), sample(narrow, 200, 2), sample("f32", 200, 3)
    found = lanes(f"fma.{mode}.f32.{narrow} %d, %a, %b, %c;", ["b16", "b16", "b32"], "b32", a, b, c, run=engine)
    kinds = [narrow, narrow, "f32"]
    assert found.tolist() == [expected("fma", row, kinds, "f32", mode) for row in zip(a, b, c, strict=True)]
    found = lanes(f"sub.{mode}.f32.{narrow} %d, %a, %b;", ["b16", "b32"], "b32", a, c, run=engine)
    assert found.tolist() == [expected("sub", row, [narrow, "f32"], "f32", mode) for row in zip(a, c, strict=True)]


@ENGINES
@pytest.mark.parametrize("packed", ["f16x2", "bf16x2"])
def test_packed_halves(engine, packed):
    kind = packed[:-2]
    columns = [[h << 16 | low for h, low in zip(sample(kind, 100, s), sample(kind, 100, s + 9), strict=True)]
               for s in range(3)]  # fmt: skip
    found = lanes(f"fma.rn.{packed} %d, %a, %b, %c;", ["b32"] * 3, "b32", *columns, run=engine)
    for row, bits in zip(zip(*columns, strict=True), found.tolist(), strict=True):
        for shift in (0, 16):
            part = [x >> shift & 0xFFFF for x in row]
            assert bits >> shift & 0xFFFF == expected("fma", part, [kind] * 3, kind, "rn")


@ENGINES
@pytest.mark.parametrize("mode", MODES)
def test_packed_singles(engine, mode):
    columns = [[h << 32 | low for h, low in zip(sample("f32", 60, s), sample("f32", 60, s + 9), strict=True)]
               for s in range(2)]  # fmt: skip
    found = lanes(f"mul.{mode}.f32x2 %d, %a, %b;", ["b64"] * 2, "b64", *columns, run=engine)
    for row, bits in zip(zip(*columns, strict=True), found.tolist(), strict=True):
        for shift in (0, 32):
            part = [x >> shift & 0xFFFFFFFF for x in row]
            assert bits >> shift & 0xFFFFFFFF == expected("mul", part, ["f32"] * 2, "f32", mode)


CONVERSIONS = [(to, of, mode) for to, of in (("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"),
               ("bf16", "f32"), ("bf16", "f16"), ("f16", "bf16")) for mode in MODES]  # fmt: skip
CONVERSIONS += [("tf32", "f32", mode) for mode in ("rn", "rz", "rna")]
CONVERSIONS += [(to, of, "") for to, of in (("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"),
                                            ("f32", "bf16"))]  # fmt: skip


@ENGINES
@pytest.mark.parametrize(("to", "of", "mode"), CONVERSIONS)
def test_between_formats(engine, to, of, mode):
    column = sample(of, 300, 4)
    found = lanes(f"cvt.{mode}{'.' if mode else ''}{to}.{of} %d, %a;", [BITS[of]], BITS[to], column, run=engine)
    for bits, result in zip(column, found.tolist(), strict=True):
        x = value_of(bits, of)
        e, m, nan = FORMATS[to]
        if isinstance(x, float) and math.isnan(x):
            want = nan
        elif isinstance(x, float) and math.isinf(x):
            want = ((1 << e) - 1) << m | (1 << (e + m) if x < 0 else 0)
            want <<= 13 if to == "tf32" else 0
        else:
            want = rounded(Fraction(x), to, mode or "rn", isinstance(x, float)) << (13 if to == "tf32" else 0)
        assert result == want, f"{bits:#x}: {result:#x}, expected {want:#x}"


@ENGINES
@pytest.mark.parametrize("to", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("of", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", MODES)
def test_from_integers(engine, to, of, mode):
    rng = np.random.default_rng(6)
    bits = int(of[1:])
    low = -(1 << (bits - 1)) if of[0] == "s" else 0
    column = [low, low + 1, 0, 1, low + (1 << bits) - 1, (1 << 24) + 1, (1 << 53 if bits == 64 else 1 << 25) + 1, 65520]
    column += [low + int(rng.integers(0, 1 << 62)) % (1 << bits) >> int(rng.integers(0, bits)) for _ in range(150)]
    found = lanes(f"cvt.{mode}.{to}.{of} %d, %a;", [of], BITS[to], column, run=engine)
    assert found.tolist() == [rounded(Fraction(x), to, mode) for x in column]


@ENGINES
@pytest.mark.parametrize("of", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("to", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_to_integers(engine, of, to, mode):
    """Rounded, saturated; NaN is 0, or the highest bit for f64 or 64-bit integers (PTX ISA, "cvt")."""
    column, bits = sample(of, 200, 5), int(to[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    found = lanes(f"cvt.{mode}.{to}.{of} %d, %a;", [BITS[of]], to, column, run=engine)
    functions = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    for raw, result in zip(column, found.tolist(), strict=True):
        x = value_of(raw, of)
        if isinstance(x, float) and math.isnan(x):
            want = (1 << (bits - 1) if of == "f64" or bits == 64 else 0) - ((1 << bits) if low and bits == 64 else 0)
            want = want - (1 << bits) if low and want >> (bits - 1) == 1 else want
        elif isinstance(x, float) and math.isinf(x):
            want = high if x > 0 else low
        else:
            want = max(low, min(high, functions[mode](Fraction(x))))
        assert result == want, f"{raw:#x}"


@ENGINES
@pytest.mark.parametrize("mode", MODES)
def test_saturated_just_below_one(engine, mode):
    """What rounding to nearest would make 1 is below 1 in the modes that round down."""
    below = 0x3F7FFFFF if mode in ("rz", "rm") else 0x3F800000
    found = lanes(f"sub.{mode}.sat.f32 %d, %a, %b;", ["b32"] * 2, "b32", [0x3F800000], [0x00800000], run=engine)
    assert found.tolist() == [below]
    found = lanes(f"fma.{mode}.sat.f32 %d, %a, %b, %a;", ["b32"] * 2, "b32", [0x3F800000], [0x80800000], run=engine)
    assert found.tolist() == [below]


@ENGINES
def test_bf16_that_cancels_rounding_down_is_negative(engine):
    found = lanes("fma.rm.bf16 %d, %a, %b, %c;", ["b16"] * 3, "b16", [0x3F80, 0], [0x3F80, 0], [0xBF80, 0], run=engine)
    assert found.tolist() == [0x8000, 0]
