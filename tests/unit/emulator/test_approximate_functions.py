"""The approximate functions: both engines against NumPy in f64 and the errors that the PTX ISA allows.

Both compute in f64 to about 1e-13 and round once: half a unit in the last place, and the neighbour only where the
exact value is that close to the middle of two. `test_measured_error` is the source of the figure in docs/arithmetic.md.
"""

import numpy as np
import pytest
from ptx_lanes import lanes
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.forms.float_formats import decode, encode
from ppt_gpu.emulator.run.run import run

ENGINES = pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
RNG = np.random.default_rng(3)
WIDE = np.concatenate([RNG.uniform(-20, 20, 400), 2.0 ** RNG.uniform(-40, 20, 200), [0.0, -0.0, 1, 2, -126, 127]])
POSITIVE = 2.0 ** RNG.uniform(-140, 127, 600)
#: opcode -> (function, arguments)
FUNCTIONS = {
    "ex2.approx": (np.exp2, np.concatenate([WIDE, RNG.uniform(-149, 128, 300)])),
    "lg2.approx": (np.log2, POSITIVE),
    "sin.approx": (np.sin, WIDE),
    "cos.approx": (np.cos, WIDE),
    "tanh.approx": (np.tanh, WIDE),
    "rsqrt.approx": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "rcp.approx": (lambda x: 1 / x, POSITIVE),
    "sqrt.approx": (np.sqrt, POSITIVE),
}
INF, NAN = np.inf, np.nan
#: opcode -> [(argument, result)], PTX ISA, tables of subnormal and special inputs
SPECIAL = {
    "ex2.approx": [(-INF, 0.0), (0.0, 1.0), (INF, INF), (-200.0, 0.0), (200.0, INF)],
    "lg2.approx": [(-INF, NAN), (-1.0, NAN), (-0.0, -INF), (0.0, -INF), (1.0, 0.0), (INF, INF), (2.0**-149, -149.0)],
    "sin.approx": [(-INF, NAN), (-0.0, -0.0), (0.0, 0.0), (INF, NAN), (1e-40, 1e-40)],
    "cos.approx": [(-INF, NAN), (-0.0, 1.0), (0.0, 1.0), (INF, NAN)],
    "tanh.approx": [(-INF, -1.0), (-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (-1e-40, -1e-40)],
    "rsqrt.approx": [(-INF, NAN), (-1.0, NAN), (-0.0, -INF), (0.0, INF), (4.0, 0.5), (INF, 0.0)],
    "rcp.approx": [(-INF, -0.0), (-0.0, -INF), (0.0, INF), (INF, 0.0)],
    "sqrt.approx": [(-INF, NAN), (-1.0, NAN), (-0.0, -0.0), (0.0, 0.0), (INF, INF)],
}


def units(found, exact):
    """Distance in units in the last place of f32."""
    with np.errstate(all="ignore"):
        unit = np.exp2(np.maximum(np.floor(np.log2(np.abs(exact))), -126) - 23)
    return np.abs(found.astype(np.float64) - exact) / np.where(np.isfinite(unit), unit, 2.0**-149)


@ENGINES
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_measured_error(engine, opcode):
    function, arguments = FUNCTIONS[opcode]
    x = arguments.astype(np.float32)
    found = lanes(f"{opcode}.f32 %d, %a;", ["f32"], "f32", x, run=engine)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
    inside = np.abs(exact) < 3.4e38
    assert units(found[inside], exact[inside]).max() <= 0.5001


@ENGINES
@pytest.mark.parametrize("opcode", SPECIAL)
def test_special_arguments(engine, opcode):
    x, expected = (np.array(column, np.float32) for column in zip(*SPECIAL[opcode], strict=True))
    found = lanes(f"{opcode}.f32 %d, %a;", ["f32"], "f32", x, run=engine)
    expected = np.where(np.isnan(expected), np.uint32(0x7FFFFFFF), expected.view(np.uint32))
    assert found.view(np.uint32).tolist() == expected.tolist()
    flushed = lanes(f"{opcode}.ftz.f32 %d, %a;" if opcode != "tanh.approx" else "abs.ftz.f32 %d, %a;", ["f32"], "f32",
                    np.array([2.0**-149, -(2.0**-140)], np.float32), run=engine)  # fmt: skip
    assert not ((flushed != 0) & (np.abs(flushed) < 2.0**-126)).any()


@ENGINES
def test_special_functions_agree_bit_for_bit_nearly_always(engine):
    """More often than one in a million they would not be within 1e-13 of a middle."""
    x = np.random.default_rng(4).uniform(-10, 10, 512).astype(np.float32)
    for opcode in ("sin", "cos", "ex2", "tanh"):
        found = lanes(f"{opcode}.approx.f32 %d, %a;", ["f32"], "f32", x, run=engine)
        function = FUNCTIONS[f"{opcode}.approx"][0]
        assert np.array_equal(found, function(x.astype(np.float64)).astype(np.float32))


@ENGINES
@pytest.mark.parametrize(("opcode", "kind"), [("ex2.approx", "f16"), ("ex2.approx.ftz", "bf16"),
                                              ("tanh.approx", "f16"), ("tanh.approx", "bf16")])  # fmt: skip
def test_half_precision_is_rounded_once(engine, opcode, kind):
    bits = np.arange(0, 1 << 16, 37, dtype=np.uint16)
    values = decode(bits.astype(np.uint64), kind)
    with np.errstate(all="ignore"):
        expected = encode((np.exp2 if opcode.startswith("ex2") else np.tanh)(values), kind)
    if "ftz" in opcode:
        tiny = (expected & np.uint64(0x7FFF)) < np.uint64(0x80)
        expected = np.where(tiny, expected & np.uint64(0x8000), expected)
    found = [lanes(f"{opcode}.{kind} %d, %a;", ["b16"], "b16", part, run=engine) for part in np.array_split(bits, 2)]
    assert np.concatenate(found).tolist() == expected.tolist()


@ENGINES
def test_divisions(engine):
    a, b = np.random.default_rng(5).standard_normal((2, 500)).astype(np.float32)
    for form in ("approx", "full"):  # both within 2 units: here rounded to nearest
        found = lanes(f"div.{form}.f32 %d, %a, %b;", ["f32", "f32"], "f32", a, b, run=engine)
        assert np.array_equal(found, a / b)
    a, b = np.array([1.0, -1.0, INF, 3e38], np.float32), np.array([2.0**127, 1.5 * 2.0**126, 2.0**127, INF], np.float32)
    found = lanes("div.approx.f32 %d, %a, %b;", ["f32", "f32"], "f32", a, b, run=engine)
    assert found.view(np.uint32).tolist() == [0, 0x80000000, 0x7FFFFFFF, 0]


@ENGINES
def test_upper_halves_of_doubles(engine):
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and give the upper 32 bits (PTX ISA)."""
    x = np.array([3.0, 1 / 3, 1e-320, INF, -0.0, NAN], np.float64)
    for opcode, function in (("rcp", lambda v: 1 / v), ("rsqrt", lambda v: 1 / np.sqrt(v))):
        found = lanes(f"{opcode}.approx.ftz.f64 %d, %a;", ["f64"], "f64", x, run=engine)
        assert (found.view(np.uint64) & np.uint64(0xFFFFFFFF) == 0).all()
        with np.errstate(all="ignore"):
            near = function(np.where(np.abs(x) < 2.3e-308, np.copysign(0, x), x))
        same = (np.abs(found - near) <= 2.0**-19 * np.abs(near)) | (found == near) | (np.isnan(found) & np.isnan(near))
        assert same.all()
