"""The steady extrapolation against a complete run of a slot scheduler over the same blocks."""

from __future__ import annotations

import heapq
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from timed import timed

from ppt_gpu.scale.blocks.distribution import plan, spread_grid
from ppt_gpu.scale.blocks.neighbours import neighbour_blocks
from ppt_gpu.scale.levels.steady import extrapolate_steady, steady_prediction
from ppt_gpu.scale.occupancy.occupancy import Occupancy


def holding(blocks: int) -> Occupancy:
    return Occupancy(blocks, 1, blocks, 1.0, ("blocks",), {"blocks": blocks}, 0, 0, 0, 0)


def chip(sms: int) -> SimpleNamespace:
    return SimpleNamespace(sm=SimpleNamespace(count=sms))


def slots(durations: list[int], resident: int, stagger: int) -> SimpleNamespace:
    """`resident` slots; slot s starts at s * stagger; a finished block is replaced at once."""
    free = [slot * stagger for slot in range(min(resident, len(durations)))]
    ends = []
    for duration in durations:
        end = heapq.heappop(free) + duration
        ends.append(end)
        heapq.heappush(free, end)
    return SimpleNamespace(block_end=np.array(ends, np.int64), cycles=max(ends), issued=0)


@given(
    resident=st.integers(1, 9),
    blocks=st.integers(1, 300),
    duration=st.integers(50, 5000),
    share=st.floats(0, 1),
    sms=st.integers(1, 20),
)
@settings(max_examples=150, deadline=None)
def test_equal_blocks_are_extrapolated_exactly(
    resident: int, blocks: int, duration: int, share: float, sms: int
) -> None:
    stagger = int(share * duration / resident)
    found = steady_prediction(
        timed(lambda ids: slots([duration] * len(ids), resident, stagger)), blocks * sms, holding(resident), chip(sms)
    )
    whole = slots([duration] * blocks, min(resident, blocks), stagger)
    assert abs(found.cycles - whole.cycles) <= 1e-9 * whole.cycles
    assert found.plan.total_blocks_of_this_sm == blocks


@given(resident=st.integers(1, 8), blocks=st.integers(100, 400), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_random_blocks_are_extrapolated_within_their_spread(resident: int, blocks: int, seed: int) -> None:
    """Durations uniform in 900..1100: the rate is known to a few per cent from 13 waves at the most."""
    durations = np.random.default_rng(seed).integers(900, 1101, blocks)
    found = steady_prediction(
        timed(lambda ids: slots([int(durations[block]) for block in ids], resident, 0)),
        blocks,
        holding(resident),
        chip(1),
    )
    whole = slots([int(duration) for duration in durations], resident, 0)
    assert abs(found.cycles - whole.cycles) <= 0.1 * whole.cycles


@given(resident=st.integers(1, 8), blocks=st.integers(200, 600))
@settings(max_examples=40, deadline=None)
def test_a_triangular_grid_is_sampled_fairly(resident: int, blocks: int) -> None:
    """Block i takes 100 + 10 i cycles: sampling only the first waves would be wrong by a factor."""
    found = steady_prediction(
        timed(lambda ids: slots([100 + 10 * block for block in ids], resident, 0)), blocks, holding(resident), chip(1)
    )
    whole = slots([100 + 10 * block for block in range(blocks)], resident, 0)
    assert abs(found.cycles - whole.cycles) <= 0.15 * whole.cycles


@given(
    grid=st.integers(1, 5000),
    per_sm=st.integers(1, 32),
    sms=st.integers(1, 144),
    level=st.sampled_from(["workload", "steady"]),
    waves=st.integers(1, 9),
)
@settings(max_examples=200, deadline=None)
def test_plans_are_consistent(grid: int, per_sm: int, sms: int, level: str, waves: int) -> None:
    spread = spread_grid(grid, per_sm, sms)
    assert len(spread.sm_blocks(0)) == spread.max_blocks
    assert 1 <= spread.resident <= min(per_sm, spread.max_blocks)
    made = plan(grid, holding(per_sm), chip(sms), level, waves)
    own = spread.sm_blocks(0)
    assert list(made.blocks) == sorted(set(made.blocks)) and set(made.blocks) <= set(own)
    assert made.exact == (len(made.blocks) == len(own))
    if not made.exact:
        extrapolated = len(own) - len(made.blocks)
        assert level == "workload" or extrapolated % spread.resident == 0
    whole = plan(grid, holding(per_sm), chip(sms), "grid", waves)
    assert whole.exact and list(whole.blocks) == list(range(grid))
    near = neighbour_blocks(spread, made.blocks[: made.resident], (grid, 1, 1))
    assert len(near) <= 8 * made.resident
    assert all(0 <= other.block < grid and other.block % sms == other.offset > 0 for other in near)


@given(st.integers(3, 20), st.integers(1, 8), st.integers(1, 4000))
@settings(max_examples=50, deadline=None)
def test_more_blocks_never_take_less_time(waves: int, resident: int, extra: int) -> None:
    def predict(blocks: int) -> float:
        made = plan(blocks, holding(resident), chip(1), "steady", waves)
        return extrapolate_steady(slots([700] * len(made.blocks), made.resident, 13), made).cycles

    assert predict(extra + 1) >= predict(extra) - 1e-6


@given(
    blocks=st.integers(1, 2000), resident=st.integers(1, 9), sms=st.integers(1, 20), bunched=st.booleans(),
)  # fmt: skip
def test_every_block_has_one_place(blocks: int, resident: int, sms: int, bunched: bool) -> None:
    spread = spread_grid(blocks, resident, sms, bunched)
    own = [spread.sm_blocks(sm) for sm in range(sms)]
    assert sorted(block for ids in own for block in ids) == list(range(blocks))
    assert max(map(len, own)) == len(own[0]) == spread.max_blocks
    for sm, ids in enumerate(own):
        assert ids == sorted(ids)
        places = spread.place(np.array(ids, np.int64))
        assert [part.tolist() for part in places] == [[sm] * len(ids), list(range(len(ids)))]
