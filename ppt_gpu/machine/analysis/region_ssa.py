"""The straight-line code of a region: its blocks one after another, each value in a register of its own.

Then what the compiler does before anything else: constants are folded, sums are computed from what is there already,
addresses become a register and an offset, what is computed twice is computed once, and what nobody needs is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ppt_gpu.machine.analysis.regions import Region
from ppt_gpu.machine.analysis.renaming import is_renamable, renamed
from ppt_gpu.machine.analysis.values import Value, Values, is_pure
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import copied, is_branch, is_exit, is_memory, is_traced
from ppt_gpu.ptx.linking.liveness import members, register_weights
from ppt_gpu.ptx.module import TYPE_BYTES, Guard, Imm, Instruction, Kernel, Mem, Reg, Register

#: an address is a register and an offset of 24 bits with a sign
OFFSETS = range(-(1 << 23), 1 << 23)


@dataclass(slots=True)
class Step:
    """One instruction of the region."""

    instruction: Instruction
    origin: int  # the instruction of the kernel that it comes from
    place: int  # of its block in the region
    access: int  # which of its block's recorded accesses is its; -1: none


class NewRegisters:
    """Registers beside those of the kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.all: list[Register] = list(kernel.registers)
        self.weights = register_weights(kernel)  # 32-bit registers that each takes

    def like(self, register: int) -> int:
        """A new register for values of the same type."""
        self.all.append(replace(self.all[register], name=f"%m{len(self.all)}"))
        self.weights.append(self.weights[register])
        return len(self.all) - 1

    def of_bytes(self, size: int) -> int:
        """A new register of 4 or 8 bytes."""
        self.all.append(Register(f"%m{len(self.all)}", f"b{8 * size}", 0))
        self.weights.append(size // 4)
        return len(self.all) - 1

    def predicate(self) -> int:
        """A new predicate."""
        self.all.append(Register(f"%m{len(self.all)}", "pred", 0))
        self.weights.append(0)
        return len(self.all) - 1

    def forget(self, count: int) -> None:
        """All but the first `count` registers."""
        del self.all[count:], self.weights[count:]


def straight(
    kernel: Kernel,
    flow: ControlFlow,
    region: Region,
    registers: NewRegisters,
    alive: Sequence[int],
    instead: Mapping[int, tuple[Instruction, ...]] = MappingProxyType({}),
) -> list[Step]:
    """The code of the region's blocks, which run one after another. Branches within are gone.

    Of an arm what reads or changes memory is guarded, and what changes a register that is read behind it. The rest does
    no harm where no lane runs the arm, nor to another arm beside it. Where the arm ends with a second condition, both
    become one predicate.
    alive: bit set of the registers that are read behind each block.
    instead: what stands for accesses to memory, by the index of these.
    The last value of each register is in the register that the kernel has it in; those before have new ones.
    """
    steps: list[Step] = []
    both: dict[int, Guard] = {}  # of branches that are the second condition: the guard that they would have for both
    for place, block in enumerate(region.blocks):
        guard = _condition(kernel, flow, block, both) if block in region.arms else None
        accesses = 0
        for index in range(flow.block_start[block], flow.block_end[block]):
            own = kernel.instructions[index]
            traced = is_traced(own)
            for instruction in instead.get(index, (own,)):
                lasting = not is_pure(instruction) or any(alive[block] >> r & 1 for r in instruction.writes)
                if guard is not None and is_branch(instruction) and instruction.guard is not None:
                    both[index] = Guard(registers.like(instruction.guard.reg), instruction.guard.negated)
                    instruction = _joined(instruction, instruction.guard, guard, both[index].reg)
                elif guard is not None and lasting and instruction.guard is None:
                    instruction = replace(instruction, guard=guard, reads=(*instruction.reads, guard.reg))
                if not is_branch(instruction) or place == len(region.blocks) - 1:
                    steps.append(Step(instruction, index, place, accesses if traced and index not in instead else -1))
            accesses += traced
    ends = bool(region.arms) and is_exit(steps[-1].instruction)
    if all(is_renamable(step.instruction) for step in steps[: -1 if ends else None]):
        _rename(steps, registers, [_local(kernel, region, step, alive) for step in steps])
    return steps


def _local(kernel: Kernel, region: Region, step: Step, alive: Sequence[int]) -> frozenset[int]:
    """What a step of an arm writes that nobody reads behind its block."""
    block = region.blocks[step.place]
    if block not in region.arms:
        return frozenset()
    own = len(kernel.registers)
    return frozenset(r for r in step.instruction.writes if r < own and not alive[block] >> r & 1)


def _condition(kernel: Kernel, flow: ControlFlow, arm: int, both: Mapping[int, Guard]) -> Guard | None:
    """Under which condition of the branch before it control comes to an arm; both: as in `straight`."""
    branch = next(block for block, following in enumerate(flow.successors) if arm in following)
    last = flow.block_end[branch] - 1
    if len(flow.successors[branch]) == 1:  # it only passes on
        return _condition(kernel, flow, branch, both)
    guard = both.get(last, kernel.instructions[last].guard)
    return guard and Guard(guard.reg, guard.negated != (arm == branch + 1))  # behind the branch: where it is not taken


def _joined(branch: Instruction, second: Guard, first: Guard, target: int) -> Instruction:
    """What computes the predicate `target` of both conditions, whichever of them the machine takes the opposite of."""
    return replace(
        branch,
        opcode="and.pred" if second.negated else "or.pred",
        operands=(Reg(target), Reg(second.reg), Reg(first.reg)),
        guard=None,
        reads=(second.reg, first.reg),
        writes=(target,),
    )


def _rename(steps: list[Step], registers: NewRegisters, local: Sequence[Collection[int]]) -> None:
    """local: of what each step writes, registers that nobody reads behind the arm that it is in."""
    last: dict[int, int] = {}  # the step from which on a register has its own name
    for place, step in enumerate(steps):
        if step.instruction.guard is None:
            last.update({r: place for r in step.instruction.writes if r not in local[place]})
    now: dict[int, int] = {}
    before: dict[int, int] = {}  # of registers of an arm: their names in front of it

    def read(register: int) -> int:
        return now.get(register, register)

    for place, step in enumerate(steps):
        if place and step.place != steps[place - 1].place:
            now.update(before)
            before.clear()
        target: dict[int, int] = {}
        for r in step.instruction.writes:
            if r in local[place]:
                before.setdefault(r, read(r))
                target[r] = registers.like(r)
            elif step.instruction.guard is None:
                target[r] = r if last[r] == place else registers.like(r)
            else:  # where the guard is false the value before stays
                target[r] = read(r)
        step.instruction = renamed(step.instruction, read, lambda r, target=target: target.get(r, r))  # type: ignore[misc]
        now.update(target)


def simplified(steps: list[Step], alive: int, aligned: Mapping[int, int], registers: Sequence[Register]) -> list[Step]:
    """The steps with constants folded and sums shared, without those that nobody needs.

    alive: bit set of registers that are read after the region. aligned: what registers are multiples of at its start.
    """
    return _needed(_Sharing(steps, Values(aligned), registers).run(), alive)


class _Sharing:
    """One pass over the steps: what each register holds, and which register holds a sum already."""

    def __init__(self, steps: list[Step], values: Values, registers: Sequence[Register]) -> None:
        self.steps, self.values, self.registers = steps, values, registers
        self.version: dict[int, int] = {}  # of a register: how often it has been written
        self.holder: dict[tuple[object, int], tuple[int, int, int]] = {}  # sum -> register, its constant, version

    def run(self) -> list[Step]:
        for step in self.steps:
            if is_memory(step.instruction):
                step.instruction = self._address(step.instruction)
            value = self.values.result(step.instruction)
            if value is not None and not self._fills(step.instruction.writes[0], value):
                value = None
            if value is not None:
                step.instruction = self._computed(step.instruction, value)
            self.values.run(step.instruction)
            for register in step.instruction.writes:
                self.version[register] = self.version.get(register, 0) + 1
            if value is not None and value.terms:
                register = step.instruction.writes[0]
                if self._held(value) is None:
                    held = (register, value.constant, self.version[register])
                    self.holder[value.terms, value.bits] = held
        return self.steps

    def _fills(self, register: int, value: Value) -> bool:
        """Is it all that the register has, of 32 or 64 bits? Of a comparison: what is compared."""
        type_ = self.registers[register].type
        return value.bits in (32, 64) and (type_ == "pred" or 8 * TYPE_BYTES[type_] == value.bits)

    def _copy_to(self, register: int) -> str:
        """The opcode."""
        type_ = self.registers[register].type
        return "mov.pred" if type_ == "pred" else f"mov.b{8 * TYPE_BYTES[type_]}"

    def _held(self, value: Value) -> tuple[int, int] | None:
        """(register, its distance to the value) of the same sum."""
        found = self.holder.get((value.terms, value.bits))
        if found is not None and self.version.get(found[0], 0) == found[2]:
            return found[0], value.constant - found[1]
        if len(value.terms) == 1 and value.terms[0][1] == 1:  # a register as the region found it
            start = self.values.at_start(value.terms[0][0])
            if start is not None and not self.version.get(start, 0):
                return start, value.constant
        return None

    def _address(self, instruction: Instruction) -> Instruction:
        """With a base register that other addresses have, too."""
        for place, operand in enumerate(instruction.operands):
            if not isinstance(operand, Mem) or not isinstance(operand.base, Reg) or operand.indices:
                continue
            base = operand.base.id
            value = self.values.register(base, 8 * TYPE_BYTES[self.registers[base].type])
            held = self._held(value)
            if held is None or held[0] == base or held[1] + operand.offset not in OFFSETS:
                continue
            changed = list(instruction.operands)
            changed[place] = Mem(Reg(held[0]), operand.offset + held[1])
            reads = tuple(held[0] if register == base else register for register in instruction.reads)
            instruction = replace(instruction, operands=tuple(changed), reads=reads)
        return instruction

    def _computed(self, instruction: Instruction, value: Value) -> Instruction:
        """The same result, from a constant or from a register with another constant to add."""
        target = instruction.operands[0]
        known = value.known
        if known is not None and instruction.base != "mov":
            opcode = self._copy_to(instruction.writes[0])
            return replace(instruction, opcode=opcode, operands=(target, Imm(known)), reads=())
        held = self._held(value) if value.terms else None
        if held is None or instruction.base in ("mov", "cvta"):
            return instruction
        register, distance = held
        if distance == 0:
            opcode = self._copy_to(instruction.writes[0])
            return replace(instruction, opcode=opcode, operands=(target, Reg(register)), reads=(register,))
        operands = (target, Reg(register), Imm(distance))
        return replace(instruction, opcode=f"add.s{value.bits}", operands=operands, reads=(register,))


def _needed(steps: list[Step], alive: int) -> list[Step]:
    """Without copies, and without what nobody reads."""
    kept: list[Step] = []
    wanted = set(members(alive))
    for step in reversed(_without_copies(steps)):
        instruction = step.instruction
        if is_pure(instruction) and wanted.isdisjoint(instruction.writes):
            continue
        if instruction.guard is None:
            wanted.difference_update(instruction.writes)
        wanted.update(instruction.reads)
        kept.append(step)
    return kept[::-1]


def _without_copies(steps: list[Step]) -> list[Step]:
    """What reads a copy reads the original, as long as that stays what it was."""
    rewritten: dict[int, int] = {}  # register -> the last step that writes it
    for place, step in enumerate(steps):
        rewritten.update(dict.fromkeys(step.instruction.writes, place))
    copies: dict[int, int] = {}

    def read(register: int) -> int:
        return copies.get(register, register)

    for place, step in enumerate(steps):
        instruction = step.instruction
        if copies and not copies.keys().isdisjoint(instruction.reads) and is_renamable(instruction):
            instruction = step.instruction = renamed(instruction, read, lambda register: register)
        for register in instruction.writes:
            copies.pop(register, None)
        source = copied(instruction) if instruction.guard is None else None
        if isinstance(source, Reg) and rewritten.get(source.id, -1) <= place:
            copies[instruction.writes[0]] = source.id
    return steps
