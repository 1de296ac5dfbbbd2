"""Flows that share links: worked by hand, and never faster than the links allow."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.cluster.engine.transport_fair import Flows
from ppt_gpu.cluster.model.machine import PS_PER_S

SECOND = PS_PER_S


def run(rates: dict[int, float], begun: list[tuple[int, tuple[int, ...], int]]) -> list[int]:
    """When each of (start, links, bytes) ends."""
    flows, ends = Flows(rates.__getitem__), [-1] * len(begun)
    times = sorted({start for start, _, _ in begun})
    while times or flows.flows:
        time = min([*times[:1], *([end] if (end := flows.next_end()) is not None else [])])
        begins = time in times
        times = [each for each in times if each > time]
        new = {n: (links, nbytes) for n, (start, links, nbytes) in enumerate(begun) if begins and start == time}
        for number in flows.change(time, new):
            ends[number] = time
    return ends


def test_alone_a_flow_takes_bytes_over_rate() -> None:
    assert run({0: 100.0, 1: 50.0}, [(0, (0, 1), 200)]) == [4 * SECOND]


def test_two_flows_share_until_one_ends() -> None:
    """100 B/s: 50 each until 2 s, when the short one has its 100 B; the long one's other 200 B take 2 s more."""
    assert run({0: 100.0}, [(0, (0,), 100), (0, (0,), 300)]) == [2 * SECOND, 4 * SECOND]


def test_a_late_flow_slows_the_first() -> None:
    """300 B alone for 1 s, then 50 B/s each: the second ends at 3 s with 100 B, the first 100 B later at 4 s."""
    assert run({0: 100.0}, [(0, (0,), 300), (SECOND, (0,), 100)]) == [4 * SECOND, 3 * SECOND]


def test_what_one_link_withholds_another_flow_gets() -> None:
    """The first flow has 20 B/s of its second link; the second gets the other 80 of the first link."""
    assert run({0: 100.0, 1: 20.0}, [(0, (0, 1), 100), (0, (0,), 400)]) == [5 * SECOND, 5 * SECOND]


def test_nothing_to_send_ends_at_once() -> None:
    assert run({0: 100.0}, [(7, (0,), 0), (7, (0,), 100)]) == [7, 7 + SECOND]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), st.integers(1, 999)
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
)
def test_links_carry_no_more_than_their_rate_and_are_never_idle_while_asked(
    flows: list[tuple[int, list[int], int]], capacity: list[int]
) -> None:
    begun = [(start * SECOND, tuple(links), nbytes) for start, links, nbytes in flows]
    rates = dict(enumerate(map(float, capacity)))
    ends = run(rates, begun)
    for (start, links, nbytes), end in zip(begun, ends, strict=True):
        assert end - start >= nbytes / min(rates[link] for link in links) * SECOND - 10
    for link, rate in rates.items():
        crossing = [
            (start, nbytes, end) for (start, links, nbytes), end in zip(begun, ends, strict=True) if link in links
        ]
        if crossing:
            first, last = min(each[0] for each in crossing), max(each[2] for each in crossing)
            assert sum(each[1] for each in crossing) <= rate * (last - first) / SECOND + 1e-6
