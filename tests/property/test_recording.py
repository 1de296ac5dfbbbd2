"""A recording tells what the simulation counted: each warp cycle, issue and byte once, whatever the window."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sm_random import gpus, programs

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference import recording
from ppt_gpu.sm.reference.recording import SAMPLED, Recording, Window, record
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)


def recorded(program: Program, gpu: Gpu, resident: int, window: Window) -> Recording:
    return record(program, machine_of(program, gpu, 1, None, 0.0, None), resident, window)


@settings(RELAXED)
@given(program=programs, gpu=gpus(), resident=st.integers(1, 3))
def test_whole_recording_is_what_was_counted(program: Program, gpu: Gpu, resident: int) -> None:
    with patch.object(recording, "MOST_CYCLES", 1 << 40):
        found = recorded(program, gpu, resident, Window(0, 1 << 30))
    result = simulate(program, gpu, resident_blocks=resident, active_sms=1)
    spans = found.spans
    cycles = np.bincount(spans[:, 5], weights=spans[:, 4], minlength=len(STALL_REASONS)).astype(int)
    assert cycles.tolist() == result.warp_cycles.tolist()
    assert np.bincount(found.issues[:, 4], minlength=len(program.op_name)).tolist() == result.op_issued.tolist()
    assert found.finished
    assert found.end == int(result.block_end.max())
    counted = dict(zip(SAMPLED, found.samples.sum(axis=0).tolist(), strict=True))
    assert counted == {name: getattr(result, name) for name in SAMPLED}
    for block, start in enumerate(result.block_start.tolist()):
        own = spans[spans[:, 1] == block]
        if len(own):
            assert own[:, 3].min() == start
            assert (own[:, 3] + own[:, 4]).max() == result.block_end[block]


@settings(RELAXED)
@given(program=programs, gpu=gpus(), first=st.integers(0, 60), cycles=st.integers(1, 60))
def test_window_is_a_part_of_the_whole(program: Program, gpu: Gpu, first: int, cycles: int) -> None:
    whole = recorded(program, gpu, 2, Window(0, 2000))
    if first >= whole.end:
        with pytest.raises(PptError, match="there is no cycle"):
            recorded(program, gpu, 2, Window(first, cycles))
        return
    part = recorded(program, gpu, 2, Window(first, cycles))
    end = min(first + cycles, whole.end)
    assert (part.first, part.end) == (first, end)
    assert charged(part) == {key: why for key, why in charged(whole).items() if first <= key[1] < end}
    inside = (whole.issues[:, 0] >= first) & (whole.issues[:, 0] < end)
    assert part.issues.tolist() == whole.issues[inside].tolist()
    assert part.samples.tolist() == whole.samples[first:end].tolist()
    assert part.busy.tolist() == whole.busy[first:end].tolist()


def charged(found: Recording) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(warp slot, cycle) -> block, warp, reason; each at most once."""
    cells: dict[tuple[int, int], tuple[int, int, int]] = {}
    for slot, block, warp, start, length, why in found.spans.tolist():
        for cycle in range(start, start + length):
            assert (slot, cycle) not in cells
            cells[slot, cycle] = (block, warp, why)
    return cells


@pytest.mark.parametrize("window", [(-1, 5), (0, 0), (0, recording.MOST_CYCLES + 1)])
def test_windows_that_are_none(window: tuple[int, int]) -> None:
    with pytest.raises(PptError, match="a window of"):
        Window(*window)
