"""One way through disassembled code, as a task list needs it: straight on, with loops as often as one is told.

Nothing runs machine code, so a guarded forward branch is taken to fall through (which runs the guarded block) unless
that leads to a slow path, an unguarded branch is followed, and a branch back is a loop whose count must be given.
Subroutines are in line. Other ways of the code are not in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.sass.counts import fast_places
from ppt_gpu.sass.disassembly import SassFunction, SassInstruction
from ppt_gpu.translation.loops import Node, Repeat, Run

_BRANCHES = ("BRA", "JMP")
_CALLS = ("CALL", "CAL", "JCAL")
_RETURNS = ("RET", "EXIT", "KILL")


@dataclass(frozen=True)
class StaticLoop:
    """A branch back. `label` as the disassembly names it, else its address."""

    label: str
    first: int  # place of its first instruction
    last: int  # of the branch


def straight_path(function: SassFunction, trips: Mapping[str, int], path: str) -> tuple[tuple[Node, ...], list[int]]:
    """The way as runs and loops over its own instructions, numbered from 0, and the place of each in the function.

    trips: label -> how often the loop runs. Raises PptError for indirect branches, InputErrors that name every loop
    without a count and every count without a loop.
    """
    walk = _Walk(function, trips, path)
    nodes = walk.run()
    errors = [
        PptError(f"--trip {name}: the code has no such loop", path=path, hint=did_you_mean(name, walk.found))
        for name in trips
        if name not in walk.found
    ]
    errors += [_uncounted(function, loop, path) for name, loop in walk.found.items() if name not in trips]
    if errors:
        raise InputErrors(errors)
    return nodes, walk.places


def _uncounted(function: SassFunction, loop: StaticLoop, path: str) -> PptError:
    begin = function.instructions[loop.first]
    size = loop.last - loop.first + 1
    message = f"loop {loop.label}, {size} instructions from 0x{begin.address:x} on, has no count"
    return PptError(message, path=path, line=begin.line, hint=f"--trip {loop.label}=N")


class _Walk:
    def __init__(self, function: SassFunction, trips: Mapping[str, int], path: str) -> None:
        self.function, self.trips, self.path = function, trips, path
        self.fast = fast_places(function)
        self.places: list[int] = []
        self.found: dict[str, StaticLoop] = {}
        names = {place: name for name, place in function.labels.items() if not name.startswith("0x")}
        self.names = {
            place: names.get(place, f"0x{each.address:x}") for place, each in enumerate(function.instructions)
        }

    def run(self) -> tuple[Node, ...]:
        return self._follow(0)

    def _follow(self, place: int) -> tuple[Node, ...]:
        """From `place` to the end of the kernel or subroutine."""
        nodes: list[tuple[int, Node]] = []  # with the place where each begins
        seen: set[int] = set()
        code = self.function.instructions
        while place < len(code):
            each = code[place]
            if place in seen:
                raise self._bad(each, "the code comes back to what it has left: it has no nested loops")
            seen.add(place)
            nodes.append((place, Run(len(self.places), len(self.places))))
            self.places.append(place)
            if each.head in _RETURNS and not each.conditional:
                break
            place = self._next(each, place, nodes)
        return tuple(node for _, node in _joined(nodes))

    def _next(self, each: SassInstruction, place: int, nodes: list[tuple[int, Node]]) -> int:
        target = self.function.labels.get(each.target, -1)
        if each.head in ("BRX", "BRXU", "JMX", "JMXU"):
            raise self._bad(each, "an indirect branch: the disassembly does not say where it goes")
        if each.head in _CALLS and target >= 0 and target in self.fast:
            nodes += [(place, node) for node in self._follow(target)]
        if each.head not in _BRANCHES or target < 0:
            return place + 1
        if target > place:
            return target if not each.conditional or place + 1 not in self.fast else place + 1
        self._close(place, target, nodes)
        return place + 1 if each.conditional else self._exit(place, target)

    def _close(self, place: int, target: int, nodes: list[tuple[int, Node]]) -> None:
        """The nodes from `target` on become a loop."""
        begin = next((number for number, (first, _) in enumerate(nodes) if first == target), None)
        if begin is None:
            raise self._bad(self.function.instructions[place], "a branch into the middle of what ran before")
        name = self.names[target]
        self.found[name] = StaticLoop(name, target, place)
        inner = nodes[begin][1]
        if isinstance(inner, Repeat):  # a second branch back to the same place: the same loop
            body = (*inner.body, *(node for _, node in _joined(nodes[begin + 1 :])))
        else:
            body = tuple(node for _, node in _joined(nodes[begin:]))
        nodes[begin:] = [(target, Repeat(self.trips.get(name, 1), body))]

    def _exit(self, place: int, target: int) -> int:
        """Where a loop without an end of its own is left: the nearest place behind it that its body branches to."""
        code, labels = self.function.instructions, self.function.labels
        ways = [labels[each.target] for each in code[target:place] if each.head in _BRANCHES and each.target in labels]
        behind = [way for way in ways if way > place]
        if not behind:
            raise self._bad(code[place], "an endless loop")
        return min(behind)

    def _bad(self, each: SassInstruction, message: str) -> PptError:
        return PptError(message, path=self.path, line=each.line)


def _joined(nodes: list[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """Neighbouring runs as one."""
    found: list[tuple[int, Node]] = []
    for first, node in nodes:
        before = found[-1][1] if found else None
        if isinstance(node, Run) and isinstance(before, Run) and before.last + 1 == node.first:
            found[-1] = (found[-1][0], Run(before.first, node.last))
        else:
            found.append((first, node))
    return found
