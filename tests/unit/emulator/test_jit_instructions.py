"""Single instructions in the compiled engine: the interpreter's cases, and what else only the engine must get right."""

from fractions import Fraction

import numpy as np
import pytest
from ptx_lanes import NUMPY, lanes
from reference.interpreter.interpreter import interpret
from test_interpreter import CASES

from ppt_gpu.emulator.run.run import run

NAN_BITS = {"f4": 0x7FFFFFFF, "f8": 0xFFF8000000000000}


def columns(rows):
    return [list(column) for column in zip(*(row[:-1] for row in rows), strict=True)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace("%", ""))
def test_same_bits_as_the_interpreter(case):
    body, inputs, output, rows = case[:4]
    compiled = lanes(body, inputs.split(), output, *columns(rows), run=run)
    plain = lanes(body, inputs.split(), output, *columns(rows), run=interpret)
    assert compiled.tobytes() == plain.tobytes()


def special_values(kind):
    """Corner values of a type, every pair of which is tried."""
    name = NUMPY[kind]
    if np.dtype(name).kind == "f":
        info = np.finfo(name)
        values = [0.0, -0.0, 1.0, -1.5, 3.25, np.inf, -np.inf, np.nan, float(info.max), float(info.tiny),
                  float(info.smallest_subnormal), -float(info.tiny) / 2, 0.1, 1e5]  # fmt: skip
    else:
        info = np.iinfo(name)
        values = [0, 1, 2, 3, 7, 31, 32, 33, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 3]
        values += [-1, -2, -33] if info.min else []
    return values


BINARY = [
    f"{op}.{kind} %d, %a, %b;"
    for kind in ("s32", "u32", "s64", "u64", "s16", "u16")
    for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max")
]
BINARY += [f"{op}.{kind} %d, %a, %b;" for kind in ("b32", "b64", "b16") for op in ("and", "or", "xor")]
FLOAT = ("add", "sub", "mul", "div.rn", "min", "max")
BINARY += [f"{op}.{kind} %d, %a, %b;" for kind in ("f32", "f64") for op in FLOAT]
BINARY += [f"{op}.{r}.f32 %d, %a, %b;" for op in ("add", "sub", "mul", "div") for r in ("rz", "rm", "rp")]
BINARY += [f"{op}.ftz.f32 %d, %a, %b;" for op in ("add", "mul", "min")]
BINARY += ["add.sat.f32 %d, %a, %b;", "copysign.f32 %d, %a, %b;", "add.rm.f64 %d, %a, %b;", "mul.rp.f64 %d, %a, %b;"]


@pytest.mark.parametrize("body", BINARY)
def test_pairs_of_corner_values(body):
    kind = body.split()[0].split(".")[-1]
    values = special_values(kind)
    left = [a for a in values for _ in values]
    right = [b for _ in values for b in values]
    same_in_both(body, [kind, kind], kind, left, right)


UNARY = [
    ("popc.b32", "b32", "u32"), ("popc.b64", "b64", "u32"), ("clz.b32", "b32", "u32"), ("clz.b64", "b64", "u32"),
    ("brev.b32", "b32", "b32"), ("brev.b64", "b64", "b64"), ("bfind.u32", "u32", "u32"), ("bfind.s64", "s64", "u32"),
    ("neg.s32", "s32", "s32"), ("abs.s64", "s64", "s64"), ("not.b64", "b64", "b64"), ("cnot.b32", "b32", "b32"),
    ("sqrt.rn.f32", "f32", "f32"), ("sqrt.rz.f32", "f32", "f32"), ("sqrt.rp.f64", "f64", "f64"),
    ("rcp.rn.f32", "f32", "f32"), ("rcp.rm.f32", "f32", "f32"), ("abs.ftz.f32", "f32", "f32"),
    ("cvt.rzi.s32.f32", "f32", "s32"), ("cvt.rni.u32.f64", "f64", "u32"), ("cvt.rmi.s64.f32", "f32", "s64"),
    ("cvt.rpi.u64.f64", "f64", "u64"), ("cvt.rn.f32.f64", "f64", "f32"), ("cvt.rz.f32.f64", "f64", "f32"),
    ("cvt.rm.f32.s32", "s32", "f32"), ("cvt.rn.f32.u64", "u64", "f32"), ("cvt.rn.f64.s64", "s64", "f64"),
    ("cvt.sat.s16.s32", "s32", "s16"), ("cvt.sat.u16.s64", "s64", "u16"), ("cvt.s64.s32", "s32", "s64"),
    ("cvt.rn.f16.f32", "f32", "f16"), ("cvt.rn.f16.f64", "f64", "f16"), ("cvt.f32.f16", "f16", "f32"),
    ("cvt.rn.bf16.f32", "f32", "bf16"), ("cvt.rni.f32.f32", "f32", "f32"), ("cvt.rzi.ftz.f32.f32", "f32", "f32"),
    ("cvt.sat.f32.f32", "f32", "f32"), ("cvt.rzi.s16.f32", "f32", "s16"),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "source", "target"), UNARY, ids=[case[0] for case in UNARY])
def test_corner_values(opcode, source, target):
    same_in_both(f"{opcode} %d, %a;", [source], target, special_values(source))


