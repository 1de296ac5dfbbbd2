"""The kernels of boards without other rows (published: bigsums, guide, matvec, oneword, registertiles, rownorms)."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.paths import data_dir

KERNELS = data_dir("validation") / "published" / "kernels"


def random(*shape: int, seed: int = 8) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype("f4")


def launched(file: str, kernel: str, grid: object, block: object, *args: object, shared: int = 0) -> None:
    """Numbers of Python are 32-bit integers."""
    values = [np.int32(arg) if isinstance(arg, int) else arg for arg in args]
    ppt_gpu.launch(KERNELS / f"{file}.ptx", kernel=kernel, grid=grid, block=block, args=values, dynamic_shared=shared)


def in_half(values: np.ndarray) -> np.ndarray:
    """As bfloat16, to the nearest even, in 16 bits."""
    bits = values.astype("f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


def from_half(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("u4") << 16).view("f4")


def softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows.astype("f8") - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# --- rownorms ---------------------------------------------------------------------------------------------------------

#: of the kernel's name: rows of a block, threads
FORMS = {
    "by_thread": (16, 16),
    "by_warp": (8, 256),
    "by_warp_wide": (8, 256),
    "by_block": (1, 256),
    "in_registers": (1, 256),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["floats", "halves"])
def test_norms(kind, form):
    rows, columns = 16, 8192 if form == "in_registers" else 520
    x, weight = random(rows, columns), random(columns)
    if kind == "halves":
        x, weight = in_half(x), in_half(weight)
    out = np.zeros_like(x)
    of_block, threads = FORMS[form]
    launched(
        "rownorms", f"norm_{kind}_{form}", rows // of_block, threads, x, weight, out, rows, columns, np.float32(1e-6)
    )
    if kind == "halves":
        x, weight, out = from_half(x), from_half(weight), from_half(out)
    expected = x / np.sqrt((x.astype("f8") ** 2).mean(axis=1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(out, expected, rtol=1e-2 if kind == "halves" else 1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("form", "of_block", "threads"),
    [("by_thread", 8, 8), ("by_warp", 4, 128), ("by_block", 1, 256), ("in_registers", 1, 512)],
)
@pytest.mark.parametrize("kind", ["floats", "halves"])
def test_softmax(kind, form, of_block, threads):
    rows, columns = 8, 16384 if form == "in_registers" else 520
    x = random(rows, columns)
    if kind == "halves":
        x = in_half(x)
    out = np.zeros_like(x)
    launched("rownorms", f"softmax_{kind}_{form}", rows // of_block, threads, x, out, rows, columns)
    if kind == "halves":
        x, out = from_half(x), from_half(out)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-2 if kind == "halves" else 1e-4, atol=1e-9)


@pytest.mark.parametrize("form", ["", "_wide"])
@pytest.mark.parametrize("kind", ["floats", "halves"])
def test_gates(kind, form):
    n = 1027
    gate, up = random(n), random(n, seed=9)
    if kind == "halves":
        gate, up = in_half(gate), in_half(up)
    out = np.zeros_like(gate)
    launched("rownorms", f"gate_{kind}{form}", 1 if form else 5, 256, gate, up, out, np.int64(n))
    if kind == "halves":
        gate, up, out = from_half(gate), from_half(up), from_half(out)
    expected = gate / (1 + np.exp(-gate.astype("f8"))) * up
    np.testing.assert_allclose(out, expected, rtol=1e-2 if kind == "halves" else 1e-4, atol=1e-6)


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "tile", "block"),
    [
        ("product", 16, (16, 16)),
        ("product_tiled", 32, (32, 32)),
        ("product_registers", 128, 256),
        ("product_copied", 128, 256),
    ],
)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 24), (70, 150, 19)])
def test_products_with_guards(kernel, tile, block, m, n, k):
    a, b, c = random(m, k), random(k, n), np.zeros((m, n), "f4")
    launched("registertiles", kernel, (-(-n // tile), -(-m // tile)), block, a, b, c, m, n, k)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", ["product", "product_tiled"])
def test_products_of_the_guide(kernel):
    m, n, k = 32, 64, 48
    a, b, c = random(m, k), random(k, n), np.zeros((m, n), "f4")
    width = (k,) if kernel == "product_tiled" else ()
    launched("guide", kernel, (n // 16, m // 16), (16, 16), *width, k, a, n, b, n, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


# --- matvec -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "grid", "block"),
    [("row_a_thread", 2, 32), ("row_a_warp", 40, 32), ("row_a_block", 40, 64), ("row_a_block_wide", 40, 64)],
)
def test_matrix_vector_products(kernel, grid, block):
    matrix, vector, result = random(40, 264), random(264), np.zeros(40, "f4")
    launched("matvec", kernel, grid, block, matrix, vector, result, 40, 264, shared=8)
    np.testing.assert_allclose(result, matrix @ vector, rtol=1e-4, atol=1e-4)


def test_softmax_of_float4():
    rows, out = random(3, 1000), np.zeros((3, 1000), "f4")
    launched("matvec", "softmax_wide", 3, 128, rows, out, 3, 1000, shared=128)
    np.testing.assert_allclose(out, softmax(rows), rtol=1e-4, atol=1e-9)


# --- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["sum_tree", "sum_last_warp", "sum_atomic", "sum_twelve", "sum_twelve_shuffles"])
def test_sums_of_integers(kernel):
    each = 512 * 12 if "twelve" in kernel else 512
    count, own = each + 100, "tree" in kernel or "last" in kernel
    numbers, sums = np.random.default_rng(8).integers(0, 100, count, "i4"), np.zeros(2 if own else 1, "i4")
    launched("bigsums", kernel, 2, 512, numbers, sums, np.uint64(count))
    np.testing.assert_array_equal(sums, [numbers[:each].sum(), numbers[each:].sum()] if own else [numbers.sum()])


@pytest.mark.parametrize(("kernel", "kind"), [("add_floats", "f4"), ("add_doubles", "f8")])
def test_sums_in_one_word(kernel, kind):
    numbers, total = np.random.default_rng(8).random(70, "f4"), np.zeros(1, kind)
    launched("oneword", kernel, 2, 64, np.uint32(3), np.uint32(70), numbers, total)
    np.testing.assert_allclose(total, [3 * numbers.astype("f8").sum()], rtol=1e-5)
