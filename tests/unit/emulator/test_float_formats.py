"""Every format's bits and values against an enumeration in exact fractions, in numpy and in compiled code."""

import ctypes
from fractions import Fraction

import numpy as np
import pytest

from ppt_gpu.emulator.forms.float_formats import FORMATS, ROUNDINGS, decode, encode, to_odd
from ppt_gpu.emulator.jit.compiler import compile  # noqa: F401  (helper functions are registered with it)
from ppt_gpu.emulator.llvm.library import helper_address

SMALL = ["e5m2", "e4m3", "e3m2", "e2m3", "e2m1"]
BITS = {"e5m2": (5, 2), "e4m3": (4, 3), "e3m2": (3, 2), "e2m3": (2, 3), "e2m1": (2, 1), "f16": (5, 10), "bf16": (8, 7),
        "tf32": (8, 10)}  # fmt: skip
LARGEST = {"e5m2": 57344, "e4m3": 448, "e3m2": 28, "e2m3": 7.5, "e2m1": 6, "f16": 65504,
           "bf16": float.fromhex("0x1.FEp127"), "tf32": float.fromhex("0x1.FFCp127")}  # fmt: skip


def numbers(name):
    """[(bits, exact value)] of the format's positive numbers, ascending, by the definition of binary formats."""
    exponents, mantissa = BITS[name]
    bias = 2 ** (exponents - 1) - 1
    found = []
    for bits in range(1 << (exponents + mantissa)):
        e, m = bits >> mantissa, bits & ((1 << mantissa) - 1)
        power = Fraction(2) ** (max(e, 1) - bias - mantissa)
        value = (m + ((1 << mantissa) if e else 0)) * power
        if value <= LARGEST[name]:
            found.append((bits, value))
    return found


def nearest(name, table, x, mode):
    """Bits of the positive fraction x rounded within the format's range, by search."""
    values = [v for _, v in table]
    low = max(i for i, v in enumerate(values) if v <= x)
    if values[low] == x or low + 1 == len(values):
        return table[low][0]
    up = values[low + 1] - x
    down = x - values[low]
    if mode == "rn":
        take_up = up < down or (up == down and table[low][0] & 1)
    else:
        take_up = {"rna": up <= down, "rz": False, "rm": False, "rp": True}[mode]
    return table[low + take_up][0]


def call(key, width, values, dtype):
    """A helper of 32 lanes, called through a shim that passes vectors in memory."""
    from ppt_gpu.emulator.llvm.library import Compiler

    given, result = ("double", f"i{width}") if key[0] == "encode" else (f"i{width}", "float")
    compiler = Compiler(level=0)
    text = f"""define void @shim(ptr %p, ptr %q) {{
  %a = load <32 x {given}>, ptr %p, align 1
  %r = call <32 x {result}> inttoptr (i64 {helper_address(key)} to ptr)(<32 x {given}> %a)
  store <32 x {result}> %r, ptr %q, align 1
  ret void
}}"""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(compiler.add(text, "shim"))
    padded = np.zeros(-(-len(values) // 32) * 32, values.dtype)
    padded[: len(values)] = values
    out = np.zeros(padded.shape, dtype)
    for start in range(0, len(padded), 32):
        function(padded[start:].ctypes.data, out[start:].ctypes.data)
    return out[: len(values)]


def compiled_encode(values, name, mode, saturate):
    width = FORMATS[name].width
    return call(("encode", name, mode, saturate), width, values, f"u{width // 8}").astype(np.uint64)


@pytest.mark.parametrize("name", [*SMALL, "f16", "bf16"])
def test_decode(name):
    table = numbers(name)
    bits = np.array([b for b, _ in table], np.uint64)
    sign = np.uint64(FORMATS[name].sign)
    assert [Fraction(v) for v in decode(bits, name)] == [v for _, v in table]
    assert [Fraction(v) for v in decode(bits | sign, name)] == [-v for _, v in table]
    every = np.arange(min(1 << FORMATS[name].width, 1 << 16), dtype=f"u{FORMATS[name].width // 8}")
    in_code = call(("decode", name), FORMATS[name].width, every, np.float32)
    plain = decode(every.astype(np.uint64), name).astype(np.float32)
    assert np.array_equal(in_code, plain, equal_nan=True)
    assert np.array_equal(np.signbit(in_code), np.signbit(plain)) or np.isnan(plain).any()


def values_for(name):
    """Numbers of the format, midpoints, their neighbours, random ones of every magnitude, and the special ones."""
    rng = np.random.default_rng(5)
    table = [float(v) for _, v in numbers(name)] if name in SMALL else []
    largest = LARGEST[name]
    if not table:
        exponent = rng.uniform(-160 if name != "f16" else -30, 128 if name != "f16" else 17, 2000)
        table = sorted(decode(encode(2.0**exponent, name), name).tolist())
        table = [v for v in table if np.isfinite(v)]
    steps = np.array(table)
    middle = (steps[1:] + steps[:-1]) / 2
    spread = 2.0 ** rng.uniform(-30, 20, 300) * steps.max() / 2.0**10
    special = np.array([largest * 1.01, largest * 1.5, 5e-324, 1e300, np.inf, np.nan, 0.0])
    base = np.concatenate([steps, middle, np.nextafter(middle, 0), np.nextafter(middle, 1e308), spread, special])
    return np.concatenate([base, -base])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_encode_small(name, mode):
    table, values = numbers(name), values_for(name)
    sign = FORMATS[name].sign
    found = encode(values, name, mode, saturate=True)
    for x, bits in zip(values.tolist(), found.tolist(), strict=True):
        if np.isnan(x):
            assert bits == {"e5m2": 0x7F, "e4m3": 0x7F}.get(name, table[-1][0])
            continue
        flipped = {"rm": "rp", "rp": "rm"}.get(mode, mode) if np.signbit(x) else mode
        magnitude = Fraction(abs(x)) if np.isfinite(x) else Fraction(10) ** 9
        assert bits == nearest(name, table, magnitude, flipped) | (sign if np.signbit(x) else 0), x
    assert np.array_equal(compiled_encode(values, name, mode, True), found)


@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "e5m2", "e4m3", "f32"])
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("saturate", [False, True])
def test_compiled_encode_is_the_same(name, mode, saturate):
    values = values_for(name if name != "f32" else "bf16")
    assert np.array_equal(compiled_encode(values, name, mode, saturate), encode(values, name, mode, saturate))


