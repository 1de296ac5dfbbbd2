"""The set `measured`: its kernels compute what they should, and its cases fit them."""

import shutil
from collections import Counter

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.paths import data_dir
from ppt_gpu.inputs import open_workload
from ppt_gpu.validate.silicon import measured, measured_cases, published
from ppt_gpu.validate.silicon.measured import predicted

KERNELS = data_dir("validation") / "measured" / "kernels"

WIDE = ("column_from_x", "tiled16", "micro2x2", "micro4x1")  # sides of 64 bits, no factors


def sgemm(kernel, grid, block):
    n = 128
    a, b, c = np.random.default_rng(7).standard_normal((3, n, n)).astype("f4")
    if kernel in WIDE:
        expected, arguments = a @ b, [a, b, c, *(np.uint64(n),) * 3]
    else:
        expected = 1.5 * (a @ b) + 0.5 * c
        arguments = [*(np.int32(n),) * 3, np.float32(1.5), a, b, np.float32(0.5), c]
    ppt_gpu.launch(KERNELS / "sgemm.ptx", kernel=kernel, grid=grid, block=block, args=arguments)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "grid", "block"),
    [
        ("row_from_x", (4, 4), (32, 32)),
        ("column_from_x", (8, 8), (16, 16)),
        ("coalesced", (4, 4), (1024,)),
        ("shared32", (4, 4), (1024,)),
        ("tiled16", (8, 8), (16, 16)),
        ("micro2x2", (4, 4), (16, 16)),
        ("micro4x1", (8, 2), (16, 16)),
        ("tiling1d", (2, 2), (512,)),
        ("tiling2d", (1, 1), (256,)),
        ("vectorised", (1, 1), (256,)),
    ],
)
def test_matrix_products(kernel, grid, block):
    sgemm(kernel, grid, block)


@pytest.mark.parametrize("kernel", sorted({row["kernel"] for row in measured_cases._table("kepler_microapps")}))
def test_kepler_kernels(kernel):
    n = 64
    (a, b), c = np.random.default_rng(8).random((2, n, n), "f4"), np.zeros((n, n), "f4")
    count, shape = (
        (n, {"grid": (4, 4), "block": (16, 16)}) if kernel != "vectorAdd" else (n * n, {"grid": 16, "block": 256})
    )
    ppt_gpu.launch(KERNELS / "kepler.ptx", kernel=kernel, args=[a, b, c, np.int32(count)], **shape)
    np.testing.assert_allclose(c, a @ b if kernel.startswith("matMul") else a + b, rtol=1e-5)


def test_streams():
    n, k = 1000, 3.0
    b, c = np.random.default_rng(9).random((2, n))
    inner = {
        "init": np.full(n, k),
        "read": np.zeros(n),
        "scale": b * k,
        "triad": b * k + c,
        "stencil3": k * b[:-2] - b[1:-1] + k * b[2:],
        "stencil5": k * b[:-4] + 0.25 * b[1:-3] + 0.5 * b[2:-2] + 0.25 * b[3:-1] + k * b[4:],
    }
    assert set(inner) == {kernel for kernel, _ in measured_cases.STREAMS.values()}
    for kernel, values in inner.items():
        a, edge = np.zeros(n), (n - len(values)) // 2
        arguments = [a, b, c, np.float64(k), np.int64(n)]
        ppt_gpu.launch(KERNELS / "stream.ptx", kernel=kernel, grid=n // 64 + 1, block=64, args=arguments)
        np.testing.assert_allclose(a[edge : n - edge], values, rtol=1e-14)
        assert not a[:edge].any()


def test_every_row_is_a_case_of_its_kernel():
    cases = measured_cases.cases()
    assert Counter(case.set for case in cases) == {"stream": 528, "kepler": 257, "sgemm": 26}
    both = [*cases, *published.cases()]
    assert len({case.title for case in both}) == len(both) > 1000
    for case in both[::37]:
        workload = open_workload(case.path, kernel=case.kernel, grid=case.grid, block=case.block, args=case.args)
        assert workload.launches[0].threads_per_block == np.prod(case.block)


def test_lines_without_a_time_are_launches_of_the_line_above(monkeypatch, tmp_path):
    (tmp_path / "kernels").mkdir()
    shutil.copy(KERNELS / "kepler.ptx", tmp_path / "kernels" / "two.ptx")
    call = "matrix_sum_coalesced,80x80,16x16"
    arguments = ";".join(["f32[1638400]"] * 3 + ["i32=1280"])
    (tmp_path / "two.csv").write_text(
        "gpu,kernel,case,entry,grid,block,args,time_us,set\n"
        f"k20,sum,twice,{call},{arguments},300,\n"
        f"k20,sum,twice,{call},{arguments},,\n"
        f"k20,sum,once,{call},{arguments},150,sm.clock=706 MHz\n"
    )
    folder = measured_cases.folder
    for module in (measured_cases, published):
        monkeypatch.setattr(module, "folder", lambda name="measured": tmp_path if name == "published" else folder(name))
    twice, once = published.cases(["two k20"])
    assert (twice.time, once.time, once.overrides) == (300, 150, ("sm.clock=706 MHz",))
    assert twice.grid == (80, 80, 1) and [one.grid for one in twice.then] == [(80, 80, 1)] and not once.then
    assert predicted(twice).us == pytest.approx(2 * predicted(once).us, rel=1e-9)


def test_a_prediction():
    (row,) = measured.rows(["kepler k20 matrix_sum_coalesced 1280"])
    assert (row.gpu, row.mode, row.unit) == ("k20", "kepler", "us")
    assert abs(row.error) < 0.5  # of an element a thread, read twice and written once
