"""Algorithm 4.1 reaches the optimum that the formula over subsets of ports states."""

from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.multicore.core_models.s_core import fullest_load, spread

PORTS = 6
KIND = st.tuples(
    st.integers(0, 1000).map(float),
    st.sets(st.integers(0, PORTS - 1), min_size=1).map(lambda ports: tuple(sorted(ports))),
)


@given(st.lists(KIND, min_size=1, max_size=10))
def test_the_iteration_ends_at_the_best_spreading(kinds: list[tuple[float, tuple[int, ...]]]) -> None:
    load = spread(kinds, PORTS)
    total = sum(count for count, _ in kinds)
    assert abs(sum(load) - total) <= 1e-9 * max(total, 1)
    assert abs(max(load) - fullest_load(kinds, PORTS)) <= 1e-6 * max(total, 1)


@given(st.lists(KIND, min_size=1, max_size=10))
def test_no_port_gets_what_it_cannot_run(kinds: list[tuple[float, tuple[int, ...]]]) -> None:
    load = spread(kinds, PORTS)
    for port in range(PORTS):
        most = sum(count for count, allowed in kinds if port in allowed)
        least = sum(count for count, allowed in kinds if allowed == (port,))
        assert least - 1e-9 <= load[port] <= most + 1e-9
