"""mma.sync and mma.sp in both engines: the layouts against the ISA's formulas, the sums against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from jit_kernels import check_against_interpreter
from matrix_kernels import case_of, dense_of
from reference.interpreter.matrix_numbers import numbers
from some_examples import one_in

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.matrix_form import MMA_SHAPES, SPARSE_SHAPES, product_of
from ppt_gpu.emulator.forms.matrix_layout import fragment_a, fragment_b, fragment_c, quad_a, quad_c

INTEGERS = ("s8", "u8", "s4", "u4")


def opcodes(table, base):
    found = []
    for kind, shapes in table.items():
        for shape in shapes:
            if kind == "f64":
                found.append(f"{base}.{shape}.row.col.f64.f64.f64.f64")
            elif kind in INTEGERS:
                found += [f"{base}.{shape}.row.col{sat}.s32.{kind}.{kind}.s32" for sat in ("", ".satfinite")]
            elif kind == "b1":
                found += [f"{base}.{shape}.row.col.s32.b1.b1.s32.{op}.popc" for op in ("xor", "and")]
            else:
                found.append(f"{base}.{shape}.row.col.f32.{kind}.{kind}.f32")
            if kind == "f16" or kind in ("e4m3", "e5m2"):
                found.append(f"{base}.{shape}.row.col.f16.{kind}.{kind}.f16")
            if shape == "m8n8k4" and kind == "f16":
                found.append(f"{base}.{shape}.col.row.f32.f16.f16.f32")
    return found


def random_bits(rng, kind, count):
    """Random element bits; finite where the type has numbers that are not."""
    if kind in ("f16", "bf16", "f32", "f64", "tf32"):
        value = rng.normal(size=count) * 2.0 ** rng.integers(-6, 7, count)
        if kind == "f64":
            return value.view("u8")
        if kind == "f16":
            return value.astype("f2").view("u2")
        bits = value.astype("f4").view("u4")
        return bits >> 16 if kind == "bf16" else bits
    width = {"s4": 4, "u4": 4, "b1": 32, "s32": 32, "e3m2": 6, "e2m3": 6}.get(kind, 8)
    bits = rng.integers(0, 1 << width, count)
    if kind == "e2m1":
        return bits & 0x3C
    return bits & 0xBF if kind in ("e4m3", "e5m2") else bits  # below 2, so that sums in f16 do not overflow


def operands(product, seed):
    rng = np.random.default_rng(seed)
    shapes = {"a": (product.fragment_a(), product.a), "b": (product.fragment_b(), product.b)}
    shapes["c"] = (product.fragment_c(product.c), product.c)
    return {name: random_bits(rng, kind, f.elements) for name, (f, kind) in shapes.items()}


def truth(product, dense, columns=None):
    """(exact D, sum of the magnitudes) as float64, or the exact integers. Quads one after another."""
    count = 4 if product.quad else 1
    a, b, c = (numbers(np.asarray(dense[x], "u8"), getattr(product, x)) for x in "abc")
    a = a.reshape(count, product.m, product.steps)
    b = b.reshape(count, product.depth, product.n)
    c = c.reshape(count, product.m, product.n)
    if columns is not None:
        full = np.zeros((1, product.m, product.k), a.dtype)
        np.put_along_axis(full[0], columns, a[0], axis=1)
        a = full
    if product.bits:
        both = (np.bitwise_and if product.bits == "and" else np.bitwise_xor)(a[..., None], b[:, None])
        return np.bitwise_count(both).sum(axis=2) + c, None
    if product.kind == "s32":
        return a @ b + c, None
    return a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c)


def check(product, got, expected, size):
    bits = got.reshape(expected.shape)
    if product.d == "s32":
        low, high = -(1 << 31), (1 << 31) - 1
        exact = np.clip(expected, low, high) if product.saturate else expected
        assert np.array_equal(bits, exact.astype("i8") & 0xFFFFFFFF)
        return
    values = numbers(bits.ravel(), product.d).reshape(expected.shape)
    unit = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11}[product.d]
    small = size < (60000 if product.d == "f16" else np.inf)  # the others may overflow
    assert small.mean() > 0.9
    assert (np.abs(values - expected) <= unit * size * (product.steps + 1))[small].all()


@pytest.mark.parametrize("opcode", opcodes(MMA_SHAPES, "mma.sync.aligned"))
def test_product(opcode):
    product = product_of(opcode)
    dense = operands(product, 7)
    case, fragment = case_of(opcode, dense)
    memory, _ = check_against_interpreter(case)
    expected, size = truth(product, dense)
    check(product, dense_of(fragment, memory.view("d", "u1")), expected, size)


@pytest.mark.parametrize("opcode", opcodes({k: v for k, v in MMA_SHAPES.items() if k in INTEGERS}, "mma.sync.aligned"))
def test_integer_limits(opcode):
    product = product_of(opcode)
    dense = {"a": np.full(product.fragment_a().elements, 0x7F), "b": np.full(product.fragment_b().elements, 0x7F)}
    width = 4 if product.a in ("s4", "u4") else 8
    dense = {name: values & ((1 << width) - 1 >> (product.a[0] == "s")) for name, values in dense.items()}
    dense["c"] = np.full(product.m * product.n, 0x7FFFFFF0)
    case, fragment = case_of(opcode, dense)
    memory, _ = check_against_interpreter(case)
    expected, _ = truth(product, dense)
    check(product, dense_of(fragment, memory.view("d", "u1")), expected, None)


def sparse_metadata(product, rng, selector):
    """(metadata of the 32 lanes, [16, steps] column of each element), straight from the figures of mma.sp."""
    places, brings = product.chunk
    chunks = product.k // places
    codes = np.zeros((16, chunks), int)
    columns = np.zeros((16, chunks, product.steps // chunks), int)
    for row, chunk in np.ndindex(16, chunks):
        if product.a == "tf32":
            chosen = int(rng.integers(2))
            codes[row, chunk] = 0b1110 if chosen else 0b0100
            columns[row, chunk] = 2 * chunk + chosen
            continue
        first, second = sorted(rng.choice(4, 2, replace=False).tolist())
        codes[row, chunk] = first | second << 2
        columns[row, chunk] = [places * chunk + brings * x + y for x in (first, second) for y in range(brings)]
    words = np.zeros(32, np.int64)
    for g in range(8):
        for low, high, chunk in ((g, g + 8, chunk) for chunk in range(chunks)):
            if product.a in ("f16", "bf16", "tf32"):  # 16 bits of each row a lane
                lane = 4 * g + selector * (chunks // 4) + chunk // 4
                words[lane] |= codes[low, chunk] << 4 * (chunk % 4) | codes[high, chunk] << 16 + 4 * (chunk % 4)
            else:  # 32 bits of one row a lane, the upper row in every other lane
                lane = 4 * g + selector * (chunks // 8 * 2) + chunk // 8 * 2
                words[lane] |= codes[low, chunk] << 4 * (chunk % 8)
                words[lane + 1] |= codes[high, chunk] << 4 * (chunk % 8)
    return words, columns.reshape(16, -1)


@pytest.mark.parametrize("opcode", one_in(3, opcodes(SPARSE_SHAPES, "mma.sp::ordered_metadata.sync.aligned")))
def test_sparse_product(opcode):
    rng = np.random.default_rng(8)
    lanes = {"f16": 16, "bf16": 16, "tf32": 8}.get(product_of(opcode).a)
    first = product_of(opcode)
    selectors = 4 // max(1, first.k // lanes) if lanes else 4 // max(1, first.k // first.chunk[0] // 4)
    for selector in range(selectors):
        product = product_of(opcode, selector)
        words, columns = sparse_metadata(product, rng, selector)
        dense = operands(product, 9 + selector)
        case, fragment = case_of(opcode, dense, selector, words)
        memory, _ = check_against_interpreter(case)
        expected, size = truth(product, dense, columns)
        check(product, dense_of(fragment, memory.view("d", "u1")), expected, size)


def test_the_order_of_sums():
    """The stated order: C first, then each exact product, every sum rounded to f32."""
    opcode = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    dense = operands(product_of(opcode), 11)
    case, fragment = case_of(opcode, dense)
    got = dense_of(fragment, case.run()[0].view("d", "u1")).astype("u4").view("f4").reshape(16, 8)
    a, b = (numbers(np.asarray(dense[x], "u8"), "f16").reshape(s) for x, s in (("a", (16, 16)), ("b", (16, 8))))
    c = numbers(np.asarray(dense["c"], "u8"), "f32").reshape(16, 8)
    for m, n in ((0, 0), (5, 3), (15, 7)):
        total = np.float32(c[m, n])
        for k in range(16):
            exact = Fraction(a[m, k]) * Fraction(b[k, n]) + Fraction(float(total))
            near = np.float32(float(exact))
            around = (near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf))
            total = min(around, key=lambda x: distance(x, exact))
        assert got[m, n] == total


def distance(value, exact):
    return abs(Fraction(float(value)) - exact), int(value.view("u4")) & 1


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
def test_infinities_and_nans(kind):
    shape = {"tf32": "m16n8k8", "e4m3": "m16n8k32", "e5m2": "m16n8k32"}.get(kind, "m16n8k16")
    opcode = f"mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32"
    product = product_of(opcode)
    rng = np.random.default_rng(12)
    width = product.fragment_a().bits
    dense = {"a": rng.integers(0, 1 << width, product.fragment_a().elements, dtype="u8")}
    dense["b"] = rng.integers(0, 1 << width, product.fragment_b().elements, dtype="u8")
    dense["c"] = rng.integers(0, 1 << 32, product.m * product.n, dtype="u8")
    check_against_interpreter(case_of(opcode, dense)[0])


def test_layouts_as_the_isa_states_them():
    lane = np.arange(32)
    g, t = lane >> 2, lane % 4
    a = fragment_a(16, 16, 16).place.reshape(8, 32)
    for i in range(8):
        row = g if i < 2 or 4 <= i < 6 else g + 8
        assert np.array_equal(a[i], row * 16 + t * 2 + (i & 1) + (8 if i >= 4 else 0))
    a = fragment_a(16, 32, 8).place.reshape(16, 32)
    for i in range(16):
        row = g if i < 4 or 8 <= i < 12 else g + 8
        assert np.array_equal(a[i], row * 32 + t * 4 + (i & 3) + (16 if i >= 8 else 0))
    b = fragment_b(8, 16, 16).place.reshape(4, 32)
    for i in range(4):
        assert np.array_equal(b[i], (t * 2 + (i & 1) + (8 if i >= 2 else 0)) * 8 + g)
    a = fragment_a(16, 16, 64).place.reshape(8, 32)
    for i in range(8):
        assert np.array_equal(a[i], (g + 8 * (i % 2)) * 16 + i // 2 * 4 + t)
    c = fragment_c(16, 8, 32).place.reshape(4, 32)
    for i in range(4):
        assert np.array_equal(c[i], (g if i < 2 else g + 8) * 8 + t * 2 + (i & 1))
    pair = lane >> 2 & 3
    low = quad_a("row").place.reshape(4, 32)
    sums = quad_c(32).place.reshape(8, 32)
    for i in range(4):
        assert np.array_equal(low[i], pair * 32 + (t + (lane >= 16) * 4) * 4 + i)
    for i in range(8):
        row = (lane & 1) + (i & 2) + (lane >= 16) * 4
        assert np.array_equal(sums[i], pair * 64 + row * 8 + (i & 4) + (lane & 2) + (i & 1))


def test_part_of_a_warp():
    opcode = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    case, _ = case_of(opcode, operands(product_of(opcode), 1))
    case.launch = type(case.launch)(case.launch.kernel, (1, 1, 1), (20, 1, 1), case.launch.arguments)
    with pytest.raises(PptError, match="needs all 32 lanes"):
        case.run()


@pytest.mark.parametrize(
    ("opcode", "reason"),
    [
        ("mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32", "there is no m16n8k64 for f16"),
        ("mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.s32", "f16 cannot be summed in s32"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32", "s8 cannot be multiplied by s4"),
        ("mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0", "scale vectors"),
    ],
)
def test_refused(opcode, reason):
    with pytest.raises(ValueError, match=reason):
        product_of(opcode)


@pytest.mark.parametrize(
    ("form", "selectors"),
    [("m16n8k16.row.col.f32.f16.f16.f32", 4), ("m16n8k32.row.col.f32.f16.f16.f32", 2),
     ("m16n8k8.row.col.f32.tf32.tf32.f32", 4), ("m16n8k16.row.col.f32.tf32.tf32.f32", 2),
     ("m16n8k32.row.col.s32.s8.u8.s32", 2), ("m16n8k64.row.col.s32.s8.s8.s32", 1),
     ("m16n8k64.row.col.s32.u4.u4.s32", 2), ("m16n8k128.row.col.s32.s4.s4.s32", 1),
     ("m16n8k64.row.col.f32.e4m3.e5m2.f32", 1)],
)  # fmt: skip
def test_selectors(form, selectors):
    """The threads that contribute metadata (PTX ISA, "Sparse matrix storage"): one, a pair or all four of a quad."""
    opcode = f"mma.sp::ordered_metadata.sync.aligned.{form}"
    assert product_of(opcode, selectors - 1).selectors == selectors
    with pytest.raises(ValueError, match=f"below {selectors}, not {selectors}"):
        product_of(opcode, selectors)
