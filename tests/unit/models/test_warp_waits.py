"""Groups of instructions and of memory requests between waits: the compiled loop against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.models.base.warp_waits import WarpWaits, _count

Path = list[tuple[list[int], bool]]  # entries: those of the path that it waits for, and is it an off-chip request?


def plainly(path: Path) -> tuple[int, int, int]:
    """(groups of instructions, requests, groups of requests) of one path."""
    groups: list[list[int]] = []
    requests: list[list[int]] = []
    since = 0  # the entry that last waited for memory
    for e, (producers, off_chip) in enumerate(path):
        if not groups or set(producers) & set(groups[-1]):
            groups.append([])
        groups[-1].append(e)
        if any(p >= since and path[p][1] for p in producers):
            since = e
            requests.append([])
        if off_chip:
            if not requests:
                requests.append([])
            requests[-1].append(e)
    return len(groups), sum(map(len, requests)), sum(1 for group in requests if group)


def counted(paths: list[Path]) -> list[tuple[int, ...]]:
    sizes = [len(path) for path in paths]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    producers = [[p + int(first[k]) for p in entry[0]] for k, path in enumerate(paths) for entry in path]
    start = np.concatenate([[0], np.cumsum([len(each) for each in producers])]).astype(np.int64)
    flat = np.array([p for each in producers for p in each], np.int64)
    off_chip = np.array([entry[1] for path in paths for entry in path], np.bool_)
    found = np.zeros((len(paths), 3), np.int64)
    _count(first, start, flat, off_chip, found)
    return [tuple(row) for row in found.tolist()]


@st.composite
def a_path(draw: st.DrawFn) -> Path:
    size = draw(st.integers(0, 12))
    return [
        (sorted(draw(st.sets(st.integers(0, at - 1), max_size=2))) if at else [], draw(st.booleans()))
        for at in range(size)
    ]


@settings(deadline=None, max_examples=100)
@given(st.lists(a_path(), min_size=1, max_size=3))
def test_the_compiled_loop_agrees_with_plain_python(paths: list[Path]) -> None:
    assert counted(paths) == [plainly(path) for path in paths]


def test_two_loads_that_are_waited_for_together() -> None:
    load, add, store = ([], True), ([0, 1], False), ([2], True)
    path: Path = [load, load, add, store]  # the sum waits for both loads, the store for the sum
    assert counted([path]) == [(3, 3, 2)]
    waits = WarpWaits(4, 3, 3, 2)
    assert (waits.ilp, waits.mlp, waits.independent_requests) == (4 / 3, 1.5, 1)


def test_loads_that_wait_for_each_other() -> None:
    path: Path = [([], True), ([0], True), ([1], True), ([2], False)]
    assert counted([path]) == [(4, 3, 3)]


def test_nothing_executed() -> None:
    waits = WarpWaits(0, 0, 0, 0)
    assert (waits.ilp, waits.mlp, waits.independent_requests) == (1, 1, 0)
