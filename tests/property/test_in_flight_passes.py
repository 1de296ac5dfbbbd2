"""The compiled passes behind lines on their way agree with their plain versions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.sm.in_flight import asked
from ppt_gpu.sm.in_flight_reference import reference_asked, reference_waits_before
from ppt_gpu.sm.moments import waits_before
from ppt_gpu.sm.program import KIND_ATOMIC, KIND_COMPUTE, KIND_LOAD, KIND_SHARED
from ppt_gpu.sm.scoreboard import Schedule
from ppt_gpu.sm.sharing import Touches

KINDS = np.array([KIND_COMPUTE, KIND_LOAD, KIND_ATOMIC, KIND_SHARED])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_waits_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, 3)
    count = int(lengths.sum())
    plan = Schedule(
        path_start=np.concatenate(([0], np.cumsum(lengths))),
        entry_op=rng.integers(0, 4, count).astype(np.int32),
        entry_wait=(rng.integers(0, 16, count) * rng.integers(0, 2, count)).astype(np.uint64)
        | (rng.integers(0, 2, count).astype(np.uint64) << np.uint64(63)),
        entry_slot=rng.choice((-1, 0, 1, 2, 3, 63), count).astype(np.int8),
    )
    ops = SimpleNamespace(kind=KINDS, recorded=KINDS != KIND_COMPUTE)
    start, depth = waits_before(plan, ops)  # type: ignore[arg-type]
    loads = (KINDS == KIND_LOAD) | (KINDS == KIND_ATOMIC)
    assert depth.tolist() == reference_waits_before(plan, ops.recorded, loads)
    assert start.tolist() == [ops.recorded[plan.entry_op[:end]].sum() for end in plan.path_start]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines, count, sms = 5, int(rng.integers(0, 60)), 4
    touches = Touches(
        line=rng.integers(0, lines, count).astype(np.int32),
        sectors=rng.integers(1, 16, count).astype(np.uint8),
        sm=np.sort(rng.integers(0, sms, count)).astype(np.int32),
        moment=rng.integers(0, 6, count),
        stands_for=rng.choice((1.0, 7.5), sms),
    )
    used, first = rng.integers(0, 16, lines).astype(np.uint8), rng.integers(0, 7, lines)
    found, plain = asked(touches, used, first), reference_asked(touches, used.tolist(), first.tolist())
    assert found.users.tolist() == plain.users.tolist()
    assert found.earlier.tolist() == plain.earlier.tolist()
