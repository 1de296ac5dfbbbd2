"""Random kernels: the compiled engine and the interpreter leave the same memory and the same trace, bit for bit.

Exceptions: approximate functions and .approx in f64 may differ in their last place.
"""

import numpy as np
import pytest
from equal_fields import assert_equal
from hypothesis import strategies as st
from random_ptx import BLOCKS, ROW, ROW_PLACES, THREADS, kernel_text, kernels
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


@examples(10, 600, kernels(), st.integers(0, 1000))
def test_random_kernels(text, seed):
    assert_same(text, inputs(seed))


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
