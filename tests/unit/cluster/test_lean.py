"""A run leaves no cycles behind: it works without the garbage collector, and keeps nothing of what is done."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from plain_machine import PlainMachine
from runs import APPLICATIONS

from ppt_gpu.cluster.engine.queue import WindowQueue
from ppt_gpu.cluster.engine.simulate import lean_collection
from ppt_gpu.cluster.engine.world import Settings, World

MACHINE = PlainMachine(nodes=4, gpus_per_node=2)


def world_after(app: Any, turns: int) -> World:
    def several(rank: Any) -> Any:
        for _ in range(turns):
            yield from app(rank)

    world = World(MACHINE, several, WindowQueue(MACHINE.lookahead), Settings())
    world.resume()
    world.window(1 << 60)
    return world


@pytest.fixture(scope="module")
def only_what_is_new() -> Iterator[None]:
    """What other tests have left is not looked through at each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("only_what_is_new")
@pytest.mark.parametrize("name", APPLICATIONS)
def test_no_cycles(name: str) -> None:
    counts = []
    for turns in (1, 6):
        gc.collect()
        with lean_collection():
            world = world_after(APPLICATIONS[name], turns)
            counts.append(gc.collect())
            assert all(rank.ended >= 0 for rank in world.own)
            assert not any(rank.queues for rank in world.own)
            assert not world.collectives.open
            del world
    assert counts[1] <= counts[0] + 50, "cycles of the run, beside a few of other threads"
