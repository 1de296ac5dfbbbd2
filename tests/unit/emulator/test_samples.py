"""Every shipped sample computes what it says, in the interpreter and in the compiled engine, with one trace."""

from functools import cache

import numpy as np
import pytest
from equal_fields import assert_equal
from reference.interpreter.interpreter import interpret
from small_samples import SMALL, run_small

from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.reader import load_workload, sample_names


@cache
def outcome(name, engine):
    """Of one run, which the tests share and do not change."""
    return run_small(name, engine)


@pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
@pytest.mark.parametrize("name", SMALL)
def test_result(name, engine):
    before, after, _ = outcome(name, engine)
    for buffer, expected in SMALL[name].expected(before).items():
        np.testing.assert_allclose(after[buffer], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", SMALL)
def test_both_engines_agree_bit_for_bit(name):
    _, plain, plain_traces = outcome(name, interpret)
    _, compiled, compiled_traces = outcome(name, run)
    for buffer in plain:
        assert plain[buffer].tobytes() == compiled[buffer].tobytes(), buffer
    for one, other in zip(plain_traces, compiled_traces, strict=True):
        assert_equal(one, other)


def test_every_ptx_sample_has_a_small_version():
    assert {name for name in sample_names() if load_workload(name).ptx_path} == set(SMALL)
