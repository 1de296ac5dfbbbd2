"""cp.async, its groups, and mbarriers, in CUDA kernels against what they must compute."""

from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, integer, pointer

from ppt_gpu.ptx import load_module
from ppt_gpu.workload.workload import Buffer

MODULE = load_module(Path(__file__).parents[2] / "data" / "matrix" / "async.ptx")


@pytest.mark.parametrize("count", [1536, 1200, 1027, 3])
def test_pipeline(count):
    """Whole tiles, and a last one whose lanes read some or none of their bytes; never beyond the buffer."""
    values = np.random.default_rng(1).normal(size=count).astype("f4")
    buffers = [Buffer("in", "f32", count), Buffer("out", "f32", count)]
    arguments = [pointer("in"), pointer("out"), integer(count)]
    case = Case(MODULE, "pipeline", (1,), (128,), arguments, buffers, fill={"in": values})
    memory, _ = check_against_interpreter(case)
    assert np.array_equal(memory.view("out", "f4"), values + values[::-1])


def test_small_copies():
    values = np.random.default_rng(2).integers(-99, 99, (64, 2)).astype("i4")
    buffers = [Buffer("in", "s32", 128), Buffer("out", "s32", 64)]
    case = Case(MODULE, "small", (1,), (64,), [pointer("in"), pointer("out")], buffers, fill={"in": values.ravel()})
    memory, trace = check_against_interpreter(case)
    kept = np.where(np.arange(64) % 3 == 0, values[:, 0], 0)  # ignored sources give zeros
    assert np.array_equal(memory.view("out", "i4"), values[::-1, 1] * 1000 + kept)
    read = trace.access_base == memory.address_of("in")
    assert (trace.access_space[read] == 0).all() and read.sum() == 2  # both copies of warp 0, which begin there


def test_producer_and_consumers():
    rounds = 7
    values = np.random.default_rng(3).integers(0, 50, (rounds, 32)).astype("i4")
    buffers = [Buffer("in", "s32", rounds * 32), Buffer("out", "s32", 96)]
    arguments = [pointer("in"), pointer("out"), integer(rounds)]
    case = Case(MODULE, "producer", (1,), (128,), arguments, buffers, fill={"in": values.ravel()})
    memory, trace = check_against_interpreter(case)
    expected = np.zeros(96, np.int64)
    for r in range(rounds):
        expected = expected * 3 + values[r][(np.arange(96) % 32 + np.arange(96) // 32 + 1) % 32]
    assert np.array_equal(memory.view("out", "i4"), expected.astype("i4"))
    assert np.diff(trace.path_start).max() < 1000  # waiting warps give their turn away


def test_counts_states_and_bytes():
    case = Case(MODULE, "counting", (1,), (32,), [pointer("out")], [Buffer("out", "u64", 8)])
    memory, _ = check_against_interpreter(case)
    # pending before the first arrival; incomplete: 2 arrivals, then 64 bytes are missing; complete;
    # the next phase expects 33 arrivals: 32 are not enough, 33 are
    assert memory.view("out", "u8")[:6].tolist() == [34, 0, 0, 1, 0, 1]
