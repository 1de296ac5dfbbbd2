"""One node's ranks for all: equal to the full run, in every time of every rank, or not attempted."""

from __future__ import annotations

from typing import Any

import pytest
from plain_machine import PlainMachine
from runs import halo, large_halo

from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings

DIGEST = Settings(digest=True)


def ring(rank: Any) -> Any:
    before, behind = rank.grid(1).neighbours(0)
    for turn in range(4):
        rank.launch(1e-6 * (1 + rank.local), stream=turn)
        yield [rank.irecv(before, 9000), rank.isend(behind, 9000), rank.all_gather(100, group=rank.node_group())]
        rank.copy("gpu", "host", 4000)


def far_ring(rank: Any) -> Any:
    """All GPUs of a node send to the same distance, so that they meet at the ports."""
    grid = rank.grid(1)
    step = rank.local_size + 1
    peers = grid.neighbour(0, -step), grid.neighbour(0, step)
    for _ in range(3):
        receives = [rank.irecv(peers[0], 5000), rank.irecv(peers[1], 5000, 1)]
        yield [*receives, rank.isend(peers[1], 5000), rank.isend(peers[0], 5000, 1)]


@pytest.mark.parametrize("app", [halo, large_halo, ring, far_ring])
@pytest.mark.parametrize(("nodes", "gpus"), [(1, 8), (2, 4), (3, 2), (8, 8), (12, 1), (30, 4)])
def test_one_node_stands_for_all(app: Any, nodes: int, gpus: int) -> None:
    machine = PlainMachine(nodes=nodes, gpus_per_node=gpus)
    full = simulate(machine, app, DIGEST, collapse=False)
    found = simulate(machine, app, DIGEST)
    assert found.stands_for == nodes
    assert (found.sha256, found.time, found.size) == (full.sha256, full.time, full.size)
    assert found.messages * nodes == full.messages
    assert nodes == 1 or len(found.ranks) == gpus


def by_number(rank: Any) -> Any:
    yield rank.launch(1e-6 * rank.index)


def by_position(rank: Any) -> Any:
    yield rank.launch(1e-6 * sum(rank.grid(2).position))


def to_the_first(rank: Any) -> Any:
    yield rank.isend(0, 8)


def open_grid(rank: Any) -> Any:
    yield [rank.isend(peer, 8) for peer in rank.grid(1, periodic=False).neighbours(0) if peer is not None]


def two_grids(rank: Any) -> Any:
    rank.grid(1)
    rank.grid(2)
    yield None


def sorts_its_neighbours(rank: Any) -> Any:
    yield [rank.isend(peer, 8) for peer in sorted(rank.grid(1).neighbours(0))]


def column(rank: Any) -> Any:
    yield rank.all_reduce(8, group=range(rank.local, rank.size, rank.local_size))


def message_by_message(rank: Any) -> Any:
    yield rank.all_reduce(8, algorithm="ring")


@pytest.mark.parametrize(
    ("app", "why"),
    [
        (by_number, "rank.index"),
        (by_position, "position"),
        (to_the_first, "numbers"),
        (open_grid, "not periodic"),
        (two_grids, "several shapes"),
        (sorts_its_neighbours, "more with its neighbours"),
        (column, "group"),
        (message_by_message, "message by message"),
    ],
)
def test_what_differs_between_nodes_is_simulated_rank_by_rank(app: Any, why: str) -> None:
    machine = PlainMachine(nodes=4, gpus_per_node=2)
    try:
        note = simulate(machine, app).note
    except Exception as error:  # such as messages that nobody receives: found by the full run
        assert "do not match" in str(error)
        from ppt_gpu.cluster.engine.simulate import _collapsed

        note = str(_collapsed(machine, app, Settings()))
    assert why in note


def test_machines_and_times_that_differ() -> None:
    switched = PlainMachine(nodes=4, hops=1, switches=3, uniform=False)
    assert "equally far" in simulate(switched, halo).note
    assert "random" in simulate(PlainMachine(nodes=4), halo, Settings(jitter=0.1)).note
