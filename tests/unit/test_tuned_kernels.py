"""The kernels whose whole tuning spaces were measured (published: convolve, hotspot) compute what they should."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.paths import data_dir

KERNELS = data_dir("validation") / "published" / "kernels"
SIDE, TAPS, MOST = 4096, 17, 10
RNG = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("kernel", "block", "results"),
    [("block16x8_tile2x1", (16, 8), (32, 8)), ("block112x2_tile1x2_padded", (112, 2), (112, 4))],
)
def test_a_filter_of_17_by_17(kernel, block, results, tmp_path):
    weights = RNG.standard_normal((TAPS, TAPS)).astype("f4")
    zeros = f".const .align 4 .b8 weights[{weights.nbytes}];"
    text = (KERNELS / "convolve.ptx").read_text()
    assert zeros in text
    values = ", ".join(str(byte) for byte in weights.tobytes())
    filled = tmp_path / "filled.ptx"
    filled.write_text(text.replace(zeros, f"{zeros[:-1]} = {{{values}}};"))
    image = RNG.standard_normal((SIDE + TAPS - 1, SIDE + TAPS - 1)).astype("f4")
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
    power, before = (RNG.random((pitch + MOST, pitch), "f4") for _ in range(2))
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
