"""The kernels of published studies (published: attention, textbook, warptiles) compute what they should."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.paths import data_dir

KERNELS = data_dir("validation") / "published" / "kernels"


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype("f4")


def launched(
    file: str, kernel: str, grid: tuple[int, ...], block: tuple[int, ...], *args: object, shared: int = 0
) -> None:
    """Numbers of Python are 32-bit integers."""
    values = [np.int32(arg) if isinstance(arg, int) else arg for arg in args]
    ppt_gpu.launch(KERNELS / f"{file}.ptx", kernel=kernel, grid=grid, block=block, args=values, dynamic_shared=shared)


# --- attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "m", "n", "k"), [("scores", 32, 48, 40), ("weighted", 32, 24, 48)])
def test_products_of_attention(kernel, m, n, k):
    a, b, c = random(m, k), random(*((n, k) if kernel == "scores" else (k, n))), np.zeros((m, n), "f4")
    launched("attention", kernel, (-(-n // 16), -(-m // 16)), (16, 16), a, b, c, m, n, k, np.float32(0.5))
    expected = 0.5 * (a @ b.T) if kernel == "scores" else a @ b
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_softmax_of_rows():
    rows, found = random(3, 700), np.zeros((3, 700), "f4")
    launched("attention", "softmax", (3,), (256,), rows, found, 700)
    powers = np.exp(rows.astype("f8") - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


# --- warptiles: two products of a block of 32 x 64 results and one beside it ------------------------------------------

M, N, K, PRODUCTS = 32, 128, 96, 2


@pytest.mark.parametrize(
    "kernel",
    ["halves_wmma", "halves_matrix", "halves_eights", "halves_half_sums", "halves_three_stages", "halves_elements"],
)
def test_products_of_halves(kernel):
    a, b, c = random(PRODUCTS, M, K).astype("f2"), random(PRODUCTS, K, N).astype("f2"), np.zeros((PRODUCTS, M, N), "f4")
    launched("warptiles", kernel, (N // 64, M // 32, PRODUCTS), (256,), a, b, c, M, N, K)
    tolerance = 0.1 if kernel == "halves_half_sums" else 1e-3
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4"), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", ["bytes_wmma", "bytes_matrix_16", "bytes_matrix_32", "bytes_dots"])
def test_products_of_bytes(kernel):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-128, 128, (PRODUCTS, side, K), "i1") for side in (M, N))
    c = np.zeros((PRODUCTS, M, N), "i4")
    grid, block = ((N // 16, M // 16), (16, 16)) if kernel == "bytes_dots" else ((N // 64, M // 32), (256,))
    launched("warptiles", kernel, (*grid, PRODUCTS), block, a, b, c, M, N, K)
    np.testing.assert_array_equal(c, a.astype("i4") @ b.astype("i4").transpose(0, 2, 1))


# --- textbook ---------------------------------------------------------------------------------------------------------


def test_elements():
    n = 500
    a, b, c, places = random(n), random(n, 1).ravel(), np.zeros(n, "f4"), np.arange(n, dtype="i4")[::-1].copy()
    launched("textbook", "add", (2,), (256,), a, b, c, n)
    np.testing.assert_array_equal(c, a + b)
    launched("textbook", "add_more_to_even", (2,), (256,), a, b, c, n)
    more = np.where(np.arange(n) % 2 == 0, 1e-4 * np.arange(128).sum(), 0)
    np.testing.assert_allclose(c, a + b + more, rtol=1e-4, atol=1e-4)
    launched("textbook", "gather", (2,), (256,), a, places, c, n)
    np.testing.assert_array_equal(c, a[::-1])
    c[:] = 0
    launched("textbook", "copy_eighths", (1,), (256,), a, c, n)
    np.testing.assert_array_equal(c, np.where(np.arange(n) % 8 == 0, a, 0))


@pytest.mark.parametrize(("kernel", "side"), [("transpose", 16), ("transpose_tiled", 32)])
def test_transposes(kernel, side):
    a, b = random(70, 50), np.zeros((50, 70), "f4")
    launched("textbook", kernel, (-(-50 // side), -(-70 // side)), (side, side), a, b, 70, 50)
    np.testing.assert_array_equal(b, a.T)


def test_sums_and_counts():
    n, blocks = 900, 2
    a, b, sums = random(n), random(n, 1).ravel(), np.zeros(blocks, "f4")
    for kernel, operands, terms in (("sum", (a,), a), ("dot", (a, b), a * b)):
        launched("textbook", kernel, (blocks,), (256,), *operands, sums, n, shared=1024)
        np.testing.assert_allclose(sums, [terms[:512].sum(), terms[512:].sum()], rtol=1e-4, atol=1e-4)
    data, counts = np.random.default_rng(4).integers(0, 1000, n, "u4"), np.zeros(256, "u4")
    launched("textbook", "histogram", (2,), (256,), data, n, counts, shared=1024)
    np.testing.assert_array_equal(counts, np.bincount(data % 256, minlength=256))


@pytest.mark.parametrize("taps", [3, 7])
def test_filters(taps):
    image, mask, out = random(40, 50), random(taps, taps), np.zeros((40, 50), "f4")
    launched("textbook", f"filter_{taps}x{taps}", (4, 3), (16, 16), image, mask, out, 40, 50)
    windows = np.lib.stride_tricks.sliding_window_view(image, (taps, taps))
    inside = out[: 41 - taps, : 51 - taps]
    np.testing.assert_allclose(inside, np.einsum("yxij,ij->yx", windows, mask), rtol=1e-4, atol=1e-4)
    assert np.count_nonzero(out) == np.count_nonzero(inside)


@pytest.mark.parametrize(("kernel", "side"), [("product", 16), ("product_tiled", 32)])
def test_products(kernel, side):
    a, b, c = random(40, 40), random(40, 40, 1).reshape(40, 40), np.zeros((40, 40), "f4")
    launched("textbook", kernel, (-(-40 // side),) * 2, (side, side), a, b, c, 40)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
