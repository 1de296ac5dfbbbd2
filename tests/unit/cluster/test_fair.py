"""Max-min fair shares: the plain definition in exact fractions, and the properties that define them."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.cluster.engine.transport_fair import max_min, plain_max_min

LINKS = st.integers(0, 7)
FLOWS = st.lists(st.lists(LINKS, max_size=4, unique=True), max_size=12)
CAPACITY = st.lists(st.integers(1, 100), min_size=8, max_size=8)


@settings(deadline=None)
@given(FLOWS, CAPACITY)
def test_agrees_with_the_definition(flows: list[list[int]], capacity: list[int]) -> None:
    quick = max_min(flows, dict(enumerate(map(float, capacity))))
    plain = plain_max_min(flows, dict(enumerate(map(Fraction, capacity))))
    for rate, exact in zip(quick, plain, strict=True):
        assert rate == (float("inf") if exact is None else pytest.approx(float(exact), rel=1e-9))


@settings(deadline=None)
@given(FLOWS, CAPACITY)
def test_every_flow_has_a_full_link_on_which_nobody_has_more(flows: list[list[int]], capacity: list[int]) -> None:
    rates = max_min(flows, dict(enumerate(map(float, capacity))))
    taken = [sum(rate for rate, links in zip(rates, flows, strict=True) if link in links) for link in range(8)]
    assert all(total <= most * (1 + 1e-9) for total, most in zip(taken, capacity, strict=True))
    for rate, links in zip(rates, flows, strict=True):
        full = [link for link in links if taken[link] >= capacity[link] * (1 - 1e-9)]
        most = [max(r for r, each in zip(rates, flows, strict=True) if link in each) for link in full]
        assert not links or any(rate >= largest * (1 - 1e-9) for largest in most)


def test_a_worked_example() -> None:
    """Three flows on a link of 9, one of them also on a link of 2, another also on one of 20 with a fourth flow."""
    assert max_min([[0, 1], [0], [0, 2], [2]], {0: 9.0, 1: 2.0, 2: 20.0}) == [2.0, 3.5, 3.5, 16.5]


def test_a_flow_that_crosses_a_link_twice_counts_once_and_one_without_links_is_free() -> None:
    assert max_min([[3, 3], [3], []], {3: 10.0}) == [5.0, 5.0, float("inf")]
