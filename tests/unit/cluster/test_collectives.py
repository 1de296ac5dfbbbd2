"""Schedules of collectives: messages match, everybody's part reaches whom it must, bytes are those of the algorithm."""

from collections import Counter, deque

import pytest

from ppt_gpu.cluster.collectives.collectives import KINDS, algorithms, schedule
from ppt_gpu.cluster.collectives.times import duration
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.model.machine import GPU, Place, Step, Transfer
from ppt_gpu.common.errors import PptError

EVERY = [(kind, algorithm) for kind in KINDS for algorithm in algorithms(kind)]
SIZES = (1, 2, 3, 4, 6, 7, 8, 12, 16)
EACH = 2  # GPUs of a node in the hierarchical algorithms


def steps_of(kind: str, algorithm: str, size: int, nbytes: int) -> list[list[Step]]:
    play = schedule(kind, algorithm, gpus_per_node=EACH)
    return [list(play(size, index, nbytes)) for index in range(size)]


def sizes(algorithm: str) -> list[int]:
    return [size for size in SIZES if algorithm != "hierarchical" or size % EACH == 0]


def play(steps: list[list[Step]]) -> tuple[list[set[int]], int]:
    """Whose data each member has seen when all steps have been played, and how many messages were sent.

    Messages between two members arrive in the order sent. Fails where a receive has no message, another size, or where
    nobody can go on.
    """
    size = len(steps)
    seen = [{index} for index in range(size)]
    wires: dict[tuple[int, int], deque[tuple[int, set[int]]]] = {}
    at, posted, sent = [0] * size, [False] * size, 0
    while any(at[index] < len(steps[index]) for index in range(size)):
        moved = False
        for index in range(size):
            if at[index] == len(steps[index]):
                continue
            step = steps[index][at[index]]
            if not posted[index]:
                for peer, nbytes in step.sends:
                    assert peer != index
                    wires.setdefault((index, peer), deque()).append((nbytes, set(seen[index])))
                    sent += 1
                posted[index] = moved = True
            waiting = Counter(peer for peer, _ in step.receives)
            if all(len(wires.get((peer, index), ())) >= count for peer, count in waiting.items()):
                for peer, nbytes in step.receives:
                    arrived, data = wires[peer, index].popleft()
                    assert arrived == nbytes
                    seen[index] |= data
                at[index] += 1
                posted[index], moved = False, True
        assert moved, "nobody can go on"
    assert not any(wires.values()), "messages that nobody received"
    return seen, sent


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
def test_messages_match_and_reach_everybody(kind: str, algorithm: str) -> None:
    for size in sizes(algorithm):
        for nbytes in (0, 1, 1000, 4096):
            seen, _ = play(steps_of(kind, algorithm, size, nbytes))
            if kind == "broadcast":
                assert all(0 in found for found in seen)
            elif kind != "reduce_scatter" or algorithm == "ring":
                assert all(found == set(range(size)) for found in seen)


def sent_by(steps: list[Step]) -> int:
    return sum(nbytes for step in steps for _, nbytes in step.sends)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_bytes_are_those_of_the_algorithm(size: int) -> None:
    """Thakur, Rabenseifner, Gropp 2005, for powers of two."""
    n, least = 1 << 16, (1 << 16) * (size - 1) // size
    log = size.bit_length() - 1
    expected = {
        ("all_reduce", "ring"): 2 * least,
        ("all_reduce", "recursive_doubling"): log * n,
        ("all_reduce", "halving_doubling"): 2 * least,
        ("all_reduce", "hierarchical"): 2 * least,
        ("all_gather", "ring"): least,
        ("all_gather", "recursive_doubling"): least,
        ("reduce_scatter", "ring"): least,
        ("reduce_scatter", "halving_doubling"): least,
        ("all_to_all", "ring"): least,
        ("all_to_all", "linear"): least,
        ("all_to_all", "recursive_doubling"): log * n // 2,
    }
    for (kind, algorithm), nbytes in expected.items():
        for steps in steps_of(kind, algorithm, size, n):
            assert sent_by(steps) == nbytes, (kind, algorithm)
    for kind, algorithm in (("all_reduce", "ring"), ("reduce_scatter", "ring"), ("all_reduce", "halving_doubling")):
        assert all(sum(step.reduce_bytes for step in steps) == least for steps in steps_of(kind, algorithm, size, n))


@pytest.mark.parametrize("size", range(1, 34))
def test_broadcast_sends_one_message_a_member_in_log_steps(size: int) -> None:
    steps = steps_of("broadcast", "tree", size, 100)
    assert play(steps)[1] == size - 1
    assert max(map(len, steps)) <= max(1, (size - 1).bit_length())


