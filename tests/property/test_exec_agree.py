"""Random kernels: the compiled engine and the interpreter leave the same memory and the same trace, bit for bit.

Exceptions: approximate functions and .approx in f64 may differ in their last place.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from equal_fields import assert_equal
from hypothesis import strategies as st
from random_arithmetic import arithmetic_rows
from random_ptx import BLOCKS, POOLS, PREDICATES, ROW, ROW_PLACES, TABLE, THREADS, kernel_text, kernels
from reference.interpreter.interpreter import interpret
from some_examples import examples

from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer, Launch

FLOATS = {"f16": "f2", "f32": "f4", "f64": "f8"}
SPECIAL = {
    "f2": (0.0, -0.0, np.inf, np.nan, 6e-8, 65504.0),
    "f4": (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1.1754944e-38, 3.4028235e38, 0.5, 2147483648.0),
    "f8": (0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.2e-308, 1.7e308, 0.5, 9.2e18),
}


def inputs(seed, threads=THREADS):
    """Rows of registers: random bits for integers, floats of every magnitude and the special ones."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (BLOCKS * threads, ROW), dtype=np.uint8)
    for _, kind, offset in ROW_PLACES:
        if kind in FLOATS:
            name = FLOATS[kind]
            size = np.dtype(name).itemsize
            reach = {"f2": 6, "f4": 40, "f8": 300}[name] if seed % 3 else 1
            with np.errstate(over="ignore"):
                values = (rng.standard_normal(len(rows)) * 2.0 ** rng.uniform(-reach, reach, len(rows))).astype(name)
            special = rng.random(len(rows)) < 0.15
            values[special] = rng.choice(np.array(SPECIAL[name], name), special.sum())
            rows[:, offset : offset + size] = values.view(np.uint8).reshape(-1, size)
        elif seed % 2:  # small integers too
            rows[rng.random(len(rows)) < 0.5, offset + 1 : offset + {"b16": 2, "b32": 4, "b64": 8}[kind]] = 0
    return rows


