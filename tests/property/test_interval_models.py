"""Interval algorithm and representative warp: compiled and plain agree exactly, many warps of a path are one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.loops import intervals_reference

from ppt_gpu.models.gpumech.gcom import sub_core
from ppt_gpu.models.gpumech.gpumech import markov_ipc
from ppt_gpu.models.gpumech.gpumech_core import bandwidth_delay, mean_batch, mshr_delay, multithreading, naive_ipc
from ppt_gpu.models.gpumech.interval import Profile, _intervals
from ppt_gpu.models.gpumech.representative import METHODS, representative

INSTRUCTION = st.tuples(st.integers(1, 40), st.lists(st.integers(0, 20), max_size=2))
TRACES = st.lists(st.lists(INSTRUCTION, max_size=20), min_size=1, max_size=3)
INTERVALS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 400)), min_size=1, max_size=12)


def profile(intervals: list[tuple[int, int]]) -> Profile:
    insts, stall = np.array(intervals, np.float64).T
    none = np.full(len(insts), -1)
    return Profile(insts, stall, none, none)


@settings(deadline=None, max_examples=200)
@given(TRACES, st.sampled_from((0, 1)), st.booleans())
def test_compiled_intervals_are_the_plain_ones(traces: list[list[Any]], gap: int, drain: bool) -> None:
    """Every entry is an operation of its own, so that causes can be told apart."""
    plain = [[(float(lat), sorted({s for s in srcs if s < k})) for k, (lat, srcs) in enumerate(t)] for t in traces]
    length = [len(trace) for trace in traces]
    start = np.cumsum([0, *length])
    entries = int(start[-1])
    latency = np.array([lat for trace in plain for lat, _ in trace])
    sources = [[int(base) + s for s in srcs] for base, trace in zip(start, plain, strict=False) for _, srcs in trace]
    producer_start = np.cumsum([0, *map(len, sources)])
    producer = np.array([s for srcs in sources for s in srcs], np.int64)
    found = [np.zeros(len(start), np.int64), np.zeros(entries), np.zeros(entries)]
    found += [np.full(entries, -1, np.int64), np.zeros(entries, np.int64)]
    _intervals(
        start, np.arange(entries, dtype=np.int32), producer_start, producer, latency, np.zeros(entries), gap, drain,
        np.zeros(entries), *found,
    )  # fmt: skip
    first, insts, stall, cause, _ = found
    for path, trace in enumerate(plain):
        part = slice(first[path], first[path + 1])
        _, expected = intervals_reference(trace, gap, drain)
        causes = [-1 if c < 0 else c - int(start[path]) for c in cause[part].tolist()]
        compiled = list(zip(insts[part].tolist(), stall[part].tolist(), causes, strict=True))
        assert [item[:2] for item in compiled] == [item[:2] for item in expected]
        for (_, waits, got), (_, _, cause_of) in zip(compiled, expected, strict=True):
            done = trace[got][0] if waits and got >= 0 else None
            assert (got < 0) == (cause_of < 0) or not waits, (done, cause_of)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=8))
def test_warps_of_one_path_count_as_so_many(kinds: list[tuple[int, int, int]]) -> None:
    insts = np.array([float(n) for n, _, _ in kinds])
    perf = insts / (insts + np.array([float(stall) for _, stall, _ in kinds]))
    count = np.array([float(times) for _, _, times in kinds])
    repeat = count.astype(np.int64)
    for method in METHODS:
        once = representative(perf, insts, count, method=method)
        each = representative(np.repeat(perf, repeat), np.repeat(insts, repeat), method=method)
        assert np.allclose(np.repeat(once.features, repeat, axis=0), each.features)
        if method != "clustering":
            assert each.index == (np.cumsum(repeat) - repeat)[once.index]
    assert perf[representative(perf, insts, count, method="max").index] == perf.max()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=8))
def test_the_representative_is_nearest_to_the_middle_of_most(kinds: list[tuple[int, int, int]]) -> None:
    insts = np.array([float(n) for n, _, _ in kinds])
    perf = insts / (insts + np.array([float(stall) for _, stall, _ in kinds]))
    count = np.array([float(times) for _, _, times in kinds])
    found = representative(perf, insts, count)
    if (found.features == found.features[0]).all():
        assert found.index == 0
        return
    inside = found.labels == found.majority
    assert inside[found.index] and count[inside].sum() >= count[~inside].sum()
    centre = np.average(found.features[inside], axis=0, weights=count[inside])
    distance = ((found.features - centre) ** 2).sum(axis=1)
    assert distance[found.index] <= distance[inside].min() + 1e-9


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 64))
def test_mean_batch_is_the_sum(requests: int, mshrs: int) -> None:
    expected = sum(-(-j // mshrs) for j in range(1, requests + 1)) / requests
    assert mean_batch(np.array([requests]), mshrs)[0] == pytest.approx(expected, rel=1e-12)


@settings(deadline=None)
@given(INTERVALS, st.integers(1, 64), st.sampled_from(("lrr", "gto")))
def test_more_warps_never_lower_throughput(intervals: list[tuple[int, int]], warps: int, policy: str) -> None:
    one = profile(intervals)
    for model in (multithreading(one, warps, policy), multithreading(one, warps, policy, literal=True)):
        assert np.isfinite(model.cpi) and model.clamped() >= 1.0
    assert 0.0 < naive_ipc(one, warps) <= 1.0
    assert naive_ipc(one, warps) <= naive_ipc(one, warps + 1)
    gcom = sub_core(one, warps, policy)
    assert gcom.cycles >= warps * one.instructions - 1e-9  # an instruction a cycle


@settings(deadline=None)
@given(st.integers(1, 40), st.floats(0, 1), st.floats(1, 1000))
def test_markov_chain_is_a_throughput(threads: int, suspend: float, suspended: float) -> None:
    ipc = markov_ipc(threads, suspend, suspended)
    assert 0.0 < ipc <= 1.0
    assert ipc <= markov_ipc(threads + 1, suspend, suspended) + 1e-9


@settings(deadline=None)
@given(st.floats(0, 2000), st.integers(1, 64), st.floats(0, 1000), st.floats(0.1, 4))
def test_queues_are_monotonous(requests: float, mshrs: int, latency: float, service: float) -> None:
    """No delay with enough of everything, never less with less of it."""
    n, one = np.array([requests]), np.array([1.0])
    delay = mshr_delay(n, mshrs, latency, one).delay[0]
    assert 0.0 <= mshr_delay(n, mshrs + 1, latency, one).delay[0] <= delay + 1e-6
    assert delay <= mshr_delay(n, mshrs, latency + 1.0, one).delay[0] + 1e-6
    assert mshr_delay(n, 1 << 40, latency, one).delay[0] == 0.0
    cycles = np.array([200.0])
    queue = bandwidth_delay(n, 16, cycles, service)
    assert 0.0 <= queue.delay[0] <= bandwidth_delay(n, 16, cycles, service * 1.5).delay[0] + 1e-9
    assert bandwidth_delay(n, 16, cycles, 0.0).delay[0] == 0.0
