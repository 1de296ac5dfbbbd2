"""Waits for memory over the course of a launch: by hand, its bounds, and the overlap found from two simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.scale.levels.contention import LEAST, MOST, Course, course, unlimited
from ppt_gpu.spec import load_gpu


def blocks(*each: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, end, demand = np.array(each, np.float64).T
    return start, end, demand


def course_of(*each: tuple[float, float, float]) -> Course:
    return course(*blocks(*each))


def test_the_last_block_has_memory_for_itself() -> None:
    """Two blocks ask for 1.5 of the bandwidth until 100; from then on the long one, alone, for half of it."""
    launch = course_of((0, 100, 100), (0, 200, 100))
    assert launch.stretched(MOST) == pytest.approx(150 + 100, rel=0.001)
    assert launch.stretched(LEAST) == 200 + 200  # nothing overlaps: latencies and traffic one after another


def test_a_gap_in_which_nobody_runs_stays() -> None:
    assert course_of((0, 10, 0), (30, 40, 0)).stretched(2.0) == 40


def test_what_ran_before() -> None:
    assert course_of((100, 110, 0)).stretched(LEAST, earlier=300.0) == 410
    assert course_of((100, 110, 0)).stretched(MOST, earlier=300.0) == pytest.approx(310, rel=0.001)


LAUNCHES = st.lists(st.tuples(st.floats(0, 500), st.floats(1, 300), st.floats(0, 400)), min_size=1, max_size=30)


@given(LAUNCHES, st.floats(LEAST, MOST), st.floats(0, 100))
def test_no_shorter_than_its_traffic_or_its_latencies(
    launch: list[tuple[float, float, float]], p: float, earlier: float
) -> None:
    start, end, demand = blocks(*((begin, begin + length, asked) for begin, length, asked in launch))
    ran = course(start, end, demand)
    cycles, traffic = ran.stretched(p, earlier), float(demand.sum()) + earlier
    assert max(float(end.max()), traffic) * (1 - 1e-9) <= cycles <= (float(end.max()) + traffic) * (1 + 1e-9)
    assert ran.stretched(LEAST, earlier) >= cycles * (1 - 1e-9)


@given(LAUNCHES, st.floats(LEAST, MOST))
def test_the_overlap_is_found(launch: list[tuple[float, float, float]], p: float) -> None:
    ran = course_of(*((begin, begin + length, asked) for begin, length, asked in launch))
    cycles = ran.stretched(p)
    assert ran.stretched(ran.overlap(cycles)) == pytest.approx(cycles, rel=1e-6)


def test_bandwidth_of_all_sms() -> None:
    gpu = load_gpu("a100")
    free = unlimited(gpu, 4)
    assert free.dram_bytes_per_cycle == 4 * gpu.dram_bytes_per_cycle and free.l2.bandwidth == 4 * gpu.l2.bandwidth
    assert (free.l2.size, free.dram.latency) == (gpu.l2.size, gpu.dram.latency)
