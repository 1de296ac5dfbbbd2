"""Triton kernels: specialisation as at a launch, constexprs, hidden parameters, block and shared memory."""

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402


@triton.jit
def scaled(out, x, factor, stride, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = False):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i * stride, mask=i < n) * factor
    if TWICE:
        value += value
    tl.store(out + i, value, mask=i < n)


@triton.jit
def row_sums(out, x, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out + row, tl.sum(tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS)), axis=0))


@pytest.mark.parametrize("stride", [1, 2, 16])
@pytest.mark.parametrize("twice", [False, True])
def test_integers_are_specialised_and_constexprs_passed(stride: int, twice: bool) -> None:
    x = np.arange(100 * stride, dtype=np.float32)
    out = np.zeros(100, np.float32)
    call = {"grid": lambda meta: (-(-meta["n"] // meta["BLOCK"]),), "num_warps": 2}
    ppt_gpu.launch(scaled, **call, args=[out, x, 0.5, stride, 100, 64, twice])
    assert (out == x[::stride] * (1.0 if twice else 0.5)).all()
    by_name = {"out": out, "x": x, "factor": 2.0, "stride": stride, "n": 100, "BLOCK": 64}
    ppt_gpu.launch(scaled, **call, args=by_name)
    assert (out == x[::stride] * 2).all()


def test_warps_shared_memory_and_compiler_are_in_the_result() -> None:
    x, out = np.ones((8, 1024), np.float32), np.zeros(8, np.float32)
    ppt_gpu.launch(row_sums, grid=8, args=[out, x, 1024], num_warps=8)
    assert (out == 1024).all()
    result = ppt_gpu.predict(row_sums, "a100", grid=8, args=[out, x, 1024], num_warps=8)
    assert result.main.extra["block"] == [256, 1, 1]
    assert result.main.value("kernel.shared") > 0
    assert any("with 8 warps a block" in text for text in result.main.assumptions)


BAD = {
    "no grid": ({"args": [1]}, "needs grid"),
    "missing": ({"grid": 1, "args": [1, 2]}, "needs factor, stride, n, BLOCK"),
    "surplus": ({"grid": 1, "args": [0] * 9}, "takes 7"),
    "unknown": ({"grid": 1, "args": {"otu": 1}}, "did you mean 'out'?"),
    "block": ({"grid": 1, "block": 32}, "32 num_warps"),
    "text": ({"grid": 1, "args": ["a", 1, 1, 1, 1, 64]}, "a str is no argument here"),
    "complex": ({"grid": 1, "args": [np.zeros(1, complex), 1, 1, 1, 1, 64]}, "no type for complex128"),
    "compile": ({"grid": 1, "args": [X := np.zeros(64, np.float32), X, 1.0, 1, 1, 63]}, "must be a power of 2"),
}


@pytest.mark.parametrize("call, expected", BAD.values(), ids=BAD)
def test_bad_calls(call: dict[str, object], expected: str) -> None:
    with pytest.raises(PptError) as caught:
        ppt_gpu.predict(scaled, "a100", **call)
    assert expected in str(caught.value)


def test_a_tuner_has_no_one_kernel() -> None:
    tuned = triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])(scaled)
    with pytest.raises(PptError, match="has no one kernel"):
        ppt_gpu.predict(tuned, "a100", grid=1, args=[])
