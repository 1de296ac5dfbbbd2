"""Disassembled code as a task list: what one warp runs on one way through it, with the dependencies of the machine.

A task waits for the writers of the registers that it reads and, where control codes are printed, for the scoreboards in
its wait mask. Addresses are not in code: every access is given as traffic, to be edited.

One way through disassembled code, as a task list needs it: straight on, with loops as often as one is told.

Nothing runs machine code, so a guarded forward branch is taken to fall through (which runs the guarded block) unless
that leads to a slow path, an unguarded branch is followed, and a branch back is a loop whose count must be given.
Subroutines are in line. Other ways of the code are not in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.ptx.module import Guard, Instruction
from ppt_gpu.sass.counts import fast_places
from ppt_gpu.sass.disassembly import Disassembly, SassFunction, SassInstruction
from ppt_gpu.sass.machine import opcode_of
from ppt_gpu.sass.operands import registers
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.sass.registers import FILES, REGISTERS, data_bytes, number
from ppt_gpu.tasklist.model import Item, Loop, Task, TaskList, is_memory
from ppt_gpu.translation.loops import Node, Repeat, Run
from ppt_gpu.translation.memory import without_address
from ppt_gpu.translation.tasks import Block, Dependencies, Place, Tree, number_places

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


@dataclass(frozen=True)
class Shape:
    """What the code does not say of a launch."""

    block: int  # threads
    grid: tuple[int, ...] = ()  # blocks; (): the list states none
    registers: int | None = None  # a thread; None: the highest that the code names, and one more
    shared: int = 0  # B a block


def chosen_function(code: Disassembly, name: str) -> SassFunction:
    """The kernel called `name`, or the only one. PptError when it is not named or not there."""
    kernels = [each for each in code.functions.values() if each.entry]
    if name in code.functions:
        return code.functions[name]
    names = ", ".join(each.name for each in kernels)
    if name:
        raise PptError(
            f"no kernel '{name}'", path=code.path, hint=did_you_mean(name, code.functions) or f"kernels: {names}"
        )
    if len(kernels) != 1:
        raise PptError(f"{len(kernels)} kernels: name one with --kernel", path=code.path, hint=f"kernels: {names}")
    return kernels[0]


def static_list(code: Disassembly, function: SassFunction, trips: Mapping[str, int], shape: Shape) -> TaskList:
    """One way through `function` as a task list. trips: how often each loop runs, by its label.

    Raises PptError or InputErrors: `straight_path` says which ways are followed.
    """
    nodes, places = straight_path(function, trips, code.path)
    instructions = [_instruction(number_, function.instructions[place], code) for number_, place in enumerate(places)]
    names = [_operation(function.instructions[place], code) for place in places]
    tree, _ = number_places(nodes, lambda pc: (names[pc],))
    writer = _Writer(function, places, Dependencies(instructions).follow(tree))
    body = writer.items(tree)
    used = [r for each in instructions for r in (*each.reads, *each.writes) if r < FILES["R"]]
    return TaskList(
        name=function.name,
        registers=shape.registers or max(used, default=0) + 1,
        shared=shape.shared,
        block_size=shape.block,
        body=body,
        grid=shape.grid,
        comments=(
            f"One way through {function.name} in {Path(code.path).name}, machine code of {code.target}:",
            "guarded branches ahead fall through but for slow paths, loops run as often as given.",
            "Addresses are not in machine code: give buffers and strides, or hit rates, where it matters.",
        ),
    )


def _operation(each: SassInstruction, code: Disassembly) -> str:
    try:
        name = known_operation(each.opcode)
    except PptError as error:
        raise PptError(error.message, path=code.path, line=each.line, hint=error.hint) from None
    return name.replace(".generic", ".global")


def _instruction(index: int, each: SassInstruction, code: Disassembly) -> Instruction:
    """For its registers only: scoreboards count as registers, which their setters write and their waiters read."""
    reads, writes = registers(each)
    if each.control is not None:
        reads = (*reads, *(len(REGISTERS) + barrier for barrier in each.control.waits))
        if each.control.write_barrier >= 0:
            writes = (*writes, len(REGISTERS) + each.control.write_barrier)
    made = Instruction(
        index, opcode_of(each.opcode, _operation(each, code), False), (), None, reads, writes, each.line, 1
    )
    if not each.guard.strip("!"):
        return made
    file = each.guard.removeprefix("!").rstrip("0123456789T")
    digits = each.guard.removeprefix("!").removeprefix(file)
    guard = number(file, int(digits)) if digits.isdecimal() else -1
    return replace(made, guard=Guard(guard, each.guard.startswith("!"))) if guard >= 0 else made


class _Writer:
    def __init__(self, function: SassFunction, places: list[int], deps: Mapping[int, set[int]]) -> None:
        self.function, self.places, self.deps = function, places, deps

    def items(self, tree: Tree) -> tuple[Item, ...]:
        found: list[Item] = []
        for node in tree:
            if isinstance(node, Block):
                found.append(Loop(node.count, self.items(node.body)))
            else:
                found.append(self.task(node))
        return tuple(found)

    def task(self, place: Place) -> Task:
        each = self.function.instructions[self.places[place.pc]]
        op, task = place.ops[0], place.first
        deps = tuple(other + 1 for other in sorted(self.deps.get(task, ())))
        guard = f"@{each.guard} " if each.guard else ""
        text = f"{each.address:04x} {guard}{each.opcode} {each.operands}".strip()
        comment = f"{text}  ({each.control.text})" if each.control else text
        memory = without_address(op, data_bytes(each.opcode)).memory if is_memory(op) else None
        return Task(task + 1, op, deps, memory, comment=comment)