def execute(engine, text, rows, extra=0):
    module = parse_module(text, "random.ptx")
    size = rows.size + extra * len(rows)
    memory = DeviceMemory.build(module, [Buffer("in", "b8", rows.size), Buffer("out", "b8", size)])
    memory.bytes_of("in")[:] = rows.ravel()
    arguments = (Argument("u64", buffer="in"), Argument("u64", buffer="out"))
    launch = Launch("k", (BLOCKS, 1, 1), (len(rows) // BLOCKS, 1, 1), arguments)
    trace = engine(module.kernels["k"], module, launch, memory, list(range(BLOCKS)))
    return memory.bytes_of("out").reshape(len(rows), -1).copy(), memory.bytes_of("in").copy(), trace


def assert_same(text, rows, places=ROW_PLACES, extra=0):
    plain, plain_in, plain_trace = execute(interpret, text, rows, extra)
    compiled, compiled_in, compiled_trace = execute(run, text, rows, extra)
    for name, kind, offset in places:
        size = {"b16": 2, "b32": 4, "b64": 8, "f16": 2, "f32": 4, "f64": 8}[kind]
        one, other = (np.ascontiguousarray(x[:, offset : offset + size]) for x in (plain, compiled))
        same = (one == other).all(axis=1)
        thread = int(np.flatnonzero(~same)[0]) if not same.all() else 0
        assert same.all(), f"{name} of thread {thread}: {one[thread][::-1].tobytes().hex()} interpreted, " + (
            f"{other[thread][::-1].tobytes().hex()} compiled\n{text}"
        )
    assert (plain == compiled).all(), f"predicates\n{text}"
    assert (plain_in == compiled_in).all(), f"atomics\n{text}"
    assert_equal(compiled_trace, plain_trace, ("warnings",), text)


@examples(20, 600, kernels(), st.integers(0, 1000))
def test_random_kernels(text, seed):
    assert_same(text, inputs(seed))


def instance(row):
    """(text, destination) of a row of the table with distinct registers."""
    text, destination, sources = row
    counts = {"p": 1}
    text = text.replace("{D}", f"%{destination}0")
    for number, pool in enumerate(sources):
        size = PREDICATES if pool == "p" else POOLS[pool][1]
        text = text.replace("{" + str(number) + "}", f"%{pool}{counts.get(pool, 1) % size}")
        counts[pool] = counts.get(pool, 1) + 1
    return text, destination


_RESULT = {"p": "b32", "h": "b16", "e": "b16", "r": "b32", "d": "b64", "f": "f32", "g": "f64"}
CHUNK = 40


def every_form(chunk):
    """(kernel, places): the instructions of some rows, each followed by a store of its result."""
    lines, places = [], []
    for number, row in enumerate(chunk):
        text, destination = instance(row)
        at, kind, register = ROW + 8 * number, _RESULT[destination], f"%{destination}0"
        lines.append(text)
        if destination == "p":
            lines.append(f"selp.b32 %i, 1, 0, {register};")
            register = "%i"
        lines.append(f"st.global.{kind} [%to+{at}], {register};")
        places.append((text, kind, at))
    return kernel_text(lines, 8 * CHUNK), [*places, *ROW_PLACES]


@pytest.mark.parametrize("start", range(0, len(TABLE), CHUNK), ids=lambda start: TABLE[start][0].split()[0])
@pytest.mark.parametrize("seeds", [(1,), pytest.param(range(2, 12), marks=pytest.mark.slow)], ids=["once", "often"])
def test_every_form(start, seeds):
    text, places = every_form(TABLE[start : start + CHUNK])
    for seed in seeds:
        assert_same(text, inputs(seed), places, 8 * CHUNK)


def test_every_arithmetic_form_is_ptx():
    """NVIDIA's assembler takes each of them: no test of something that does not exist."""
    if shutil.which("ptxas") is None:
        pytest.skip("ptxas is not installed")
    text = kernel_text([instance(row)[0] for row in arithmetic_rows()])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forms.ptx")
        path.write_text(text)
        command = ["ptxas", "-arch=sm_100a", "-O0", str(path), "-o", str(path.with_suffix(".cubin"))]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Unsupported .version" in found.stderr or "is not defined for option 'gpu-name'" in found.stderr:
            pytest.skip("ptxas is older than PTX 9.0")
        assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("clamp", ["0", "31", "0x181f", "0x1000"])
def test_shuffles(mode, clamp):
    """In whole warps: what a shuffle reads from a lane that does not execute is undefined."""
    lines = [
        f"shfl.sync.{mode}.b32 %r0|%p0, %r1, %r2, {clamp}, -1;",
        f"shfl.sync.{mode}.b32 %r3|%p1, %r0, 5, {clamp}, -1;",
    ]
    assert_same(kernel_text(lines), inputs(3, threads=64))


@pytest.mark.parametrize("line", ["sub.rm.f32 %f0, %f1, %f1;", "fma.rm.f32 %f0, %f1, 0f3F800000, %f2;"])
def test_exact_zeros_round_down_to_minus_zero(line):
    assert_same(kernel_text(["neg.f32 %f2, %f1;", line]), inputs(2))


APPROXIMATE = ["ex2.approx.f32", "lg2.approx.f32", "sin.approx.f32", "cos.approx.f32", "rsqrt.approx.f32",
               "rcp.approx.f32", "sqrt.approx.f32", "tanh.approx.f32"]  # fmt: skip


@pytest.mark.parametrize("opcode", APPROXIMATE)
def test_approximate_functions_agree_to_four_places(opcode):
    line = "abs.f32 {f}, {f}; min.f32 {f}, {f}, 0f42C80000; OPCODE {f}, {f};".replace("OPCODE", opcode)
    text = kernel_text([line.format(f=f"%f{n}") for n in range(4)])
    rows = inputs(7)
    results = []
    for engine in (interpret, run):
        out, _, _ = execute(engine, text, rows)
        offset = next(place for name, _, place in ROW_PLACES if name == "%f0")
        results.append(np.ascontiguousarray(out[:, offset : offset + 16]).view("f4"))
    np.testing.assert_allclose(results[0], results[1], rtol=4 * 2.0**-23, atol=1e-37)
