"""The launches of a workload in the order in which they run: which to predict, which to run for what they leave.

Loops are unrolled, with buffers that change places. Two launches are predicted as one when nothing tells them apart:
the same kernel, grid, block and scalars, on buffers of the same types and sizes; and where data steer the kernel
(ppt_gpu.emulator.analysis.data_flow), the same buffers, not written in between. A launch is run, so that later ones
find what it leaves in memory, only where that reaches a buffer which steers one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ppt_gpu.emulator.analysis.data_flow import Flow, Names, data_flow
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.workload import Argument, Launch, Loop, Workload


@dataclass(frozen=True)
class Step:
    """Runs in a row of one launch."""

    number: int  # in Sequence.launches
    count: int
    advance: bool  # what the runs leave in memory is needed


@dataclass(frozen=True)
class Sequence:
    """`launches`: one for each prediction, in the order of their first runs; `repeat` is the number of all its runs."""

    launches: tuple[Launch, ...]
    steps: tuple[Step, ...]


def plan_sequence(workload: Workload, module: Module | None) -> Sequence:
    """The sequence of a workload that is bound to `module`; of a task list, without data, None."""
    if len(workload.launches) == 1 and not workload.loops and workload.launches[0].repeat == 1:
        return Sequence(workload.launches, (Step(0, 1, False),))  # nothing comes before or after it
    flows: dict[Any, Flow] = {}
    known: dict[int, tuple[Launch, Flow]] = {}  # by object, which lives as long as its entry

    def flow(launch: Launch) -> Flow:
        if id(launch) not in known:
            key = (launch.kernel, launch.arguments)
            if key not in flows:
                nothing: Names = frozenset()
                flows[key] = Flow(nothing, nothing, nothing) if module is None else data_flow(module, launch)
            known[id(launch)] = launch, flows[key]
        return known[id(launch)][1]

    order = list(_runs(workload, flow))
    needed = _needed([flow(launch) for launch, _ in order])
    last = max((at for at, (launch, _) in enumerate(order) if flow(launch).steering != frozenset()), default=-1)
    plan = _Plan(workload)
    for at, (launch, count) in enumerate(order):
        plan.add(launch, count, flow(launch), at < last and _meet(flow(launch).writes, needed))
    return plan.sequence()


def _runs(workload: Workload, flow: Callable[[Launch], Flow]) -> Iterator[tuple[Launch, int]]:
    """(launch, runs in a row) in order. Runs that change what steers them come one by one."""
    at = 0
    for loop in (*workload.loops, None):
        end = len(workload.launches) if loop is None else loop.first
        for launch in workload.launches[at:end]:
            yield from _repeated(launch, flow)
        if loop is None:
            return
        for launch in _unrolled(loop, workload.launches[loop.first : loop.end]):
            yield from _repeated(launch, flow)
        at = loop.end


def _repeated(launch: Launch, flow: Callable[[Launch], Flow]) -> Iterator[tuple[Launch, int]]:
    found = flow(launch)
    if _meet(found.writes, found.steering):
        yield from [(launch, 1)] * launch.repeat
    else:
        yield launch, launch.repeat


def _unrolled(loop: Loop, launches: tuple[Launch, ...]) -> Iterator[Launch]:
    """The launches of all rounds of a loop; rounds that are equal have the same objects."""
    period = max(len(loop.swap), 1)
    counted = any(one.step for launch in launches for whole in launch.arguments for one in (whole, *whole.fields))
    rounds: dict[int, list[Launch]] = {}
    for number in range(loop.repeat):
        turn = number if counted else number % period
        if turn not in rounds:
            place = {name: loop.swap[(index + turn) % period] for index, name in enumerate(loop.swap)}
            rounds[turn] = [replace(one, arguments=_of_round(one.arguments, place, number)) for one in launches]
        yield from rounds[turn]


def _of_round(arguments: tuple[Argument, ...], place: dict[str, str], number: int) -> tuple[Argument, ...]:
    return tuple(
        replace(
            one,
            value=one.value + number * one.step,
            step=0,
            buffer=place.get(one.buffer, one.buffer),
            fields=_of_round(one.fields, place, number),
        )
        for one in arguments
    )


def _needed(flows: list[Flow]) -> Names | None:
    """Buffers whose content may reach what steers some launch; None: any."""
    kinds = list({id(flow): flow for flow in flows}.values())
    needed: Names | None = frozenset()
    for flow in kinds:
        needed = _either(needed, flow.steering)
    while True:
        before = needed
        for flow in kinds:
            if _meet(flow.writes, needed):
                needed = _either(needed, flow.reads)
        if needed == before:
            return needed


def _either(one: Names | None, other: Names | None) -> Names | None:
    return None if one is None or other is None else one | other


def _meet(one: Names | None, other: Names | None) -> bool:
    """May the two have a buffer in common?"""
    if one is None or other is None:
        return one != frozenset() and other != frozenset()
    return bool(one & other)


class _Plan:
    """Numbers the launches, and merges runs of the same one."""

    def __init__(self, workload: Workload) -> None:
        self.buffers: dict[str, Any] = {b.name: (b.type, b.count, b.copied) for b in workload.buffers}
        self.buffers |= {texture.name: texture for texture in workload.textures}
        self.numbers: dict[Any, int] = {}
        self.launches: list[Launch] = []
        self.runs: list[int] = []
        self.steps: list[Step] = []
        self.version: dict[str, int] = {}  # how often a buffer may have been written
        self.everything = 0  # how often a launch may have written any buffer
        self.shapes: dict[int, tuple[Launch, int]] = {}  # numbers by object, which lives as long as its entry

    def add(self, launch: Launch, count: int, flow: Flow, advance: bool) -> None:
        """`count` runs of `launch`."""
        number = self._number(launch, flow, advance)
        self.runs[number] += count
        if self.steps and (self.steps[-1].number, self.steps[-1].advance) == (number, advance):
            count += self.steps.pop().count
        self.steps.append(Step(number, count, advance))
        for name in flow.writes or ():
            self.version[name] = self.version.get(name, 0) + 1
        self.everything += flow.writes is None

    def _number(self, launch: Launch, flow: Flow, advance: bool) -> int:
        if flow.steering == frozenset() and not advance:
            if id(launch) not in self.shapes:
                self.shapes[id(launch)] = launch, self._numbered(_shape(launch, self.buffers), launch)
            return self.shapes[id(launch)][1]
        if flow.steering is None:
            content: Any = (self.everything, tuple(sorted(self.version.items())))
        else:
            content = (self.everything, tuple(self.version.get(name, 0) for name in sorted(flow.steering)))
        return self._numbered((replace(launch, repeat=1), content if flow.steering != frozenset() else None), launch)

    def _numbered(self, key: Any, launch: Launch) -> int:
        """The number of this key; of a new one, for which `launch` stands."""
        if key not in self.numbers:
            self.numbers[key] = len(self.launches)
            self.launches.append(launch)
            self.runs.append(0)
        return self.numbers[key]

    def sequence(self) -> Sequence:
        launches = (replace(launch, repeat=runs) for launch, runs in zip(self.launches, self.runs, strict=True))
        return Sequence(tuple(launches), tuple(self.steps))


def _shape(launch: Launch, buffers: dict[str, Any]) -> Any:
    """What tells a launch apart that data do not steer: its buffers by type, size, and which are the same."""
    seen: dict[str, int] = {}

    def roles(arguments: tuple[Argument, ...]) -> Any:
        return tuple(
            (replace(one, buffer="", fields=()), one.buffer and seen.setdefault(one.buffer, len(seen)),
             buffers.get(one.buffer), roles(one.fields))
            for one in arguments
        )  # fmt: skip

    return replace(launch, arguments=(), repeat=1), roles(launch.arguments)
