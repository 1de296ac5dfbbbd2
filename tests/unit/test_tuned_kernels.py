"""Kernels whose whole tuning spaces were measured (published: convolve, hotspot, coulomb) compute what they should."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.paths import data_dir

KERNELS = data_dir("validation") / "published" / "kernels"
SIDE, TAPS, MOST = 4096, 17, 10


@pytest.mark.parametrize(
    ("kernel", "block", "results"),
    [("block16x8_tile2x1", (16, 8), (32, 8)), ("block112x2_tile1x2_padded", (112, 2), (112, 4))],
)
def test_a_filter_of_17_by_17(kernel, block, results, tmp_path):
    rng = np.random.default_rng(11)
    weights = rng.standard_normal((TAPS, TAPS)).astype("f4")
    zeros = f".const .align 4 .b8 weights[{weights.nbytes}];"
    text = (KERNELS / "convolve.ptx").read_text()
    assert zeros in text
    values = ", ".join(str(byte) for byte in weights.tobytes())
    filled = tmp_path / "filled.ptx"
    filled.write_text(text.replace(zeros, f"{zeros[:-1]} = {{{values}}};"))
    image = rng.standard_normal((SIDE + TAPS - 1, SIDE + TAPS - 1)).astype("f4")
    out = np.zeros((SIDE, SIDE), "f4")
    width, height = 3 * results[0], 2 * results[1]
    ppt_gpu.launch(filled, kernel=kernel, grid=(3, 2), block=block, args=[out, image])
    windows = np.lib.stride_tricks.sliding_window_view(image[: height + TAPS - 1, : width + TAPS - 1], (TAPS, TAPS))
    np.testing.assert_allclose(out[:height, :width], np.einsum("yxij,ij->yx", windows, weights), rtol=1e-4, atol=1e-3)
    assert not out[height:].any() and not out[:, width:].any()


@pytest.mark.parametrize(
    ("kernel", "block", "results", "steps"),
    [
        ("block8x8_tile4x1_steps2_by1_kept0", (8, 8), (32, 8), 2),
        ("block8x16_tile4x3_steps4_by2_kept1", (8, 16), (32, 48), 4),
        ("block288x1_tile2x8_steps1_by1_kept0", (288, 1), (576, 8), 1),
    ],
)
def test_steps_of_temperature(kernel, block, results, steps):
    pitch = SIDE + 2 * MOST
    power, before = np.random.default_rng(12).random((2, pitch + MOST, pitch), "f4")
    after = np.zeros((SIDE, SIDE), "f4")
    rx, ry, rz, rate = (np.float32(v) for v in (0.1, 0.2, 0.03, 0.5))
    width, height = 2 * results[0], 2 * results[1]
    ppt_gpu.launch(
        KERNELS / "hotspot.ptx", kernel=kernel, grid=(2, 2), block=block, args=[power, before, after, rx, ry, rz, rate]
    )
    first = MOST - steps
    field, sources = (a[first : first + height + 2 * steps, first : first + width + 2 * steps] for a in (before, power))
    field = field.astype("f8")
    for step in range(1, steps + 1):
        inner = field[1:-1, 1:-1]
        down = field[2:, 1:-1] + field[:-2, 1:-1] - 2 * inner
        across = field[1:-1, 2:] + field[1:-1, :-2] - 2 * inner
        source = sources[step:-step, step:-step]
        field = inner + rate * (source + down * ry + across * rx + (80 - inner) * rz)
    np.testing.assert_allclose(after[:height, :width], field, rtol=1e-4)
    assert not after[height:].any() and not after[:, width:].any()


@pytest.mark.parametrize(
    ("kernel", "deep", "block", "added"),
    [
        ("deep1_unrolled0_apart0", 1, (16, 4), True),
        ("deep8_unrolled2_apart1", 8, (16, 4), True),
        ("deep16_unrolled2_apart0", 16, (32, 2), True),
        ("deep8_unrolled4_apart1_written", 8, (32, 2), False),
    ],
)
def test_the_potential_of_point_charges(kernel, deep, block, added):
    side, count, spacing, rng = 256, 5, np.float32(0.5), np.random.default_rng(13)
    parts = [(8 * rng.random(count)).astype("f4") for _ in range(4)]
    field = rng.random((side, side, side), "f4")
    out, charges = field.copy(), np.stack(parts, axis=1)
    arguments = [charges, *parts, np.int32(count), spacing, np.int32(side), out]
    ppt_gpu.launch(KERNELS / "coulomb.ptx", kernel=kernel, grid=(2, 2, 1), block=(*block, 1), args=arguments)
    width, height = 2 * block[0], 2 * block[1]
    z, y, x = (
        spacing * np.arange(n).reshape(shape) for n, shape in ((deep, (-1, 1, 1)), (height, (-1, 1)), (width, -1))
    )
    sums = sum(w / np.sqrt((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) for a, b, c, w in charges)
    written = out[:deep, :height, :width]
    np.testing.assert_allclose(written, sums + field[:deep, :height, :width] * added, rtol=1e-3)
    out[:deep, :height, :width] = field[:deep, :height, :width]
    np.testing.assert_array_equal(out, field)
