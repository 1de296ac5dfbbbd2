"""Speed of cluster simulation, CPU time of one core: a halo exchange with six neighbours and an all-reduce.

A model event is a change with a time of its own: a message is posted, departs, arrives and is received, its receive is
posted; a kernel is launched, starts and ends; a member enters and leaves a collective; a rank goes on.
"""

from __future__ import annotations

import marshal
import statistics
import time
from typing import Any

from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.queue import WindowQueue
from ppt_gpu.cluster.engine.simulate import carry, exchanged, lean_collection, simulate
from ppt_gpu.cluster.engine.state import Placement
from ppt_gpu.cluster.engine.world import Program, Settings, World
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.model.machine import Machine

Figure = dict[str, Any]
MACHINE = "dgx_h100"
PER_MESSAGE, PER_KERNEL, PER_MEMBER, WAITS = 5, 3, 2, 3  # model events; waits of a rank an iteration


def halo(iterations: int) -> Program:
    """The application: a kernel of 100 us, six messages of 4 KiB each way, an all-reduce of 8 bytes."""

    def app(rank: Any) -> Any:
        grid = rank.grid(3)
        peers = [grid.neighbour(axis, step) for axis in range(3) for step in (-1, 1)]
        for _ in range(iterations):
            yield rank.launch(100e-6)
            receives = [rank.irecv(peer, 4096, side ^ 1) for side, peer in enumerate(peers)]
            yield receives + [rank.isend(peer, 4096, side) for side, peer in enumerate(peers)]
            yield rank.all_reduce(8)

    return app


def model_events(ranks: int, iterations: int) -> int:
    """Of `halo`."""
    return ranks * iterations * (6 * PER_MESSAGE + PER_KERNEL + PER_MEMBER + WAITS)


def bench_cluster(runs: int = 3) -> list[Figure]:
    """Rates at 1,000 and 65,536 GPUs, on simpy too; 10,000 GPUs full and collapsed; more processes where there are."""
    figures: list[Figure] = []
    for nodes, iterations in ((125, 5), (8192, 1)):
        seconds, outcome = _timed(nodes, iterations, runs if nodes < 1000 else 1)
        ranks = outcome.size
        figures.append(_rate(f"{ranks:,} GPUs, model events", model_events(ranks, iterations), seconds))
        figures.append(_rate(f"{ranks:,} GPUs, queue entries", outcome.events, seconds))
    seconds, outcome = _timed(125, 5, runs, queue="simpy")
    figures.append(_rate("1,000 GPUs on simpy, model events", model_events(1000, 5), seconds))
    seconds, _ = _timed(1250, 1, runs)
    figures.append({"name": "halo and all-reduce on 10,000 GPUs, every rank", "value": seconds, "unit": "s CPU"})
    _timed(2, 1, 1, network="single_switch", collapse=True)
    seconds, _ = _timed(1250, 1, runs, network="single_switch", collapse=True)
    figures.append({"name": "the same by one node's ranks", "value": seconds * 1e3, "unit": "ms CPU"})
    figures.append(
        {"name": "4,096 GPUs, two processes for one", "value": _two_for_one(512, 3), "unit": "times as fast"}
    )
    return figures


def _two_for_one(nodes: int, iterations: int) -> float:
    """How much faster two processes on cores of their own are: each window takes the CPU time of the slower one.

    What they tell each other is packed and unpacked as between processes; its way is not counted.
    """
    machine = load_machine(MACHINE, nodes)
    alone, _ = _timed(nodes, iterations, 1)
    placement = Placement(2)
    parts = [
        carry(World(machine, halo(iterations), WindowQueue(machine.lookahead), Settings(), placement, process))
        for process in range(2)
    ]
    heard: list[Any] = [None, None]
    together = 0.0
    with lean_collection():
        while True:
            spent, told = [], []
            for part, packet in zip(parts, heard, strict=True):
                start = time.process_time()
                try:
                    out, news, next_time = part.send(packet and marshal.loads(packet))
                except StopIteration:
                    return alone / together
                told.append((out, news, next_time))
                packets = [marshal.dumps(wires) for wires in out]
                spent.append(time.process_time() - start)
                del packets
            together += max(spent)
            heard = [marshal.dumps(packet) for packet in exchanged(told)]


def _timed(
    nodes: int, iterations: int, runs: int, network: str = "", collapse: bool = False, **how: Any
) -> tuple[float, Outcome]:
    described: Machine = load_machine(MACHINE, nodes, (f"network={network}",) if network else ())
    times = []
    for _ in range(runs):
        start = time.process_time()
        outcome = simulate(described, halo(iterations), Settings(), collapse=collapse, **how)
        times.append(time.process_time() - start)
    return statistics.median(times), outcome


def _rate(name: str, events: int, seconds: float) -> Figure:
    return {"name": name, "value": events / seconds, "unit": "1/s CPU", "inputs": f"{events} in {seconds:.3f} s"}
