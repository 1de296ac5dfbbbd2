"""Disassembled code as a task list: what one warp runs on one way through it, with the dependencies of the machine.

A task waits for the writers of the registers that it reads and, where control codes are printed, for the scoreboards in
its wait mask. Addresses are not in code: every access is given as traffic, to be edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.ptx.module import Guard, Instruction
from ppt_gpu.sass.disassembly import Disassembly, SassFunction, SassInstruction
from ppt_gpu.sass.machine import opcode_of
from ppt_gpu.sass.operands import registers
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.sass.registers import FILES, REGISTERS, data_bytes, number
from ppt_gpu.sass.static_path import straight_path
from ppt_gpu.tasklist.model import Item, Loop, Task, TaskList, is_memory
from ppt_gpu.translation.memory import without_address
from ppt_gpu.translation.tasks import Block, Dependencies, Place, Tree, number_places


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
