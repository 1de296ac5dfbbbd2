"""Matrix multiplications that Triton 3.4 compiled (tests/data/matrix/matmul_triton.py), in both engines and timed."""

from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, integer, pointer

from ppt_gpu.ptx import load_module
from ppt_gpu.workload.workload import Buffer

DATA = Path(__file__).parents[2] / "data" / "matrix"
#: file -> what it must hold: mma.sync fed by cp.async, wgmma fed by cp.async
KINDS = {"sm80": ("mma.sync", "ldmatrix", "cp.async"), "sm90": ("wgmma.mma_async", "cp.async")}


def matmul(kind, n):
    module = load_module(DATA / f"triton_{kind}.ptx")
    kernel = next(iter(module.kernels.values()))
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (n, n)).astype("f2") for _ in range(2))  # all sums are exact
    sizes = {"a": "f16", "b": "f16", "c": "f32"}
    buffers = [Buffer(name, element, n * n) for name, element in sizes.items()] + [Buffer("scratch", "u8", 65536)]
    arguments = [pointer("a"), pointer("b"), pointer("c"), integer(n)]
    arguments += [pointer("scratch")] * (len(kernel.params) - 4)
    fill = {"a": a.ravel(), "b": b.ravel()}
    grid, block = (n // 64, n // 64), kernel.directives["reqntid"]
    case = Case(module, kernel.name, grid, block, arguments, buffers, dynamic=65536, fill=fill)
    return case, a.astype("f4") @ b.astype("f4")


@pytest.mark.parametrize("kind", KINDS)
def test_result(kind):
    case, expected = matmul(kind, 128)
    bases = {instruction.opcode for instruction in case.kernel.instructions}
    assert all(any(opcode.startswith(name) for opcode in bases) for name in KINDS[kind])
    memory, _ = check_against_interpreter(case, blocks=[0, 3])
    got = memory.view("c", "f4").reshape(128, 128)
    assert np.array_equal(got[:64, :64], expected[:64, :64])
    assert np.array_equal(got[64:, 64:], expected[64:, 64:])
    memory, _ = case.run()
    assert np.array_equal(memory.view("c", "f4").reshape(128, 128), expected)
