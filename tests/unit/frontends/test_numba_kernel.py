"""numba-cuda kernels: arrays, scalars, tuples and records expand to what the compiled kernel reads."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError

cuda = pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.bindings", reason="needs the package numba-cuda[cu13]")


@pytest.fixture(scope="module")
def everything():  # type: ignore[no-untyped-def]
    @cuda.jit
    def kernel(n, flag, half, pair, z, record, matrix, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < n and flag:
            out[i] = matrix[i, 2] + half + pair[0] * pair[1] + z.imag + record["b"]

    return kernel


RECORD = np.array([(1.0, 40)], np.dtype([("a", "f4"), ("b", "i8")], align=True))[0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_kind_of_argument(everything: object, order: str) -> None:
    matrix = np.array(np.arange(24.0).reshape(6, 4), order=order)
    out = np.zeros(6)
    args = [5, True, np.float16(0.5), (2, 1.5), 3 + 4j, RECORD, matrix, out]
    ppt_gpu.launch(everything, grid=1, block=32, args=args)
    assert (out[:5] == matrix[:5, 2] + 0.5 + 3.0 + 4.0 + 40).all() and out[5] == 0


def test_functions_that_the_kernel_calls() -> None:
    @cuda.jit(device=True)
    def power(x, n):  # type: ignore[no-untyped-def]
        r = 1
        for _ in range(n):
            r *= x
        return r

    @cuda.jit(device=True, inline="always")
    def sums(values, i):  # type: ignore[no-untyped-def]
        return power(values[i], 3) + power(values[i], 2)

    @cuda.jit
    def kernel(values, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        out[i] = sums(values, i)

    values, out = np.arange(64), np.zeros(64, np.int64)
    ppt_gpu.launch(kernel, grid=2, block=32, args=[values, out])
    assert (out == values**3 + values**2).all()
    result = ppt_gpu.predict(kernel, "h100", grid=2, block=32, args=[values, out])
    assert result.main.value("kernel.cycles") > 0


def test_prediction_names_the_compiler_and_compiles_for_the_gpu(everything: object) -> None:
    args = [5, True, np.float16(0.5), (2, 1.5), 1j, RECORD, np.zeros((6, 4)), np.zeros(6)]
    result = ppt_gpu.predict(everything, "k40", grid=2, block=32, args=args)
    assert result.workload == "kernel"
    assert any("compiled by numba-cuda" in text for text in result.main.assumptions)
    assert any("the GPU's own" in text for text in result.main.assumptions)


def test_bad_calls(everything: object) -> None:
    with pytest.raises(PptError, match=r"takes 8 \(n, flag, .*\), 1 argument given"):
        ppt_gpu.predict(everything, "a100", grid=1, block=32, args=[1])
    with pytest.raises(PptError, match="numba cannot compile 'kernel'"):
        ppt_gpu.predict(everything, "a100", grid=1, block=32, args=[1, 1, 1, 1, 1, 1, 1, object()])
    with pytest.raises(PptError, match="takes no num_warps"):
        ppt_gpu.predict(everything, "a100", grid=1, num_warps=2)


def test_the_barrier_of_a_grid() -> None:
    """It is in CUDA's device runtime, which is no part of the PTX."""

    @cuda.jit
    def kernel(rows):  # type: ignore[no-untyped-def]
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        for k in range(1, 4):
            rows[k, i] = rows[k - 1, (i + 1) % rows.shape[1]] + 1
            grid.sync()

    rows = np.zeros((4, 256), np.int32)
    rows[0] = np.arange(256)
    ppt_gpu.launch(kernel, grid=4, block=64, args=[rows])
    assert all((rows[k] == np.roll(rows[k - 1], -1) + 1).all() for k in range(1, 4))


def test_half_precision() -> None:
    """Its operators are CUDA C++ in newer versions of numba-cuda, compiled apart."""

    @cuda.jit
    def kernel(x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        y[i] = x[i] * x[i] - x[i]

    x = np.arange(-16, 16).astype(np.float16)
    y = np.zeros_like(x)
    ppt_gpu.launch(kernel, grid=1, block=32, args=[x, y])
    assert (y == x * x - x).all()
