"""Where a rank's time goes, and the chain of work that ended last."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_machine import US, PlainMachine

from ppt_gpu.cluster.engine.critical_path import ranks_on, shares
from ppt_gpu.cluster.engine.history import Intervals, split_of
from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8)


@settings(deadline=None)
@given(PAIRS, PAIRS, PAIRS, st.integers(1, 80))
def test_split_is_that_of_every_moment(compute: Any, communication: Any, copies: Any, end: int) -> None:
    intervals = Intervals()
    moments = []
    for into, pairs in (
        (intervals.compute, compute),
        (intervals.communication, communication),
        (intervals.copies, copies),
    ):
        busy = np.zeros(100, bool)
        for start, length in pairs:
            into.extend((start, start + length))
            busy[start : start + length] = True
        moments.append(busy[:end])
    computes, communicates, copying = moments
    found = split_of(intervals, end)
    assert isinstance(intervals.compute, array)
    assert found.compute == computes.sum()
    assert found.exposed == (communicates & ~computes).sum()
    assert found.hidden == (communicates & computes).sum()
    assert found.copies == (copying & ~computes & ~communicates).sum()
    assert found.compute + found.exposed + found.copies + found.idle == end


def run(app: Any) -> Outcome:
    return simulate(PlainMachine(nodes=2, gpus_per_node=1), app, Settings(history=True), collapse=False)


def relay(rank: Any) -> Any:
    """Rank 0 computes for 50 us and sends; rank 1 then computes for 20 us, and has another kernel that matters not."""
    if rank.index == 0:
        yield rank.launch(50e-6, label="first")
        yield rank.isend(1, 1000)
    else:
        rank.launch(5e-6, label="beside")
        yield rank.irecv(0, 1000)
        yield rank.launch(20e-6, label="second")


def test_the_critical_path_runs_through_ranks() -> None:
    found = run(relay)
    assert [(rank, kind, label) for rank, kind, label, _, _ in found.path] == [
        (0, "kernel", "first"),
        (0, "message", "0 to 1"),
        (1, "kernel", "second"),
    ]
    assert ranks_on(found.path) == [0, 1]
    parts = shares(found.path, found.time)
    assert sum(part.time for part in parts) == found.time
    assert {(part.kind, part.label): part.time for part in parts}["kernel", "first"] == 50 * US


def test_split_of_the_relay() -> None:
    first, second = (rank.split for rank in run(relay).ranks)
    assert first is not None and second is not None
    assert first.compute == 50 * US
    assert second.compute == 25 * US
    assert second.exposed == 2 * US + 1000 * 100
    assert second.idle == 50 * US - 5 * US + 2 * (US // 2)


def test_the_last_to_come_is_on_the_path_of_a_collective() -> None:
    def app(rank: Any) -> Any:
        yield rank.launch(10e-6 * (1 + rank.index), label=f"kernel of {rank.index}")
        yield rank.all_reduce(8)

    path = run(app).path
    assert [(rank, kind) for rank, kind, *_ in path] == [(1, "kernel"), (1, "collective")]
