"""Thread instructions of whole launches against GPGPU-Sim 4.2's count (gpu_sim_insn), and their results against NumPy.

The reference kernels and `launches.csv` stand beside the checkout; lanes whose guard is false do not count there.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, integer, pointer

from ppt_gpu.ptx import load_module
from ppt_gpu.workload.workload import Argument, Buffer

REFERENCE = Path(__file__).parents[3].parent / "shared" / "reference" / "gpgpusim"
FOLDERS = {"SM7_QV100": "ptx70", "SM2_GTX480": "ptx35"}


def floats(value):
    return Argument("f32", value)


def lcg(n):
    values, s = [], 12345
    for _ in range(n):
        s = (s * 1664525 + 1013904223) & 0xFFFFFFFF
        values.append((s >> 9) & 0xFFFF)
    return np.array(values, "i4")


def ramp(n, modulus):
    return (np.arange(n) % modulus).astype("f4")


N, Z = 128 * 128, 64 * 64 * 32
MATRIX = ramp(N, 13) / 8
CUBE = (np.arange(Z) * 31 % 101).astype("f4")


def stencil(a):
    a = a.reshape(32, 64, 64).astype("f8")
    inner = slice(1, -1)
    out = np.zeros_like(a)
    near = a[inner, inner, :-2] + a[inner, inner, 2:] + a[inner, :-2, inner] + a[inner, 2:, inner]
    out[inner, inner, inner] = 0.5 * a[inner, inner, inner] + 0.1 * (near + a[:-2, inner, inner] + a[2:, inner, inner])
    return out.ravel()


def product(a, b):
    return (a.reshape(128, 128).astype("f8") @ b.reshape(128, 128)).ravel()


TILES = [pointer("a"), pointer("b"), pointer("out"), integer(128)]
CUBES = [pointer("a"), pointer("out"), integer(64), integer(64), integer(32), floats(0.5), floats(0.1)]
SQUARE = np.arange(256 * 256, dtype="f4")
TRANSPOSED = SQUARE.reshape(256, 256).T.ravel()
SQUARES = [pointer("a"), pointer("out"), integer(256)]
#: (bench, args, launch, PTX file, arguments, inputs, words of output, expected output or None)
CASES = [
    ("vecadd", "65536", "1", "vecadd", [pointer("a"), pointer("b"), pointer("out"), integer(65536)],
     {"a": ramp(65536, 9), "b": ramp(65536, 7)}, 65536, lambda a, b: a + b),
    ("saxpy", "131072", "1", "saxpy", [integer(131072), floats(2.0), pointer("a"), pointer("out")],
     {"a": ramp(131072, 1000)}, 131072, lambda a: 2 * a),
    ("divergent", "16384", "1", "divergent", [pointer("a"), pointer("out"), integer(16384)],
     {"a": lcg(16384)}, 16384, None),
    ("sgemm16", "128 16", "1", "sgemm", TILES, {"a": MATRIX, "b": MATRIX[::-1].copy()}, N, product),
    ("sgemm32", "128 32", "1", "sgemm", TILES, {"a": MATRIX, "b": MATRIX[::-1].copy()}, N, product),
    ("stencil_naive", "64 64 32 0", "1", "stencil", CUBES, {"a": CUBE}, Z, stencil),
    ("stencil_25d", "64 64 32 1", "1", "stencil", CUBES, {"a": CUBE}, Z, stencil),
    ("transpose", "256", "1", "transpose", SQUARES, {"a": SQUARE}, 65536, lambda a: TRANSPOSED),
    ("transpose", "256", "2", "transpose", SQUARES, {"a": SQUARE}, 65536, lambda a: TRANSPOSED),
    ("transpose", "256", "3", "transpose", SQUARES, {"a": SQUARE}, 65536, lambda a: TRANSPOSED),
    ("reduction", "131072", "1", "reduction", [pointer("a"), pointer("out"), integer(131072)],
     {"a": ramp(131072, 8)}, 256, lambda a: a.reshape(256, 512).sum(1)),
    ("transcend", "16384 8", "1", "transcend", [pointer("a"), pointer("out"), integer(16384), integer(8)],
     {"a": ((np.arange(16384) % 628) * 0.01).astype("f4")}, 16384, None),
    ("strided", "16384", "4", "strided", [pointer("a"), pointer("out"), integer(16384), integer(8)],
     {"a": np.arange(16384 * 32, dtype="f4")}, 16384, lambda a: a[: 16384 * 8 : 8]),
    ("ilp_fma", "120 8", "1", "ilp_fma", None, {}, 120 * 256, None),
]  # fmt: skip


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the GPGPU-Sim reference is not beside the checkout")
@pytest.mark.parametrize("config", FOLDERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_thread_instructions(case, config):
    bench, args, launch, file, arguments, inputs, words, expected = case
    with open(REFERENCE / "launches.csv") as handle:
        wanted = (config, "default", bench, args, launch)
        keys = ("config", "mem", "bench", "args", "launch")
        row = next(r for r in csv.DictReader(handle) if tuple(r[k] for k in keys) == wanted)
    module = load_module(REFERENCE / FOLDERS[config] / f"{file}.ptx")
    if arguments is None:  # fma_tp(out, a, b, iterations)
        arguments = [pointer("out"), floats(1.5), floats(0.5), integer(int(args.split()[1]))]
    buffers = [Buffer(name, "f32", len(values)) for name, values in inputs.items()] + [Buffer("out", "f32", words)]
    grid, block = (tuple(int(n) for n in row[key].split("x")) for key in ("grid", "block"))
    run = Case(module, row["kernel"], grid, block, arguments, buffers, fill=inputs)
    memory, trace = run.run()
    assert trace.thread_instructions == int(row["gpu_sim_insn"])
    if expected is not None:
        np.testing.assert_allclose(memory.view("out", "f4"), expected(*inputs.values()), rtol=2e-5, atol=1e-4)
