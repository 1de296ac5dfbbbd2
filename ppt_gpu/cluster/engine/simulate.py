"""Simulates an application on a machine: one node's ranks for all where they are alike, else windows, in processes.

All nodes advance together in windows as long as the lookahead, the least time between two nodes: what happens on a node
within a window cannot reach another before the window's end, so that processes exchange messages once a window
(Chandy, Misra: Distributed simulation, IEEE TSE 1979; Nicol: The cost of conservative synchronization, JACM 1993).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

from ppt_gpu.cluster.engine.closed_form_collectives import News
from ppt_gpu.cluster.engine.critical_path import Piece, piece_to
from ppt_gpu.cluster.engine.mpi import Shared
from ppt_gpu.cluster.engine.outcome import Outcome, Part, combine, part_of
from ppt_gpu.cluster.engine.queue import NEVER, Queue, SimpyQueue, WindowQueue
from ppt_gpu.cluster.engine.request import Elsewhere
from ppt_gpu.cluster.engine.state import Placement, Wire
from ppt_gpu.cluster.engine.symmetry import Asymmetric, Symmetry
from ppt_gpu.cluster.engine.world import Program, Settings, World
from ppt_gpu.cluster.model.machine import PS_PER_S, Machine
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.units import format_time

HISTORY_RANKS = 4096  # ranks whose histories are kept when all are simulated
ASKED = 256  # ranks: looking must cost next to nothing


class RunProgress(Progress):
    """The mean of the ranks of `worlds`; those that have not said how much they have are at the beginning."""

    def __init__(self, worlds: Sequence[World]) -> None:
        super().__init__("events")
        self.worlds = worlds
        ranks = [rank for world in worlds for rank in world.own]
        self.ranks = ranks[:: max(1, -(-len(ranks) // ASKED))]

    def look(self) -> None:
        told = [rank.told for rank in self.ranks if rank.told is not None]
        if told:
            self.what = told[0].what
            self.total = round(sum(one.total for one in told) / len(told))
            self.finished = sum(min(one.finished(), one.total) for one in told) / len(self.ranks)
            if self.finished and not self.earlier:  # the first one made the predictions of its kernels, too
                self.earlier, self.began = self.finished, time.monotonic()
            return
        events = sum(world.queue.events for world in self.worlds)
        if not events:
            self.what = "the first events"
            return
        seconds = max((rank.now for rank in self.ranks), default=0) / PS_PER_S
        self.what = f"{events:,} events, {format_time(seconds)} simulated"


class Processes(Protocol):
    """The other processes of the run."""

    rank: int
    size: int

    def exchange(
        self, out: list[list[Wire]], news: list[News], next_time: int
    ) -> tuple[list[Wire], list[News], int]: ...

    def gather(self, part: Part) -> list[Part]: ...

    def share(self, value: Shared, source: int = 0) -> Shared: ...


def simulate(
    machine: Machine,
    program: Program,
    settings: Settings | None = None,
    *,
    collapse: bool = True,
    queue: str = "windows",
    partitions: int = 1,
    scheme: str = "block",
    processes: Processes | None = None,
) -> Outcome:
    """Simulate `program` on all GPUs of `machine`, one rank each.

    With `collapse` one node's ranks stand for all if they can. `queue`: "windows", or "simpy" for the plain reference.
    `partitions`: in so many parts that exchange as processes do, in this process; or `processes`: in these. Nodes go to
    parts by `scheme`, "block" or "round_robin". The result is the same for all of them.

    Raises PptError for errors of the application, deadlocks, and messages that nobody receives.
    """
    settings = settings or Settings()
    note = "every rank simulated"
    if collapse:
        first = processes is None or processes.rank == 0
        found = _collapsed(machine, program, settings) if first else ""
        if processes is not None:
            found = processes.share(found)
        if isinstance(found, Outcome):
            return found
        note += f": {found}" if found else ""
    if settings.history and machine.nodes * machine.gpus_per_node > HISTORY_RANKS:
        settings = replace(settings, history=False)
        note += f"; no histories of more than {HISTORY_RANKS} ranks"
    if processes is not None and processes.size > 1:
        partitions = processes.size
    _check(machine, queue, partitions, scheme)
    placement = Placement(partitions, scheme)
    piece_at: Callable[[Elsewhere], Piece]
    with lean_collection():
        if processes is not None and processes.size > 1:
            world = World(machine, program, _queue(queue, machine), settings, placement, processes.rank)
            with RunProgress([world]):
                _run_process(world, processes)
            parts = processes.gather(part_of(world))
            piece_at = partial(_shared_piece, world, processes)
        else:
            worlds = [
                World(machine, program, _queue(queue, machine), settings, placement, process)
                for process in range(partitions)
            ]
            with RunProgress(worlds):
                _run_partitions(worlds)
            parts = [part_of(world) for world in worlds]
            piece_at = _pieces(worlds)
    return combine(parts, piece_at, machine.nodes * machine.gpus_per_node, 1, note)


def _check(machine: Machine, queue: str, partitions: int, scheme: str) -> None:
    if queue not in ("windows", "simpy") or scheme not in ("block", "round_robin"):
        raise ValueError(f"unknown queue '{queue}' or scheme '{scheme}'")
    if machine.nodes > 1 and machine.lookahead <= 0:
        raise PptError(
            f"machine '{machine.name}': a message between nodes takes no time", hint="give links a latency above 0"
        )
    if partitions > 1 and machine.fair:
        raise PptError(
            f"machine '{machine.name}': links that are shared fairly need one process, not {partitions}",
            hint="or queue for them: --set network.contention=links",
        )
    if partitions > machine.nodes:
        raise PptError(
            f"{partitions} processes for {machine.nodes} nodes",
            hint="a node is in one process: start fewer",
        )


def _queue(name: str, machine: Machine) -> Queue:
    return SimpyQueue() if name == "simpy" else WindowQueue(_width(machine))


def _width(machine: Machine) -> int:
    """A window in ps; of a single node, which nothing bounds, as if its network had 1 us."""
    return machine.lookahead if machine.nodes > 1 else 10**6


def _collapsed(machine: Machine, program: Program, settings: Settings) -> Outcome | str:
    """The run by one node's ranks, or why not."""
    if machine.nodes == 1:
        return ""
    if not machine.uniform:
        return "not all pairs of nodes are equally far"
    if settings.jitter:
        return "kernel times are random"
    symmetry = Symmetry(machine.gpus_per_node)
    try:
        with lean_collection():
            world = World(machine, program, _queue("windows", machine), settings, symmetry=symmetry)
            with RunProgress([world]):
                _run_partitions([world])
    except Asymmetric as why:
        return str(why)
    except PptError:
        return ""  # found again, with the numbers of all ranks
    if world.transport.offered or part_of(world).blocked:
        return ""
    note = f"the {machine.gpus_per_node} ranks of one node stand for all {machine.nodes} nodes, which are alike"
    return combine([part_of(world)], _pieces([world]), machine.nodes * machine.gpus_per_node, machine.nodes, note)


