"""The simulation on shipped machines: ping-pong, halo, windows and collectives equal their closed forms; contention."""

from __future__ import annotations

from typing import Any

import pytest

from ppt_gpu.cluster.collectives.collectives import KINDS, algorithms
from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings
from ppt_gpu.cluster.load import ClusterMachine, load_machine
from ppt_gpu.cluster.model.machine import GPU, HOST, Place
from ppt_gpu.common.errors import PptError

#: one GPU a node, all equally far
ONE = load_machine("alps_one", 8, ["network=single_switch"])


def run(machine: ClusterMachine, program: Any, **how: Any) -> Outcome:
    return simulate(machine, program, Settings(digest=True), collapse=False, **how)


def ping_pong(nbytes: int, memory: str, peer: int, turns: int = 3) -> Any:
    def app(rank: Any) -> Any:
        if rank.index not in (0, peer):
            return
        for _ in range(turns):
            for sender in (0, peer):
                if rank.index == sender:
                    yield rank.isend(peer - sender, nbytes, memory=memory)
                else:
                    yield rank.irecv(sender, nbytes, memory=memory)

    return app


@pytest.mark.parametrize("nbytes", [1, 200, 4096, 60_000, 1 << 20])
@pytest.mark.parametrize("memory", [GPU, HOST])
@pytest.mark.parametrize(("name", "peer"), [("dgx_h100", 1), ("dgx_h100", 8), ("alps_gh200", 5), ("k40_node", 1)])
def test_ping_pong_takes_the_duration_of_its_messages(name: str, peer: int, memory: str, nbytes: int) -> None:
    machine = load_machine(name, 2)
    there = Place(*divmod(peer, machine.gpus_per_node), memory)
    one = machine.transfer(Place(0, 0, memory), there, nbytes)
    found = run(machine, ping_pong(nbytes, memory, peer))
    assert found.ranks[0].end == 6 * one.duration


@pytest.mark.parametrize("nbytes", [512, 1 << 18])
def test_a_ring_of_neighbours_takes_one_message_a_turn(nbytes: int) -> None:
    def halo(rank: Any) -> Any:
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        for _ in range(4):
            yield [rank.irecv(left, nbytes), rank.isend(right, nbytes)]

    one = ONE.transfer(Place(0, 0, GPU), Place(1, 0, GPU), nbytes)
    assert run(ONE, halo).time == pytest.approx(4 * one.duration, abs=4)


@pytest.mark.parametrize("nbytes", [1, 8192, 1 << 20])
@pytest.mark.parametrize(("name", "peer"), [("alps_gh200", 1), ("alps_gh200", 4), ("alps_openmpi", 1)])
def test_windows_of_messages_as_osu_bw_sends_them(name: str, peer: int, nbytes: int) -> None:
    """The closed form of `validate cluster` is what the simulation says, within the rounding of one message."""
    from ppt_gpu.validate.cluster.sets import ANSWER, WINDOW, window_time

    def app(rank: Any) -> Any:
        if rank.index == 0:
            yield [rank.isend(peer, nbytes) for _ in range(WINDOW)]
            yield rank.irecv(peer, ANSWER)
        elif rank.index == peer:
            yield [rank.irecv(0, nbytes) for _ in range(WINDOW)]
            yield rank.isend(0, ANSWER)

    machine = load_machine(name, 2)
    expected = window_time(machine, Place(0, 0, GPU), Place(*divmod(peer, machine.gpus_per_node), GPU), nbytes)
    assert run(machine, app).time == pytest.approx(expected, rel=0.02)


EXACT = [(kind, algorithm) for kind in KINDS for algorithm in algorithms(kind)]
EXACT = [each for each in EXACT if each[1] not in ("linear", "hierarchical")]


@pytest.mark.parametrize(("kind", "algorithm"), EXACT)
def test_collectives_message_by_message_equal_their_closed_forms(kind: str, algorithm: str) -> None:
    nbytes = 1 << 20

    def app(rank: Any) -> Any:
        yield rank.collective(kind, nbytes, algorithm=algorithm)

    expected = ONE.collective(kind, nbytes, ONE.nodes, 1, algorithm).duration
    assert run(ONE, app).time == pytest.approx(expected, rel=1e-3)


def test_a_collective_of_the_library_takes_its_time() -> None:
    machine = load_machine("dgx_h100", 2)

    def app(rank: Any) -> Any:
        yield rank.all_reduce(1 << 26)

    expected = machine.collective("all_reduce", 1 << 26, 2, 8, "nccl").duration
    assert run(machine, app).time == machine.launch_overhead(0) + expected


