"""The PPT GPU module's compiled loop against the plain one, on random tasks and SMs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.ppt import ppt_run_reference

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.ppt.loop import LOAD, STORE, PptSm, PptTasks, ppt_run
from ppt_gpu.models.ppt.memory import LoadedMemory

OPS = 6
ENTRY = st.tuples(st.integers(0, OPS - 1), st.sets(st.integers(0, 5), max_size=2), st.integers(-1, 5))
MEMORY = st.builds(
    lambda low, rise, free, most: LoadedMemory(low, low + rise, free, most),
    st.integers(1, 9), st.integers(0, 20), st.integers(0, 3), st.integers(1, 5),
)  # fmt: skip


@st.composite
def tasks(draw: st.DrawFn) -> PptTasks:
    paths = draw(st.lists(st.lists(ENTRY, max_size=8), min_size=1, max_size=3))
    blocks = draw(st.lists(st.lists(st.integers(0, len(paths) - 1), max_size=3), max_size=4))
    entries = [entry for path in paths for entry in path]
    numbers = st.lists(st.integers(0, 6), min_size=OPS, max_size=OPS)
    return PptTasks(
        path_start=np.cumsum([0, *map(len, paths)], dtype=np.int64),
        entry_op=np.array([op for op, _, _ in entries], np.int32),
        entry_wait=np.array([sum(1 << slot for slot in waits) for _, waits, _ in entries], np.uint64),
        entry_slot=np.array([slot for _, _, slot in entries], np.int8),
        warp_path=np.array([path for block in blocks for path in block], np.int32),
        block_warp=np.cumsum([0, *map(len, blocks)], dtype=np.int64),
        kind=np.array([0, 0, 1, LOAD, STORE, 0]),
        latency=np.array(draw(numbers)),
        hold=np.array(draw(numbers)),
        unit=np.array(draw(st.lists(st.integers(0, 1), min_size=OPS, max_size=OPS))),
    )


@given(
    work=tasks(), schedulers=st.integers(1, 3), width=st.integers(1, 2),
    units=st.lists(st.integers(1, 3), min_size=2, max_size=2), memory=MEMORY, start=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_compiled_and_plain_agree(
    work: PptTasks, schedulers: int, width: int, units: list[int], memory: LoadedMemory, start: int
) -> None:
    sm = PptSm(schedulers, width, np.array(units), memory, start)
    found, expected = ppt_run(work, sm), ppt_run_reference(work, sm)
    assert found.block_end.tolist() == expected.block_end.tolist()
    assert (found.last, found.issued) == (expected.last, expected.issued)


def test_an_sm_that_issues_nothing() -> None:
    sm = PptSm(1, 1, np.array([0]), LoadedMemory(1, 1, 0, 1))
    none = np.zeros(0, np.int64)
    work = PptTasks(np.zeros(1, np.int64), *([none] * 4), np.zeros(1, np.int64), *([none] * 4))  # type: ignore[arg-type]
    with pytest.raises(PptError, match="unit of each class"):
        ppt_run(work, sm)