TERNARY = ["fma.rn.f32", "fma.rz.f32", "fma.rm.f32", "fma.rp.f32", "fma.rn.ftz.f32", "fma.rn.sat.f32"]
TERNARY += ["mad.lo.s32", "mad.hi.u32", "sad.s32", "bfe.s32", "bfe.u32"]
TERNARY += ["shf.l.clamp.b32", "shf.r.wrap.b32", "prmt.b32"]


@pytest.mark.parametrize("opcode", TERNARY)
def test_triples_of_corner_values(opcode):
    kind = opcode.split(".")[-1]
    values = special_values(kind)[:10]
    triples = [(a, b, c) for a in values for b in values for c in values]
    same_in_both(f"{opcode} %d, %a, %b, %c;", [kind] * 3, kind, *(list(c) for c in zip(*triples, strict=True)))


def test_fma_of_f64_rounds_once():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 256))
    c = -a * b * rng.choice([1.0, 1 + 2.0**-40, 1e-18], 256)  # cancels down to the product's low bits
    got = lanes("fma.rn.f64 %d, %a, %b, %c;", ["f64"] * 3, "f64", a, b, c, run=run)
    assert got.tolist() == [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    huge = float(np.finfo("f8").max)
    got = lanes("fma.rn.f64 %d, %a, %b, %c;", ["f64"] * 3, "f64", [huge], [2.0], [-np.inf], run=run)
    assert got[0] == -np.inf


@pytest.mark.parametrize("opcode", ["div.rz.f64", "div.rm.f64", "div.rp.f64", "sqrt.rm.f64", "sqrt.rz.f64"])
def test_directed_rounding_of_f64(opcode):
    """The result is the nearest one or its neighbour, on the right side of the exact value."""
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 200)) * 2.0 ** rng.integers(-1000, 1000, (2, 200))
    a, b = np.append(a, [5e-324, 2e-308, 1e-310]), np.append(b, [3.0, 1e5, 7e-320])
    if opcode.startswith("sqrt"):
        a, b = np.abs(a), np.ones(len(a))
        got = lanes(f"{opcode} %d, %a;", ["f64"], "f64", a, run=run)
        for x, g in zip(a, got, strict=True):
            assert Fraction(g) ** 2 <= Fraction(x) < Fraction(np.nextafter(g, np.inf)) ** 2
        return
    with np.errstate(all="ignore"):
        inside = np.isfinite(a / b)
    a, b = a[inside], b[inside]
    got = lanes(f"{opcode} %d, %a, %b;", ["f64", "f64"], "f64", a, b, run=run)
    for x, y, g in zip(a, b, got, strict=True):
        exact = Fraction(x) / Fraction(y)
        down = opcode.startswith("div.rm") or (opcode.startswith("div.rz") and exact > 0)
        other = np.nextafter(g, np.inf if down else -np.inf)
        if np.isfinite(g) and np.isfinite(other):
            assert Fraction(g) <= exact < Fraction(other) if down else Fraction(other) < exact <= Fraction(g)


@pytest.mark.parametrize("table", [0x00, 0x01, 0x1E, 0x2A, 0x80, 0x96, 0xE8, 0xCA, 0xF0, 0xFE, 0xFF])
def test_lop3(table):
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA
    got = lanes(f"lop3.b32 %d, %a, %b, %c, {table};", ["b32"] * 3, "b32", [a], [b], [c], run=run)
    assert got[0] == int(f"{table:08b}" * 4, 2)


@pytest.mark.parametrize("opcode", ["sin", "cos", "ex2", "lg2", "tanh", "rsqrt"])
def test_special_functions_are_accurate(opcode):
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.uniform(-50, 50, 400), rng.uniform(-1e-3, 1e-3, 100), [0.0, 1.0, -1.0]]).astype("f4")
    if opcode in ("lg2", "rsqrt"):
        values = np.abs(values) + np.float32(1e-6)
    functions = {"ex2": np.exp2, "lg2": np.log2, "rsqrt": lambda x: 1 / np.sqrt(x)}
    want = functions.get(opcode, getattr(np, opcode, None))(values.astype("f8"))
    got = lanes(f"{opcode}.approx.f32 %d, %a;", ["f32"], "f32", values, run=run)
    assert np.all(np.abs(got - want) <= np.spacing(np.abs(want).astype("f4")))


def same_in_both(body, inputs, output, *values):
    """Both engines, in blocks of at most 512 threads."""
    for start in range(0, len(values[0]), 512):
        part = [column[start : start + 512] for column in values]
        compiled = lanes(body, inputs, output, *part, run=run)
        plain = lanes(body, inputs, output, *part, run=interpret)
        if compiled.dtype.kind == "f":
            nan = np.isnan(plain)
            assert np.array_equal(np.isnan(compiled), nan)
            compiled, plain = np.where(nan, 0, compiled), np.where(nan, 0, plain)
        raw = f"u{compiled.dtype.itemsize}"
        wrong = np.flatnonzero(compiled.view(raw) != plain.view(raw))
        assert not len(wrong), [(tuple(column[k] for column in part), compiled[k], plain[k]) for k in wrong[:5]]
