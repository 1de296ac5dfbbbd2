"""The compiled passes behind lines on their way agree with their plain versions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.in_flight import reference_asked, reference_of_block, reference_waits_before

from ppt_gpu.sm.accesses.scoreboard import Schedule
from ppt_gpu.sm.accesses.sharing import Touches
from ppt_gpu.sm.l2_sharing.access_epochs import waits_before
from ppt_gpu.sm.l2_sharing.in_flight import asked
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_BARRIER, KIND_COMPUTE, KIND_LOAD, KIND_SHARED

KINDS = np.array([KIND_COMPUTE, KIND_LOAD, KIND_ATOMIC, KIND_SHARED, KIND_BARRIER])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_waits_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, 3)
    count = int(lengths.sum())
    plan = Schedule(
        path_start=np.concatenate(([0], np.cumsum(lengths))),
        entry_op=rng.integers(0, 5, count).astype(np.int32),
        entry_wait=(rng.integers(0, 16, count) * rng.integers(0, 2, count)).astype(np.uint64)
        | (rng.integers(0, 2, count).astype(np.uint64) << np.uint64(63)),
        entry_slot=rng.choice((-1, 0, 1, 2, 3, 63), count).astype(np.int8),
    )
    ops = SimpleNamespace(kind=KINDS, recorded=(KINDS != KIND_COMPUTE) & (KINDS != KIND_BARRIER))
    found = waits_before(plan, ops)  # type: ignore[arg-type]
    loads = (KINDS == KIND_LOAD) | (KINDS == KIND_ATOMIC)
    plain = [reference_waits_before(plan, path, ops.recorded, loads, KINDS == KIND_BARRIER) for path in range(3)]
    assert found.depth.tolist() == [deep for path in plain for deep in path.depth]
    assert found.barriers.tolist() == [number for path in plain for number in path.barriers]
    assert found.rounds.tolist() == [deep for path in plain for deep in path.rounds]
    assert found.start.tolist() == [ops.recorded[plan.entry_op[:end]].sum() for end in plan.path_start]
    paths = rng.integers(0, 3, 6).astype(np.int32)
    blocks = [reference_of_block([plain[path] for path in paths[first : first + 2]]) for first in range(0, 6, 2)]
    assert found.of_warps(paths, 2).tolist() == [deep for block in blocks for deep in block]


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
    used, first = rng.integers(0, 16, lines).astype(np.uint8), rng.integers(0, 7, (lines, 4))
    found, plain = asked(touches, used, first), reference_asked(touches, used.tolist(), first)
    assert found.users.tolist() == plain.users.tolist()
    assert found.earlier.tolist() == plain.earlier.tolist()
    assert found.at_once.tolist() == plain.at_once.tolist()
