"""The capture kit: its kernels compute what they say, its plan fits them, its script says what is missing."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.inputs import open_workload
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon.capture_runs import HOST, plan, ptx_of, workload_of
from ppt_gpu.workload.binding import bind_workload

KIT = data_dir("validation") / "capture"


def outcome(module: str, kernel: str, grid: int | tuple[int, int], block: int | tuple[int, int], *args: str) -> list:
    """The buffers after a run of the whole grid."""
    shape = [each if isinstance(each, tuple) else (each,) for each in (grid, block)]
    workload = open_workload(ptx_of(module), kernel=kernel, grid=shape[0], block=shape[1], args=args)
    parsed = parse_module(Path(workload.ptx_path).read_text(), workload.ptx_path)
    memory = DeviceMemory.build(parsed, workload.buffers)
    (launch,) = workload.launches
    run(parsed.kernels[kernel], parsed, launch, memory, range(launch.blocks), trace=False)
    kinds = {"f32": "f4", "f64": "f8", "u32": "u4", "s32": "i4"}
    return [memory.view(buffer.name, kinds[buffer.type]) for buffer in workload.buffers]


CHAINS: dict[str, tuple[str, str, str, Callable]] = {
    "ffma": ("f32", "0.5", "1", lambda x, a, b: np.float32(np.float64(x) * a + b)),
    "fadd": ("f32", "0.5", "1", lambda x, a, b: x + b),
    "fmul": ("f32", "0.5", "1", lambda x, a, b: x * a),
    "dfma": ("f64", "0.5", "1", lambda x, a, b: x * a + b),
    "dadd": ("f64", "0.5", "1", lambda x, a, b: x + b),
    "imad": ("u32", "3", "5", lambda x, a, b: x * a + b),
    "logic": ("u32", "3", "5", lambda x, a, b: (x ^ a) + b),
    "ex2": ("f32", "0.5", "1", lambda x, a, b: np.exp2(x)),
    "rsqrt": ("f32", "0.5", "1", lambda x, a, b: 1 / np.sqrt(x)),
    "popc": ("u32", "3", "5", lambda x, a, b: np.bitwise_count(x).astype("u4")),
    "shuffle": ("u32", "3", "5", lambda x, a, b: x.reshape(-1, 2)[:, ::-1].ravel()),
    "cvt": ("f32", "0.5", "1", lambda x, a, b: np.rint(x)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains(name: str) -> None:
    kind, a, b, step = CHAINS[name]
    dtype = {"f32": "f4", "f64": "f8", "u32": "u4"}[kind]
    first, second, threads = np.dtype(dtype).type(float(a)), np.dtype(dtype).type(float(b)), np.arange(32)
    rounds = 1 if name == "ex2" else 2  # it overflows soon
    with np.errstate(all="ignore"):
        x = (first + threads).astype(dtype)
        for _ in range(16 * rounds):
            x = step(x, first, second)
        (found,) = outcome("micro", f"{name}_1", 1, 32, f"{kind}[32]", f"{kind}={a}", f"{kind}={b}", f"i32={rounds}")
        np.testing.assert_allclose(found, x, rtol=1e-4)
        chains = [(first + threads + j).astype(dtype) for j in range(8)]
        for _ in range(2 * rounds):
            chains = [step(x, first, second) for x in chains]
        total = np.sum(np.array(chains, dtype), axis=0, dtype=dtype)
        (found,) = outcome("micro", f"{name}_8", 1, 32, f"{kind}[32]", f"{kind}={a}", f"{kind}={b}", f"i32={rounds}")
        np.testing.assert_allclose(found, total, rtol=1e-4)


def test_half_precision_chain() -> None:
    one = np.array([1.0, 1.0], "f2").view("u4")[0]
    (found,) = outcome("micro", "hfma2_1", 1, 32, "u32[32]", f"u32={one}", f"u32={one}", "i32=1")
    assert found[:1].view("f2").tolist() == [17.0, 17.0]  # 1 x 1 + 1, sixteen times


def test_tensor_chains() -> None:
    for kernel in ("mma_1", "mma_8"):
        (found,) = outcome("tensor", kernel, 1, 32, "f32[32]", "i32=3")
        assert found.tolist() == [4 * 16 * 8 * 3.0] * 32  # 24 products of ones with 16 terms, four sums a thread


def test_chases() -> None:
    next_, out = outcome("micro", "chase", 1, 1, "u32[1024]=ring:32", "u32[1]", "i32=37")
    assert out[0] == 37 * 32 % 1024 and next_[1000] == 8
    (out,) = outcome("micro", "chase_shared", 1, 32, "u32[32]", "i32=1030")
    assert out.tolist() == [1030 % 1024] * 32


def test_reads() -> None:
    data, out = outcome("micro", "read_l1", 2, 256, "f32[4096]=iota", "f32[512]", "i32=3")
    four = data.reshape(8, 128, 4)
    np.testing.assert_allclose(out[:128], 3 * (four[..., 0] + four[..., 3]).sum(axis=0))
    assert np.array_equal(out, np.tile(out[:128], 4))
    data, out = outcome("micro", "read_l2", 2, 1024, "f32[65536]=random", "f32[2048]", "i32=65536", "i32=2")
    four = data.reshape(16, 1024, 4).astype(float)
    np.testing.assert_allclose(out, np.tile(2 * (four[..., 0] + four[..., 3]).sum(axis=0), 2), rtol=1e-5)
    data, out = outcome("micro", "scatter_l1", 1, 64, "f32[1024]=iota", "f32[64]", "i32=2")
    np.testing.assert_allclose(out, np.tile(2 * data.reshape(32, 32)[:, :8].sum(axis=1), 2))


def test_streams() -> None:
    data, out = outcome("micro", "stream_read", 2, 64, "f32[4096]=iota", "f32[128]", "i32=4096")
    np.testing.assert_allclose(out, data.reshape(8, 128, 4).sum(axis=(0, 2)))
    data, out = outcome("micro", "stream_copy", 2, 64, "f32[1000]=random", "f32[1000]", "i32=1000")
    assert np.array_equal(data, out)
    (out,) = outcome("micro", "stream_write", 2, 64, "f32[1000]", "f32=2.5", "i32=1000")
    assert set(out.tolist()) == {2.5}
    data, out = outcome("micro", "strided_read", 2, 64, "f32[1024]=iota", "f32[128]", "i32=16", "i32=1023")
    assert np.array_equal(out, 16 * np.arange(128) % 1024)


def test_banks_atomics_and_barriers() -> None:
    (out,) = outcome("micro", "banks", 1, 64, "f32[64]", "i32=4", "i32=2")
    index = (np.arange(64)[:, None] % 32 * 4 + np.arange(16) * 32)[..., None] + np.arange(2)
    np.testing.assert_allclose(out, (index & 2047).sum(axis=(1, 2)))
    (counters,) = outcome("micro", "atomics", 2, 64, "u32[64]", "i32=2", "i32=63", "i32=3")
    assert counters.tolist() == [12, 0] * 32
    (out,) = outcome("micro", "barriers", 1, 64, "s32[64]", "i32=5")
    x = np.arange(64)
    for i in range(5):
        x = (x ^ i) + i
    assert np.array_equal(out, x)


def test_black_scholes() -> None:
    buffers = [f"f32[256]=random({low},{high})" for low, high in ((5, 30), (1, 100), (0.25, 10))]
    s, x, t, call, put = outcome("apps", "black_scholes", 1, 256, *buffers, "f32[256]", "f32[256]", "f32=0.02",
                                 "f32=0.3", "i32=256")  # fmt: skip
    s, x, t = (one.astype(float) for one in (s, x, t))
    d1 = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    normal = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    expected = s * normal(d1) - x * np.exp(-0.02 * t) * normal(d1 - 0.3 * np.sqrt(t))
    np.testing.assert_allclose(call, expected, rtol=1e-3, atol=2e-4)
    np.testing.assert_allclose(put, expected - s + x * np.exp(-0.02 * t), rtol=1e-3, atol=2e-4)


def test_nbody() -> None:
    body, force = outcome("apps", "nbody", 2, 256, "f32[2048]=random", "f32[2048]", "i32=512")
    body = body.reshape(512, 4).astype(float)
    away = body[None, :, :3] - body[:, None, :3]
    strength = body[None, :, 3] * (np.sum(away**2, axis=2) + 0.01) ** -1.5
    found = force.reshape(512, 4)
    np.testing.assert_allclose(found[:, :3], (away * strength[..., None]).sum(axis=1), rtol=1e-3, atol=1e-2)


def test_convolution() -> None:
    n = 40
    image, weights, out = outcome("apps", "convolution", (2, 5), (32, 8), f"f32[{n * n}]=random", "f32[49]=random",
                                  f"f32[{n * n}]", f"i32={n}")  # fmt: skip
    padded = np.pad(image.reshape(n, n).astype(float), 3, mode="edge")
    expected = sum(weights[7 * v + u] * padded[v : v + n, u : u + n] for v in range(7) for u in range(7))
    np.testing.assert_allclose(out.reshape(n, n), expected, rtol=1e-4)


def test_gemv_softmax_and_scan() -> None:
    a, x, y = outcome("apps", "gemv", 2, 256, "f32[960]=random", "f32[96]=random", "f32[10]", "i32=10", "i32=96")
    np.testing.assert_allclose(y, a.reshape(10, 96).astype(float) @ x, rtol=1e-5)
    rows, out = outcome("apps", "softmax", 3, 256, "f32[1200]=random(-3,3)", "f32[1200]", "i32=400")
    powers = np.exp(rows.reshape(3, 400).astype(float))
    np.testing.assert_allclose(out.reshape(3, 400), powers / powers.sum(axis=1, keepdims=True), rtol=1e-4)
    numbers, out = outcome("apps", "scan", 2, 512, "s32[1024]=random(0,9)", "s32[1024]")
    assert np.array_equal(out.reshape(2, 512), np.cumsum(numbers.reshape(2, 512), axis=1))


@pytest.mark.parametrize("name", ["t4", "h200"])
def test_every_run_of_the_plan_fits_its_kernel(name: str) -> None:
    gpu = load_gpu(name)
    runs = plan(gpu)
    assert len(runs) == len(set(runs)) > 190
    assert any(run.module == "tensor" for run in runs) == (name == "h200")
    kernels = {(one.module, one.kernel): one for one in runs if one.group != HOST}
    for one in kernels.values():
        path = ptx_of(one.module)
        workload = workload_of(one, 0)
        bind_workload(workload, parse_module(path.read_text(), str(path)))  # raises where arguments do not fit
        assert all(buffer.copied != one.cold for buffer in workload.buffers)


def test_the_script_says_what_is_missing() -> None:
    shell = shutil.which("sh")
    if shell is None or Path("/usr/local/cuda/bin/nvcc").exists():
        tools = {"PATH": "/usr/bin:/bin", "CUDA_HOME": "/nowhere"}
    else:
        tools = {"PATH": "/usr/bin:/bin"}
    if shell is None or shutil.which("nvcc", path=tools["PATH"]):
        pytest.skip("needs sh, and a PATH without nvcc")
    done = subprocess.run([shell, str(KIT / "run.sh")], env=tools, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no nvcc: install the CUDA toolkit" in done.stderr


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs sh")
def test_the_script_writes_over_no_file_of_its_own(tmp_path: Path) -> None:
    """It would end with another error anyway, where there is no GPU."""
    (tmp_path / "link.csv").symlink_to(KIT / "plan.csv")
    for output in (str(KIT / "plan.csv"), "link.csv", str(data_dir("tasklists") / "saxpy.cu")):
        command = ["sh", str(KIT / "run.sh"), output]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (2, f"run.sh: {output} is a file of the kit: name another one\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("source", ["capture.cu", "micro.cu", "apps.cu", "tensor.cu"])
def test_sources_compile_without_warnings(source: str, tmp_path: Path) -> None:
    flags = [
        "-Werror",
        "all-warnings",
        "-arch=sm_80",
        "-std=c++17",
        *(["-ldl"] if source == "capture.cu" else ["-cubin"]),
    ]
    done = subprocess.run(
        ["nvcc", *flags, str(KIT / source), "-o", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