Told = tuple[list[list[Wire]], list[News], int]  # what a part tells each other, all others, and when it goes on
Heard = tuple[list[Wire], list[News], int]  # what others told it, what all told, and when the first of all goes on


def carry(world: World) -> Generator[Told, Heard, None]:
    """Run one part of several: yields what it tells after each window, is sent what it hears. All end together."""
    width = _width(world.machine)
    world.resume()
    next_time = world.window(0)
    while True:
        wires, news, first = yield (*world.outgoing(), next_time)
        first = min(first, world.incoming(wires, news))
        if first >= NEVER:
            return
        next_time = world.window((first // width + 1) * width)


def exchanged(told: Sequence[Told]) -> list[Heard]:
    """What each part hears of what all told."""
    news = [entry for _, entries, _ in told for entry in entries]
    first = min(time for _, _, time in told)
    return [([wire for out, _, _ in told for wire in out[number]], news, first) for number in range(len(told))]


def _run_partitions(worlds: list[World]) -> None:
    """Run all parts, here."""
    if len(worlds) == 1:
        worlds[0].resume()
        worlds[0].window(NEVER)
        return
    parts = [carry(world) for world in worlds]
    told = [next(part) for part in parts]
    try:
        while True:
            told = [part.send(heard) for part, heard in zip(parts, exchanged(told), strict=True)]
    except StopIteration:
        return


def _pieces(worlds: list[World]) -> Callable[[Elsewhere], Piece]:
    """Fetches what parts in this process keep of the critical path."""
    return lambda place: piece_to(worlds[place[0]].causes[place[1]])


def _shared_piece(world: World, processes: Processes, place: Elsewhere) -> Piece:
    """The same in processes, which all ask for the same pieces."""
    own = place[0] == world.process
    return processes.share(piece_to(world.causes[place[1]]) if own else ([], None), place[0])


def _run_process(world: World, processes: Processes) -> None:
    """Run this process's part."""
    part = carry(world)
    told = next(part)
    try:
        while True:
            told = part.send(processes.exchange(*told))
    except StopIteration:
        return


@contextmanager
def lean_collection() -> Iterator[None]:
    """Without cyclic garbage collection: a run makes no cycles, and looking for them takes longer than the run."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
