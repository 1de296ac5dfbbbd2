"""Times that can be worked out by hand: messages, ports, streams, collectives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_machine import US, PlainMachine

from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings
from ppt_gpu.cluster.model.machine import Place

MACHINE = PlainMachine(nodes=2, gpus_per_node=2)


def ends(app: Any, machine: PlainMachine = MACHINE) -> list[int]:
    """When each rank ends, in ps."""
    return [rank.end for rank in simulate(machine, app, collapse=False).ranks]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20_000), st.integers(1, 5), st.sampled_from([(0, 1), (0, 2), (3, 1), (2, 3)]))
def test_ping_pong(nbytes: int, turns: int, ranks: tuple[int, int]) -> None:
    """Every message takes what the machine says: overheads, latency, and bytes at the rate."""
    first, second = ranks

    def app(rank: Any) -> Any:
        for _ in range(turns):
            if rank.index == first:
                yield rank.isend(second, nbytes)
                yield rank.irecv(second, nbytes)
            elif rank.index == second:
                yield rank.irecv(first, nbytes)
                yield rank.isend(first, nbytes)

    source, target = (Place(*divmod(rank, 2), "gpu") for rank in ranks)
    one = MACHINE.transfer(source, target, nbytes).duration
    assert ends(app)[first] == 2 * turns * one


def test_messages_queue_for_the_nic() -> None:
    """Both GPUs of node 0 send at once: the second waits until the first has left; the target takes them in turn."""

    def app(rank: Any) -> Any:
        if rank.index < 2:
            yield rank.isend(rank.index + 2, 8000)
        else:
            yield rank.irecv(rank.index - 2, 8000)

    alone = US // 2 + 2 * US + 8000 * 100 + US // 2
    assert ends(app) == [US // 2, US // 2, alone, alone + 8000 * 100]


def test_many_to_one_fill_the_target_port() -> None:
    machine = PlainMachine(nodes=5, gpus_per_node=1)

    def app(rank: Any) -> Any:
        if rank.index:
            yield rank.isend(0, 4000)
        else:
            yield [rank.irecv(other, 4000) for other in range(1, 5)]

    assert ends(app, machine)[0] == US // 2 + 2 * US + 4 * 4000 * 100 + US // 2


def test_a_rendezvous_waits_for_its_receive() -> None:
    def app(rank: Any) -> Any:
        if rank.index == 0:
            yield rank.isend(2, 20_000)
        elif rank.index == 2:
            rank.compute(1e-3)
            yield rank.irecv(0, 20_000)

    answer = 1000 * US + 2 * US
    found = ends(app)
    assert found[0] == answer + 20_000 * 100
    assert found[2] == answer + 2 * US + 20_000 * 100 + US // 2


def test_an_early_message_is_copied() -> None:
    def app(rank: Any) -> Any:
        if rank.index == 0:
            yield rank.isend(2, 600)
        elif rank.index == 2:
            rank.compute(1e-3)
            yield rank.irecv(0, 600)

    assert ends(app)[2] == 1000 * US + 600 + US // 2


def test_streams_and_events() -> None:
    """Kernels take turns on the GPU, first ready first; a stream keeps its order; events join streams."""

    def app(rank: Any) -> Any:
        slow = rank.launch(10e-6, stream="a")
        behind = rank.launch(5e-6, stream="a")
        quick = rank.launch(1e-6, stream="b")
        joined = rank.launch(2e-6, stream="b", after=[behind])
        yield [slow, behind, quick, joined]
        assert [slow.done, quick.done, behind.done, joined.done] == [10 * US, 11 * US, 16 * US, 18 * US]
        yield rank.copy("gpu", "host", 1000, stream="b")

    assert ends(app, PlainMachine(nodes=1, gpus_per_node=1)) == [18 * US + 50_000]


def test_launches_take_the_host() -> None:
    def app(rank: Any) -> Any:
        for _ in range(3):
            rank.launch(1e-6)
        yield rank.record()

    assert ends(app, PlainMachine(nodes=1, gpus_per_node=1, launch=4 * US)) == [13 * US]


def test_a_collective_starts_with_its_last_member() -> None:
    def app(rank: Any) -> Any:
        rank.compute(1e-6 * rank.index)
        yield rank.all_reduce(80)

    duration = MACHINE.collective("all_reduce", 80, 2, 2, "nccl").duration
    assert ends(app) == [3 * US + duration] * 4


def test_a_shared_switch_port_is_waited_for() -> None:
    """Messages to one node from two others cross its port of the last switch one behind the other."""
    machine = PlainMachine(nodes=3, gpus_per_node=1, hops=1, switches=1, uniform=False)

    def app(rank: Any) -> Any:
        if rank.index:
            yield rank.isend(0, 1000)
        else:
            yield [rank.irecv(1, 1000), rank.irecv(2, 1000)]

    assert ends(app, machine)[0] == US // 2 + 2 * US + 2 * US + 2 * 1000 * 100 + US // 2


def test_jitter_lengthens_kernels_within_its_bounds() -> None:
    def app(rank: Any) -> Any:
        for _ in range(10):
            yield rank.launch(10e-6)

    found = [rank.end for rank in simulate(MACHINE, app, Settings(jitter=0.5, seed=7)).ranks]
    assert len(set(found)) == 4
    assert all(100 * US < end < 150 * US for end in found)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 8])
def test_an_all_reduce_around_a_ring(size: int) -> None:
    """2 (p - 1) steps of n / p bytes each, sent and received at once (Thakur et al., 2005)."""
    machine = PlainMachine(nodes=size, gpus_per_node=1)
    part = 600

    def app(rank: Any) -> Any:
        yield rank.all_reduce(part * size, algorithm="ring")

    step = US // 2 + 2 * US + part * 100 + US // 2
    assert ends(app, machine) == [2 * (size - 1) * step + (size - 1) * part] * size
