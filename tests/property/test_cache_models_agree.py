"""Reuse distances, the order of accesses and Nugteren's fake time: compiled against plain, and against one another."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.loops import interleaved_reference, reuse_distances_reference
from reference.nugteren import fake_time_distances_reference

from ppt_gpu.models.base.access_stream import interleaved
from ppt_gpu.models.caches.nugteren import UNLIMITED, FakeCache, WarpLines, fake_time_distances
from ppt_gpu.models.caches.reuse_distance import reuse_distances, reuse_distances_in_sets

LINES = st.integers(0, 11)


@given(st.lists(LINES, max_size=80))
@settings(max_examples=100, deadline=None)
def test_the_tree_counts_what_the_stack_has(lines: list[int]) -> None:
    assert reuse_distances(np.array(lines, np.int64)).tolist() == reuse_distances_reference(lines)


@given(st.lists(LINES, max_size=60), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_within_sets(lines: list[int], sets: int) -> None:
    found = reuse_distances_in_sets(np.array(lines, np.int64), np.array(lines, np.int64) % sets)
    for chosen in range(sets):
        places = [at for at, line in enumerate(lines) if line % sets == chosen]
        assert found[places].tolist() == reuse_distances_reference([lines[at] for at in places])


@st.composite
def warp_lines(draw: st.DrawFn) -> WarpLines:
    blocks = draw(st.lists(st.lists(st.lists(st.lists(LINES, max_size=4), max_size=5), max_size=3), max_size=4))
    warps = [warp for block in blocks for warp in block]
    accesses = [access for warp in warps for access in warp]
    return WarpLines(
        block_warp=np.cumsum([0, *map(len, blocks)], dtype=np.int64),
        warp_access=np.cumsum([0, *map(len, warps)], dtype=np.int64),
        access_start=np.cumsum([0, *map(len, accesses)], dtype=np.int64),
        line=np.array([line for access in accesses for line in access], np.int64),
    )


@given(
    lines=warp_lines(), ways=st.integers(1, 3), sets=st.integers(1, 3), mshrs=st.integers(1, 4),
    latency=st.integers(0, 9), hit=st.integers(0, 2), resident=st.integers(1, 3), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_fake_time(
    lines: WarpLines, ways: int, sets: int, mshrs: int, latency: int, hit: int, resident: int, seed: int
) -> None:
    extra = np.random.default_rng(seed).integers(0, 4, len(lines.line))
    cache = FakeCache(np.arange(12) % sets, ways, mshrs, latency, extra, hit)
    assert fake_time_distances(lines, cache, resident).tolist() == fake_time_distances_reference(lines, cache, resident)


@given(st.lists(LINES, min_size=1, max_size=60), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_without_latency_a_warp_has_the_distances_of_the_stack(lines: list[int], sets: int) -> None:
    count = len(lines)
    one = WarpLines(np.array([0, 1]), np.array([0, count]), np.arange(count + 1), np.array(lines, np.int64))
    cache = FakeCache(np.arange(12) % sets, 2, UNLIMITED, 0, np.zeros(count, np.int64))
    expected = reuse_distances_in_sets(one.line, one.line % sets)
    assert fake_time_distances(one, cache, 1).tolist() == expected.tolist()


@given(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=5), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_the_order_of_accesses(blocks: list[list[int]], resident: int) -> None:
    warps = [count for block in blocks for count in block]
    program = SimpleNamespace(
        block_warp=np.cumsum([0, *map(len, blocks)], dtype=np.int64),
        warp_access=np.cumsum([0, *warps], dtype=np.int64),
        access_start=np.zeros(sum(warps) + 1, np.int64),
    )
    found = interleaved(program, resident).tolist()
    assert found == interleaved_reference(program, resident)
    assert sorted(found) == list(range(sum(warps)))
