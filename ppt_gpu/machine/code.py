"""The machine code of a kernel, as far as its timing goes: regions of straight-line code, simplified and ordered.

PTX is not what a GPU runs: ptxas unrolls loops, folds constants into addresses, joins loads and instructions, and
orders what is left so that loads are in flight together. The steps are those of this package, one file each.
The result is a kernel whose first instructions are the PTX ones, as they are, for where control takes other ways; the
code of the regions stands behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.machine.analysis.region_ssa import NewRegisters, Step, simplified, straight
from ppt_gpu.machine.analysis.regions import Region, regions
from ppt_gpu.machine.analysis.values import ALIGNED, Values
from ppt_gpu.machine.scheduling.list_scheduler import issue_order
from ppt_gpu.machine.selection.addresses import address_parts
from ppt_gpu.machine.selection.constants import CONSTANT_OPERAND, constant_operands, in_no_register
from ppt_gpu.machine.selection.fusion import Operations, fused, literals, parts_everywhere
from ppt_gpu.machine.selection.if_conversion import Arms
from ppt_gpu.machine.selection.implicit_moves import unnamed
from ppt_gpu.machine.selection.local_array_promotion import chosen_words
from ppt_gpu.machine.selection.pipe_balance import as_multiplied, balanced, banked, is_choice, multiplied_choices
from ppt_gpu.machine.selection.scalar_replacement import words_in_registers
from ppt_gpu.machine.selection.vectors import vectorised
from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.linking.liveness import EXTRA_REGISTERS, live_out, most_live_in
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.ptx.uses import readers_of
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import machine_operations

#: PTX instructions that are no machine instructions, on any GPU
_NOTHING = frozenset(("mov", "cvta"))
#: what joins two predicates (PLOP3)
_BOTH = ("int32.setp",)
#: what ptxas 13 takes an instruction that is several, some of them under a predicate, to be longer by when it decides
#: on unrolling: an approximate function that scales denormal operands (of rsqrt.approx.f32 two, with a load seven, are
#: unrolled four times, and eleven where the number of iterations is known)
GUARDED = 5
#: passes over the kernel; a register that changes after so many is taken to be a multiple of 1
_PASSES = 8


def alignments(kernel: Kernel) -> dict[int, int]:
    """Of each register that instructions write: every value is a multiple of 2^this.

    The greatest solution: all are taken to be 0 at first, then each write may only lower what is known.
    """
    found = {register: ALIGNED for instruction in kernel.instructions for register in instruction.writes}
    read = readers_of(instruction for instruction in kernel.instructions if instruction.writes)
    todo: Iterable[Instruction] = kernel.instructions
    changed: dict[int, int] = {}
    for _ in range(_PASSES):
        before = dict(found)
        for instruction in todo:
            values = Values(before)
            value = values.result(instruction)
            at_least = values.alignment(value) if value is not None else 0
            for register in instruction.writes:
                guarded = instruction.guard is not None
                found[register] = min(found[register], 0 if guarded else at_least)
        changed = {r: found[r] for i in todo for r in i.writes if found[r] != before[r]}
        if not changed:
            return found
        todo = list({i.index: i for register in changed for i in read.get(register, ())}.values())
    return {register: 0 if register in changed else alignment for register, alignment in found.items()}


@dataclass(frozen=True)
class MachineKernel(Kernel):
    """A kernel with its machine code behind its PTX instructions."""

    origin: tuple[int, ...] = ()  # [J] the PTX instruction of each instruction

    @property
    def ptx(self) -> Kernel:
        """The kernel without its machine code."""
        own = sum(index == origin for index, origin in enumerate(self.origin))
        fields = {name: getattr(self, name) for name in Kernel.__dataclass_fields__}
        return Kernel(**fields | {"instructions": self.instructions[:own]})


@dataclass(frozen=True)
class Template:
    """What runs instead of `blocks`, when they run one after another."""

    blocks: tuple[int, ...]
    arms: NDArray[np.bool_]  # of the blocks: those that may be passed by, with all their recorded instructions
    code: NDArray[np.int32]  # instructions of the machine kernel
    access: NDArray[np.int64]  # [2, recorded instructions] the place of its block, and which access of that it makes


@dataclass(frozen=True)
class MachineCode:
    kernel: MachineKernel
    flow: ControlFlow  # of the PTX instructions
    templates: tuple[Template, ...]  # those of more blocks first
    live: int  # the most 32-bit registers of a thread that are live at once


def machine_code(kernel: Kernel, registers: int, isa: Isa | None = None) -> MachineCode:
    """The machine code of a (linked) kernel whose threads have `registers` 32-bit registers each.

    isa: whose patterns of several instructions in one are used; None: only what all compilers do.

    Where more values are live in any order than that, ptxas keeps some of them elsewhere or computes them again, which
    is not followed here: then the code is ordered as if their registers were there, too.
    """
    made = _Builder(kernel, registers, isa).build()
    more = made.live + EXTRA_REGISTERS - registers
    if more <= 0:
        return made
    return replace(_Builder(kernel, registers + more, isa).build(), live=made.live)


class _Builder:
    def __init__(self, kernel: Kernel, registers: int, isa: Isa | None) -> None:
        self.kernel, self.registers, self.isa = kernel, registers, isa
        self.fuse: Mapping[str, Operations] = {} if isa is None else isa.fuse
        self.flow = control_flow(kernel)
        self.names = NewRegisters(kernel)
        self.copy = () if isa is None else isa.unnamed.get("copy", ())
        self.chosen = chosen_words(kernel, self.flow, self.names) if self.copy else {}
        self.words = words_in_registers(kernel, self.names.of_bytes) | self.chosen
        own = len(kernel.registers)
        words = sum(1 << r for r, weight in enumerate(self.names.weights) if r >= own and weight)  # they last
        self.alive = [alive | words for alive in live_out(kernel, self.flow)]
        self.single = parts_everywhere(kernel, self.fuse)
        self.address_parts = address_parts(kernel, self.flow, self.fuse)
        self.constants = constant_operands(kernel, self.flow, self.fuse)
        self.banked_constants = self.fuse.get(CONSTANT_OPERAND) == ()  # who reads a constant need not wait for its load
        if self.banked_constants:
            for register in in_no_register(kernel, self.constants):
                self.names.weights[register] = 0
        self.code: list[Instruction] = list(kernel.instructions)
        self.origin = list(range(len(self.code)))
        self.operations: dict[int, Operations] = {}
        self.branching = frozenset(i.index for i in kernel.instructions if self._branches(i))
        self.arms = Arms(kernel, self.flow, self.branching, self._machine_size)
        self.unnamed = unnamed(kernel, self.flow, self.alive, self.arms, {} if isa is None else isa.unnamed)

    @cached_property
    def aligned(self) -> Mapping[int, int]:
        return alignments(self.kernel)

    @cached_property
    def literals(self) -> Mapping[int, int]:
        return literals(self.kernel)

    @cached_property
    def banks(self) -> frozenset[int]:
        return banked(self.kernel)

    def build(self) -> MachineCode:
        found = regions(self.kernel, self.flow, self._size, self.arms.guarded, self.branching)
        templates = [self._template(region) for region in found]
        self._give_out_choices([template for template in templates if template is not None])
        made = MachineKernel(
            **{name: getattr(self.kernel, name) for name in Kernel.__dataclass_fields__},
            origin=tuple(self.origin),
        )
        made = replace(made, instructions=tuple(self.code), registers=tuple(self.names.all), joined=self.operations)
        kept = tuple(template for template in templates if template is not None)
        return MachineCode(made, self.flow, kept, self._live(kept))

    def _give_out_choices(self, templates: Sequence[Template]) -> None:
        """Of the moves under a predicate, those that the multiplier does: its part of all of the kernel's."""
        isa = self.isa
        choices = [
            [n for n in template.code.tolist() if is_choice(self.code[n], self.operations.get(n, ()))]
            for template in templates
        ]
        if isa is None or not any(choices):
            return
        counted: set[int] = set()
        pieces: list[int] = []
        for template in templates:  # those of more blocks first
            if not counted.issuperset(template.blocks):
                pieces += template.code.tolist()
                counted.update(template.blocks)
        for block, (first, end) in enumerate(zip(self.flow.block_start, self.flow.block_end, strict=True)):
            pieces += [] if block in counted else range(first, end)
        own = {index: self._own(self.operations, index, self.code[index], isa) for index in pieces}
        part = multiplied_choices([(self.code[index], own[index]) for index in pieces], isa)
        for of_template in choices:
            for k, index in enumerate(of_template):  # spread evenly
                if round((k + 1) * part) > round(k * part):
                    self.operations[index] = as_multiplied(self.operations[index])

    def _live(self, templates: Sequence[Template]) -> int:
        """In the code that runs: templates, and the blocks that no template has."""
        weights = self.names.weights
        replaced = {block for template in templates for block in template.blocks}
        pieces = [([self.code[index] for index in each.code], each.blocks[-1]) for each in templates]
        for block, (first, end) in enumerate(zip(self.flow.block_start, self.flow.block_end, strict=True)):
            if block not in replaced:
                pieces.append((self.code[first:end], block))
        return max((most_live_in(code, self.alive[last], weights) for code, last in pieces), default=0)

    def _steps(self, region: Region) -> list[Step]:
        steps = straight(self.kernel, self.flow, region, self.names, self.alive, self.words)
        steps = simplified(steps, self.alive[region.blocks[-1]], self.aligned, self.names.all)
        return vectorised(steps, self.aligned, self.names.all)

    def _tried(self, blocks: tuple[int, ...]) -> tuple[list[Step], dict[int, Operations]]:
        """The steps of a region of the blocks and, by place, what some of them become; its new registers are gone."""
        used = len(self.names.all)
        steps = self._steps(Region(blocks))
        operations = self._fused(steps, blocks[-1])
        self.names.forget(used)
        return steps, operations

    def _size(self, blocks: Sequence[int]) -> int:
        """Machine instructions that the blocks become, about, and what predicates within make ptxas add to them."""
        steps, operations = self._tried(tuple(blocks))
        own = [s for n, s in enumerate(steps) if operations.get(n) != ()]
        counted = [s.instruction for s in own if s.instruction.base not in _NOTHING or self._chooses(s)]
        counted = [instruction for instruction in counted if operation(instruction) != "load.param"]
        return len(counted) + GUARDED * sum(map(self._tests, counted))

    def _machine_size(self, block: int) -> int:
        """Machine instructions that a block becomes, about, but for moves, branches and loads of parameters."""
        steps, operations = self._tried((block,))
        own = [(n, s.instruction) for n, s in enumerate(steps) if s.instruction.base not in (*_NOTHING, "bra")]
        counted = [(n, i) for n, i in own if operation(i) != "load.param"]
        if self.isa is None:
            return sum(operations.get(n) != () for n, _ in counted)
        return sum(len(self._own(operations, n, instruction, self.isa)) for n, instruction in counted)

    def _fused(self, steps: Sequence[Step], last: int) -> dict[int, Operations]:
        """By place, operations of steps that do more or less than they say; `last`: the block that they end with."""
        parts: dict[int, Operations] = {n: () for n, step in enumerate(steps) if step.origin in self.address_parts}
        parts |= {n: self.constants[step.origin] for n, step in enumerate(steps) if step.origin in self.constants}
        code = [step.instruction for step in steps]
        return fused(code, self.alive[last], self.single, self.fuse, parts, self.literals)

    def _chooses(self, step: Step) -> bool:
        """Is it a move under a predicate, of the word of an array that the predicate chooses?"""
        return step.origin in self.chosen and step.instruction.base == "mov" and step.instruction.guard is not None

    def _tests(self, instruction: Instruction) -> bool:
        """Is it several machine instructions, some of them under a predicate?"""
        made = self._expansion(instruction)
        return len(made) > 1 and any("setp" in name for name in made)

    def _branches(self, instruction: Instruction) -> bool:
        """Is there a branch among the machine instructions that it becomes?"""
        return "branch" in self._expansion(instruction)

    def _expansion(self, instruction: Instruction) -> Operations:
        """What the ISA file says that it becomes; () where that is one operation, its own."""
        return () if self.isa is None else self.isa.expansion(instruction.opcode) or ()

    def _template(self, region: Region) -> Template | None:
        """None where the PTX itself is what runs."""
        steps = self._steps(region)
        code = [step.instruction for step in steps]
        alive = self.alive[region.blocks[-1]]
        operations = self._fused(steps, region.blocks[-1])
        operations |= {place: self.copy for place, step in enumerate(steps) if self._chooses(step)}
        free = {place for place, names in operations.items() if not names}
        joined = set(operations)
        if self.isa is not None and self.isa.unnamed:
            self._complete(region, steps, operations, self.isa)
            operations |= balanced(code, operations, joined, self.banks, self.isa)
        branching = {place for place, instruction in enumerate(code) if self._branches(instruction)}
        order = issue_order(code, self.names.weights, alive, self.registers, free, self.banked_constants, branching)
        ordered = [steps[place] for place in order]
        if not operations and self._unchanged(region, ordered):
            return None
        first = len(self.code)
        self.operations |= {first + new: operations[old] for new, old in enumerate(order) if old in operations}
        self.code += [replace(s.instruction, index=first + n) for n, s in enumerate(ordered)]
        self.origin += [step.origin for step in ordered]
        return Template(
            region.blocks,
            np.array([block in region.arms for block in region.blocks]),
            np.arange(first, len(self.code), dtype=np.int32),
            np.array([(step.place, step.access) for step in ordered if step.access >= 0], np.int64).reshape(-1, 2).T,
        )

    def _complete(self, region: Region, steps: Sequence[Step], operations: dict[int, Operations], isa: Isa) -> None:
        """Add to the operations of `steps` those that PTX does not name, and take those of guarded arms' branches out.

        What is in front of an instruction of a loop is there once, however often the loop has been unrolled.
        """
        flow = self.flow
        spans = [range(flow.block_start[block], flow.block_end[block]) for block in dict.fromkeys(region.blocks)]
        waiting = {index: self.unnamed[index] for span in spans for index in span if index in self.unnamed}
        for place, step in enumerate(steps):
            if step.origin in self.arms.without:
                operations[place] = _BOTH if step.origin in self.arms.joined else ()
            first = waiting.pop(step.origin, ())
            if first:
                operations[place] = first + self._own(operations, place, step.instruction, isa)
        if waiting and steps:  # of instructions that are gone
            first = tuple(name for names in waiting.values() for name in names)
            operations[0] = first + self._own(operations, 0, steps[0].instruction, isa)

    @staticmethod
    def _own(operations: Mapping[int, Operations], place: int, instruction: Instruction, isa: Isa) -> Operations:
        found = operations.get(place)
        return machine_operations(instruction, isa) if found is None else found

    def _unchanged(self, region: Region, steps: Sequence[Step]) -> bool:
        first, end = self.flow.block_start[region.blocks[0]], self.flow.block_end[region.blocks[0]]
        own = self.kernel.instructions[first:end]
        return len(region.blocks) == 1 and [step.instruction for step in steps] == list(own)