def many_to_one(rank: Any) -> Any:
    """Everybody sends 8 MiB to rank 0."""
    if rank.index == 0:
        yield [rank.irecv(other, 1 << 23) for other in range(1, rank.size)]
    else:
        yield rank.isend(0, 1 << 23)


@pytest.mark.parametrize("contention", ["ports", "links", "fair"])
def test_seven_senders_share_the_receivers_link(contention: str) -> None:
    machine = load_machine("alps_one", 8, [f"network.contention={contention}"])
    rate = machine.spec.network.bandwidth * machine.spec.network.efficiency
    least = 7 * (1 << 23) / rate * 1e12
    assert least < run(machine, many_to_one).time < 1.05 * least


def crossing(rank: Any) -> Any:
    """On the ring of four switches: nodes 0 and 1 to nodes 2 and 3, over the two links between their switches."""
    if rank.index in (0, 1):
        yield rank.isend(rank.index + 2, 1 << 24)
    elif rank.index in (2, 3):
        yield rank.irecv(rank.index - 2, 1 << 24)


@pytest.mark.parametrize(("first", "slower"), [("s0-s1*2", 1.0), ("s0-s1", 2.0)])
@pytest.mark.parametrize("contention", ["links", "fair"])
def test_links_inside_the_network_limit(contention: str, first: str, slower: float) -> None:
    edges = [f"n{node}-s{node // 2}" for node in range(8)] + [first, "s1-s2", "s2-s3", "s3-s0"]
    machine = load_machine(
        "alps_one", 8, ["network=ring_of_four", f"network.contention={contention}", f"network.edges={edges}"]
    )
    one = machine.transfer(Place(0, 0, GPU), Place(2, 0, GPU), 1 << 24)
    assert run(machine, crossing).time == pytest.approx(
        one.duration + (slower - 1) * one.tail, rel=0.51 * (slower == 1)
    )


def test_fair_links_end_all_alike_where_queues_end_one_after_another() -> None:
    """Three flows over one link: shared, all end together; queued, the first ends after a third of the time."""
    ends = {}
    for contention in ("fair", "ports"):
        machine = load_machine("alps_one", 4, [f"network.contention={contention}", "network=single_switch"])

        def app(rank: Any, ends_of: list[float]) -> Any:
            if rank.index:
                yield rank.isend(0, 1 << 25)
                return
            receives = [rank.irecv(other, 1 << 25) for other in (1, 2, 3)]
            for receive in receives:
                yield receive
                ends_of.append(rank.time)

        times: list[float] = []
        run(machine, lambda rank, times=times: app(rank, times))
        ends[contention] = times
    assert ends["fair"][0] == pytest.approx(ends["fair"][2], rel=0.01)
    assert ends["ports"][0] == pytest.approx(ends["ports"][2] / 3, rel=0.05)
    assert ends["fair"][2] == pytest.approx(ends["ports"][2], rel=0.05)


def test_fair_runs_are_equal_on_both_queues_and_need_one_process() -> None:
    machine = load_machine("alps_gh200", 4, ["network.contention=fair"])

    def both(rank: Any) -> Any:
        others = [other for other in range(rank.size) if other != rank.index]
        yield [rank.irecv(o, 50_000) for o in others] + [rank.isend(o, 40_000 + rank.index) for o in others]

    assert run(machine, both).sha256 == run(machine, both, queue="simpy").sha256
    with pytest.raises(PptError, match="links that are shared fairly need one process, not 2"):
        run(machine, both, partitions=2)


def test_links_are_equal_in_any_partition() -> None:
    machine = load_machine("alps_gh200", 8, ["network=ring_of_four", "mpi=openmpi_cxi"])

    def app(rank: Any) -> Any:
        for turn in range(1, 4):
            target, source = (rank.index + 5 * turn) % rank.size, (rank.index - 5 * turn) % rank.size
            yield [rank.irecv(source, 1 << 20), rank.isend(target, 10_000 * turn)]

    digests = {run(machine, app, partitions=parts).sha256 for parts in (1, 2, 4)}
    assert len(digests) == 1 and "" not in digests


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast"])
@pytest.mark.parametrize(("name", "nodes"), [("dgx_h100", 4), ("alps_gh200", 2)])
def test_hierarchical_collectives_equal_their_closed_forms(name: str, nodes: int, kind: str) -> None:
    """NVLink within the nodes, NICs between them; on Alps a copy's start keeps a port longer than its bytes."""
    machine = load_machine(name, nodes)

    def app(rank: Any) -> Any:
        yield rank.collective(kind, 1 << 22, algorithm="hierarchical")

    expected = machine.collective(kind, 1 << 22, nodes, machine.gpus_per_node, "hierarchical").duration
    assert run(machine, app).time == expected
