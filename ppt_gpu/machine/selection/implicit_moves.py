"""Machine instructions that PTX does not name: what ptxas adds so that operands are where they can be read.

Which of them a GPU has, and what they are there, its ISA says ([unnamed]):

* stack: the stack pointer, R1, is loaded before anything else, whether there is a stack or not.
* descriptor: global memory is accessed through a descriptor, loaded once (sm_80 and later).
* special: a special register is read once into an ordinary one; sizes of block and grid are constants instead.
* parameter: parameters, sizes of block and grid are constant operands; from sm_90 on they are loaded.
* constant: an instruction has one operand that is a literal or in the constant bank, and never a store's data: a
  second one is moved into a register, which later instructions find there.
* copy: a register that is written in several places (a variable of a loop, the result of two arms) gets its first
  value by a move, unless that is a value of which this is the last use.
* extend: an integer that is loaded into 64 bits gets its upper half by a shift, unless one sum does that, too.
* double: a double-precision literal with lower bits is put into uniform registers (sm_90 and later).
* shared: the window of a block's shared memory in that of its cluster is computed (sm_90 and later).
* elect, count, reduce, scan, spread: what makes one lane do an atomic for its warp
  (ppt_gpu.machine.selection.warp_aggregated_atomics).
* reconverge: where lanes may part and meet again, one instruction says where before, and one waits there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ppt_gpu.machine.selection.constants import fixed_constant
from ppt_gpu.machine.selection.fusion import Operations, kind
from ppt_gpu.machine.selection.if_conversion import Arms
from ppt_gpu.machine.selection.warp_aggregated_atomics import elections, operations
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import access_bytes, access_kind, loads_launch_parameter, memory_space
from ppt_gpu.ptx.linking.liveness import register_weights
from ppt_gpu.ptx.module import TYPE_BYTES, Imm, Instruction, Kernel, Operand, Reg, Special, Sym
from ppt_gpu.ptx.uses import readers_of, writers_of


def dominators(flow: ControlFlow, entries: set[int]) -> list[int]:
    """[N] bit sets of the blocks that dominate each block, itself among them (Cooper, Harvey, Kennedy 2001, by sets).

    entries: blocks where control may come from outside. Blocks that nothing reaches are dominated by all.
    """
    count = len(flow.block_start)
    before: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(flow.successors):
        for other in following:
            if other < count:
                before[other].append(block)
    every = (1 << count) - 1
    found = [1 << block if block in entries else every for block in range(count)]
    changed = True
    while changed:
        changed = False
        for block in range(count):
            if block in entries:
                continue
            common = every
            for other in before[block]:
                common &= found[other]
            if (now := common | 1 << block) != found[block]:
                found[block], changed = now, True
    return found


#: special registers that are constants of the launch
_SIZES = ("ntid.", "nctaid.", "nclusterid.", "cluster_nctaid.", "gridid", "dynamic_smem_size", "total_smem_size")
#: PTX instructions that one machine instruction does with ordinary operands
_PLAIN = frozenset(("add", "sub", "mul", "mad", "fma", "and", "or", "xor", "shl", "shr", "min", "max", "setp", "selp"))
_REGISTER = 4  # B
_LOWER = 0xFFFFFFFF  # bits of a double that no instruction holds as a literal
#: registers that a block clears one by one; of more, ptxas clears pairs (CS2R)
_SINGLE_ZEROS = 4
Key = tuple[str, object]


def unnamed(
    kernel: Kernel, flow: ControlFlow, alive: Sequence[int], arms: Arms, made: Mapping[str, Operations]
) -> dict[int, Operations]:
    """Of PTX instructions: the machine operations in front of their own that are not in the PTX.

    alive: [N] bit sets of the registers that are read behind each block. made: the ISA's table.
    """
    return _Finder(kernel, flow, alive, made).run(arms) if made and kernel.instructions else {}


class _Finder:
    def __init__(self, kernel: Kernel, flow: ControlFlow, alive: Sequence[int], made: Mapping[str, Operations]) -> None:
        self.kernel, self.flow, self.alive, self.made = kernel, flow, alive, made
        self.found: dict[int, list[str]] = {}
        self.writers, self.readers = writers_of(kernel.instructions), readers_of(kernel.instructions)
        self.read = {register for instruction in kernel.instructions for register in instruction.reads}
        self.weights = register_weights(kernel)
        self.dominators = dominators(flow, {flow.block_of(entry) for entry in kernel.entries} | {0})
        self.held: dict[Key, int] = {}  # bit set of the blocks in which a value has been put into a register

    def run(self, arms: Arms) -> dict[int, Operations]:
        self._add(0, "stack")
        shared = {variable.name for variable in self.kernel.variables if variable.space == "shared"}
        for block in range(len(self.flow.block_start)):
            self.zeros: list[int] = []
            for index in range(self.flow.block_start[block], self.flow.block_end[block]):
                self._instruction(block, index, shared)
            for index in self.zeros[:: 2 if len(self.zeros) > _SINGLE_ZEROS else 1]:
                self._add(index, "copy")
        for index, election in elections(self.kernel).items():
            self.found.setdefault(index, []).extend(operations(election, self.made))
        for meeting in arms.meetings:
            self._add(self.flow.block_start[meeting], "reconverge")
        return {index: tuple(names) for index, names in self.found.items()}

    def _add(self, index: int, what: str, times: int = 1) -> None:
        if names := self.made.get(what):
            self.found.setdefault(index, []).extend(names * times)

    def _once(self, block: int, index: int, what: str, key: Key) -> None:
        """Unless the same has been done on every way to here."""
        before = self.held.get(key, 0)
        if not before & self.dominators[block]:
            self.held[key] = before | 1 << block
            self._add(index, what)

    def _instruction(self, block: int, index: int, shared: set[str]) -> None:
        instruction = self.kernel.instructions[index]
        for operand in instruction.operands:
            if isinstance(operand, Special):
                what = "parameter" if operand.name.startswith(_SIZES) else "special"
                self._once(block, index, what, ("special", operand.name))
            elif isinstance(operand, Sym) and operand.name in shared:
                self._once(block, index, "shared", ("shared", ""))
        if loads_launch_parameter(self.kernel, instruction) and not self.read.isdisjoint(instruction.writes):
            self._once(block, index, "parameter", ("loaded", instruction.operands[1]))
        if access_kind(instruction) is not None and memory_space(instruction) in ("global", "generic"):
            self._once(0, 0, "descriptor", ("descriptor", ""))
        if self._is_extended(instruction):
            self._add(index, "extend")
        if instruction.base == "mov" and len(instruction.operands) == 2 and len(instruction.writes) == 1:
            self._copy(block, index, instruction)
        elif instruction.base in _PLAIN:
            self._constants(block, index, instruction)
        elif instruction.base == "st":
            value = self._literal(instruction.operands[1])
            if value is not None:
                self._once(block, index, "constant", value)
                if access_bytes(instruction) == 2 * _REGISTER:
                    self._once(block, index, "constant", ("upper half", value))

    def _is_extended(self, instruction: Instruction) -> bool:
        """Is it a load into 64 bits whose sign somebody needs who does not extend it?"""
        if instruction.base not in ("ld", "ldu") or instruction.modifiers[-1] not in ("s8", "s16", "s32"):
            return False
        target = instruction.writes[0]
        readers = self.readers.get(target, [])
        alone = len(readers) == 1 and kind(readers[0]) == "add.64"
        return self.weights[target] * _REGISTER > TYPE_BYTES[instruction.modifiers[-1]] and not alone and bool(readers)

    def _copy(self, block: int, index: int, instruction: Instruction) -> None:
        """A move, where the register has other values elsewhere."""
        target, source = instruction.writes[0], instruction.operands[1]
        if len(self.writers[target]) == 1 or isinstance(source, Special) or not self.weights[target]:
            return
        if self._is_zero(block, index, source):
            if self.weights[target] == 1:
                self.zeros.append(index)
            else:
                self._add(index, "copy")  # one instruction clears two registers
        elif isinstance(source, Imm) or self._literal(source) is not None or self._read_later(block, index, source):
            self._add(index, "copy", self.weights[target])

    def _is_zero(self, block: int, index: int, source: Operand) -> bool:
        """Is it the literal, or a register that has been cleared just before?"""
        if isinstance(source, Imm):
            return not (source.bits or source.value)
        if not isinstance(source, Reg):
            return False
        before = self.kernel.instructions[self.flow.block_start[block] : index]
        writer = next((each for each in reversed(before) if source.id in each.writes), None)
        if writer is None or writer.base != "mov" or writer.guard is not None:
            return False
        first = writer.operands[1]
        return isinstance(first, Imm) and not (first.bits or first.value)

    def _read_later(self, block: int, index: int, source: Operand) -> bool:
        if not isinstance(source, Reg):
            return True
        for later in self.kernel.instructions[index + 1 : self.flow.block_end[block]]:
            if source.id in later.reads:
                return True
            if source.id in later.writes and later.guard is None:
                return False
        return bool(self.alive[block] >> source.id & 1)

    def _constants(self, block: int, index: int, instruction: Instruction) -> None:
        """All but one of the operands that are literals or in the constant bank; of a joined product's, too."""
        sources = list(instruction.operands[1:])
        if kind(instruction) == "add.64":
            sources += [factor for source in sources for factor in self._factors(source)]
        keys = sorted({key for source in sources if (key := self._literal(source)) is not None}, key=str)
        if instruction.modifiers[-1:] == ("f64",):
            for key in keys:
                if key[0] == "literal" and isinstance(key[1], int) and key[1] & _LOWER:
                    self._once(block, index, "double", ("double", key[1]))
        for key in keys[:-1]:  # "literal" before "parameter": what may stay is a constant of more bits
            self._once(block, index, "constant", key)

    def _factors(self, source: Operand) -> Sequence[Operand]:
        """What a product that becomes a part of its reader multiplies."""
        writers = self.writers.get(source.id, []) if isinstance(source, Reg) else []
        return writers[0].operands[1:] if len(writers) == 1 and kind(writers[0]) == "mul.wide" else ()

    def _literal(self, source: Operand) -> Key | None:
        """Which literal or constant of the launch the operand is; None: in a register, or zero."""
        if isinstance(source, Imm):
            bits = source.value if source.bits is None else source.bits
            return ("literal", bits) if bits else None
        if not isinstance(source, Reg):
            return None
        writers = self.writers.get(source.id, [])
        if len(writers) != 1 or writers[0].guard is not None:
            return None
        writer = writers[0]
        if loads_launch_parameter(self.kernel, writer) or fixed_constant(writer) is not None:
            return None if "parameter" in self.made else ("parameter", writer.operands[1])
        if writer.base not in ("mov", "cvta") or len(writer.operands) != 2:
            return None
        value = writer.operands[1]
        if isinstance(value, Special):
            constant = value.name.startswith(_SIZES) and "parameter" not in self.made
            return ("parameter", value.name) if constant else None
        return self._literal(value)
