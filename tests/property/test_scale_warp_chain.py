"""The compiled critical path of a warp against the plain one, on random dependencies."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.loops import warp_times_reference

from ppt_gpu.bounds.warp_chain import issue_delays, warp_spans

ENTRY = st.tuples(
    st.integers(0, 3), st.sets(st.integers(0, 63), max_size=3), st.integers(-1, 63)
)  # operation, slots waited for, slot announced


@given(paths=st.lists(st.lists(ENTRY, max_size=30), min_size=1, max_size=4), width=st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_compiled_and_plain_agree(paths: list[list[tuple[int, set[int], int]]], width: int) -> None:
    entries = [entry for path in paths for entry in path]
    program = SimpleNamespace(
        path_start=np.cumsum([0, *map(len, paths)], dtype=np.int64),
        entry_op=np.array([op for op, _, _ in entries], np.int32),
        entry_wait=np.array([sum(1 << slot for slot in waits) for _, waits, _ in entries], np.uint64),
        entry_slot=np.array([slot for _, _, slot in entries], np.int8),
    )
    latency = np.array([1, 4, 18, 200])
    hold = np.array([0, 7, 0, 1])
    plain = warp_times_reference(program, latency, hold, width)
    assert warp_spans(program, latency, hold, width).tolist() == [span for _, span in plain]
    delays, spans = issue_delays(program, latency, hold)
    expected = []
    for issued, span in warp_times_reference(program, latency, hold, 1):
        expected += [after - before for before, after in pairwise([*issued, span])] if issued else []
    assert delays.tolist() == expected
    assert spans.tolist() == [span for _, span in warp_times_reference(program, latency, hold, 1)]