def test_encode_is_what_numpy_does_to_nearest():
    values = np.concatenate([values_for("f16"), values_for("bf16"), np.random.default_rng(1).standard_normal(1000)])
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        assert np.array_equal(encode(values, "f16"), values.astype(np.float16).view(np.uint16).astype(np.uint64))
        assert np.array_equal(encode(values, "f32"), values.astype(np.float32).view(np.uint32).astype(np.uint64))


def test_powers_of_two():
    """ue8m0 as cvt.rz and cvt.rp: powers of two from 2^-127 to 2^127; 0xFF is NaN."""
    cases = [(1.0, 127, 127), (1.5, 127, 128), (-1.5, 127, 128), (2.0**-127, 0, 0), (1.1 * 2.0**-127, 0, 1),
             (0.0, 0, 0), (1e-45, 0, 0), (2.0**127, 254, 254), (1.5 * 2.0**127, 254, 255), (np.inf, 255, 255),
             (np.nan, 255, 255)]  # fmt: skip
    values = np.array([x for x, _, _ in cases])
    for mode, column in (("rz", 1), ("rp", 2)):
        expected = [case[column] for case in cases]
        assert encode(values, "ue8m0", mode).tolist() == expected
        limited = [254 if e == 255 and not np.isnan(x) else e for x, e in zip(values, expected, strict=True)]
        assert encode(values, "ue8m0", mode, saturate=True).tolist() == limited
        for saturate in (False, True):
            assert np.array_equal(compiled_encode(values, "ue8m0", mode, saturate),
                                  encode(values, "ue8m0", mode, saturate))  # fmt: skip
    every = np.arange(256, dtype="u1")
    in_code = call(("decode", "ue8m0"), 8, every, np.float32)
    assert np.array_equal(in_code.astype(float), decode(every.astype(np.uint64), "ue8m0"), equal_nan=True)
    assert in_code[0] == 2.0**-127 and in_code[127] == 1 and np.isnan(in_code[255])


def test_to_odd_rounds_like_the_exact_value():
    """1 + 2^-11 is a tie of f16: the sign of the error decides."""
    tie = np.array([1 + 2.0**-11] * 3)
    odd = to_odd(tie, np.array([-1, 0, 1], np.int8))
    assert encode(odd, "f16").tolist() == [0x3C00, 0x3C00, 0x3C01]