def test_unknown_names() -> None:
    with pytest.raises(PptError, match="unknown collective 'allreduce'") as caught:
        schedule("allreduce", "ring")
    assert "did you mean 'all_reduce'?" in str(caught.value)
    with pytest.raises(PptError, match="there is no algorithm 'rings' for all_reduce") as caught:
        schedule("all_reduce", "rings")
    assert "did you mean 'ring'?" in str(caught.value)
    with pytest.raises(PptError, match="there is no algorithm 'tree' for all_to_all"):
        load_machine("dgx_h100").collective("all_to_all", 8, 1, 8, "tree")
    with pytest.raises(PptError, match="hierarchical: 3 members do not fill nodes of 2 GPUs"):
        list(schedule("all_reduce", "hierarchical", gpus_per_node=2)(3, 0, 8))


class Flat:
    """Every pair alike: a message takes 1000 + its bytes, reducing a tenth of a byte's time."""

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer:
        return Transfer(nbytes, latency=700, tail=nbytes, send_overhead=200, receive_overhead=100, source_ports=())

    def reduce(self, gpu: int, memory: str, nbytes: int) -> int:
        return nbytes // 10


def finish(steps: list[list[Step]], machine: Flat) -> int:
    """When the last member is done: every message takes its duration from the start of its step at the sender."""
    size = len(steps)
    clock, at = [0] * size, [0] * size
    arrivals: dict[tuple[int, int], deque[int]] = {}
    posted = [False] * size
    while any(at[i] < len(steps[i]) for i in range(size)):
        for index, steps_here in enumerate(steps):
            if at[index] == len(steps_here):
                continue
            step = steps_here[at[index]]
            if not posted[index]:
                for peer, nbytes in step.sends:
                    one = machine.transfer(Place(index, 0, GPU), Place(peer, 0, GPU), nbytes)
                    arrivals.setdefault((index, peer), deque()).append(clock[index] + one.duration)
                posted[index] = True
            if all(arrivals.get((peer, index)) for peer, _ in step.receives):
                ends = [clock[index] + (200 if step.sends else 0)]
                ends += [arrivals[peer, index].popleft() for peer, _ in step.receives]
                clock[index] = max(ends) + machine.reduce(0, GPU, step.reduce_bytes)
                at[index] += 1
                posted[index] = False
    return max(clock)


EXACT = [each for each in EVERY if each[1] not in ("linear", "hierarchical")]


@pytest.mark.parametrize(("kind", "algorithm"), EXACT)
@pytest.mark.parametrize("size", [2, 4, 8, 32])
def test_closed_forms_are_the_time_of_the_steps(kind: str, algorithm: str, size: int) -> None:
    nbytes = 32 * 1000
    played = finish(steps_of(kind, algorithm, size, nbytes), Flat())
    assert duration(Flat(), kind, algorithm, nbytes, size, 1) == played


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "barrier"])
def test_hierarchical_closed_forms_are_the_time_of_the_steps(kind: str) -> None:
    for nodes in (2, 4, 8):
        played = finish(steps_of(kind, "hierarchical", nodes * EACH, 1 << 15), Flat())
        assert duration(Flat(), kind, "hierarchical", 1 << 15, nodes, EACH) == played


def test_all_at_once_keeps_the_busiest_port_busy() -> None:
    """Two ranks a node send through one NIC: 4 messages between the nodes, at the rate of the NIC."""
    machine = load_machine("k40_node", 2)
    part = 1 << 24
    found = machine.collective("all_to_all", 4 * part, 2, 2, "linear").duration
    held = machine.transfer(Place(0, 0, GPU), Place(1, 0, GPU), part).source_ports[0][1]
    assert 4 * held < found < 5.5 * held


@pytest.mark.parametrize("nodes", [1, 2, 16])
@pytest.mark.parametrize("name", ["dgx_h100", "alps_openmpi", "k40_node"])
def test_a_single_member_and_a_growing_vector(name: str, nodes: int) -> None:
    machine = load_machine(name, nodes)
    each = machine.gpus_per_node
    for kind, algorithm in [*EVERY, *((kind, "nccl") for kind in KINDS)]:
        times = [machine.collective(kind, 1 << power, nodes, each, algorithm).duration for power in (3, 16, 22, 28)]
        assert times[0] > 0 and times == sorted(times), (kind, algorithm)
    assert machine.collective("all_reduce", 1 << 20, 1, 1, "ring").duration == 0
