"""The tasks of a translated stream: a number for each place of an instruction, and what each place waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.ptx.module import Instruction
from ppt_gpu.translation.loops import Node, Run


@dataclass(frozen=True, slots=True)
class Place:
    """One instruction where it stands in the loop structure; it may stand in several places of one stream."""

    index: int  # among the places, in order of the text
    pc: int
    first: int  # its first task
    ops: tuple[str, ...]  # one task each; () is free


@dataclass(frozen=True, slots=True)
class Block:
    """`body`, `count` times."""

    count: int
    body: tuple[Place | Block, ...]


Tree = tuple[Place | Block, ...]


def number_places(nodes: tuple[Node, ...], operations: Callable[[int], tuple[str, ...]]) -> tuple[Tree, list[Place]]:
    """(the structure with its places, all places in order). Tasks count from 0; `operations` names those of a pc."""
    places: list[Place] = []
    tasks = 0

    def build(nodes: tuple[Node, ...]) -> Tree:
        nonlocal tasks
        found: list[Place | Block] = []
        for node in nodes:
            if not isinstance(node, Run):
                found.append(Block(node.count, build(node.body)))
                continue
            for pc in range(node.first, node.last + 1):
                place = Place(len(places), pc, tasks, operations(pc))
                tasks += len(place.ops)
                places.append(place)
                found.append(place)
        return tuple(found)

    return build(nodes), places


def stream(tree: Tree) -> NDArray[np.int32]:
    """The executed places, loops unfolded."""
    parts: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    run: list[int] = []
    for node in tree:
        if isinstance(node, Place):
            run.append(node.index)
            continue
        parts += [np.array(run, np.int32), np.tile(stream(node.body), node.count)]
        run = []
    return np.concatenate([*parts, np.array(run, np.int32)])


def loop_counts(tree: Tree, around: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """For each place the counts of the loops around it, outermost first."""
    found: list[tuple[int, ...]] = []
    for node in tree:
        found += [around] if isinstance(node, Place) else loop_counts(node.body, (*around, node.count))
    return found


State = dict[int, tuple[int, ...]]  # register -> tasks that may have written it last


class Dependencies:
    """Follows the writers of registers through the structure.

    A task waits for the last writers of what its instruction reads. A guarded instruction may leave its destination
    as it was, so the writer before it counts too; a free one passes on the writers of its sources. The operations of
    one instruction follow each other. In a loop, iterations are followed until the writers no longer change:
    further ones add nothing. Where a register has several writers in a loop (one before it, one inside it), the task
    names them all: those whose most recent execution is not the last write are complete by then, or as good as.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.deps: dict[int, set[int]] = {}  # task -> tasks
        self.state: State = {}

    def follow(self, tree: Tree) -> Mapping[int, set[int]]:
        for node in tree:
            if isinstance(node, Place):
                self._place(node)
                continue
            for _ in range(node.count):
                before = dict(self.state)
                self.follow(node.body)
                if self.state == before:
                    break
        return self.deps

    def _place(self, place: Place) -> None:
        instruction = self.instructions[place.pc]
        sources = {task for register in instruction.reads for task in self.state.get(register, ())}
        waits, value = sources, -1
        for task, op in enumerate(place.ops, place.first):
            self.deps.setdefault(task, set()).update(waits)
            waits = {task}
            value = value if op.startswith(("store.", "branch", "barrier")) else task
        result = {value} if value >= 0 else sources
        for register in instruction.writes:
            kept = set(self.state.get(register, ())) if instruction.guard else set()
            self.state[register] = tuple(sorted(result | kept))
