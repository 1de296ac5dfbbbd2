"""Address arithmetic that accesses to shared memory do themselves: constants added, and indices times 4, 8 or 16.

Before compute capability 9.0 a variable of shared memory has a known address, which becomes the offset of an access;
from Volta on the address register may be scaled as well ([R2.X4+0x400]). Which of the two a GPU has, its ISA says
([fuse], "add.32+shared" and "shl.32+shared").
"""

from __future__ import annotations

from collections.abc import Mapping

from ppt_gpu.machine.selection.fusion import Operations, kind
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import is_memory, memory_space
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Mem, Operand, Reg, Sym
from ppt_gpu.ptx.uses import readers_of, writers_of

#: left shifts that an access scales its address register by
_SCALES = (2, 3, 4)


def address_parts(kernel: Kernel, flow: ControlFlow, fuse: Mapping[str, Operations]) -> frozenset[int]:
    """The instructions of a kernel that become a part of every access which reads their result, by index."""
    if "add.32+shared" not in fuse and "shl.32+shared" not in fuse:
        return frozenset()
    return _Finder(kernel, flow, fuse).run()


class _Finder:
    def __init__(self, kernel: Kernel, flow: ControlFlow, fuse: Mapping[str, Operations]) -> None:
        self.kernel, self.flow, self.fuse = kernel, flow, fuse
        self.writers, self.readers = writers_of(kernel.instructions), readers_of(kernel.instructions)

    def run(self) -> frozenset[int]:
        sums = {index for index in range(len(self.kernel.instructions)) if self._is_sum(index)}
        found: set[int] = set()
        while more := {index for index in sums - found if self._all_read(index, found)}:
            found |= more
        shifts = {index for index in range(len(self.kernel.instructions)) if self._is_scale(index)}
        return frozenset(found | {index for index in shifts if self._all_read(index, found)})

    def _is_sum(self, index: int) -> bool:
        """Of a register and what is the same in all threads of all blocks?"""
        instruction = self.kernel.instructions[index]
        if "add.32+shared" not in self.fuse or instruction.base != "add" or kind(instruction) != "add.32":
            return False
        return instruction.guard is None and any(map(self._is_constant, instruction.operands[1:]))

    def _is_constant(self, operand: Operand) -> bool:
        if isinstance(operand, Reg):
            written = self.writers.get(operand.id, [])
            return len(written) == 1 and written[0].base == "mov" and isinstance(written[0].operands[1], Imm | Sym)
        return isinstance(operand, Imm | Sym)

    def _is_scale(self, index: int) -> bool:
        instruction = self.kernel.instructions[index]
        if "shl.32+shared" not in self.fuse or kind(instruction) != "shl.32" or instruction.guard is not None:
            return False
        amount = instruction.operands[2]
        return isinstance(amount, Imm) and amount.value in _SCALES

    def _all_read(self, index: int, sums: set[int]) -> bool:
        """Do only accesses to shared memory, and `sums` that are parts of such, read it, while its sources last?"""
        writes = self.kernel.instructions[index].writes
        if len(writes) != 1 or len(self.writers[writes[0]]) != 1:
            return False
        read = self.readers.get(writes[0], [])
        return bool(read) and all(
            (reader.index in sums or _is_base(reader, writes[0])) and self._lasts(index, reader.index)
            for reader in read
        )

    def _lasts(self, index: int, reader: int) -> bool:
        """Are the sources of an instruction still what they were where its result is read?"""
        changing = [r for r in self.kernel.instructions[index].reads if len(self.writers.get(r, ())) > 1]
        if not changing:
            return True
        here = self.flow.block_of(index) == self.flow.block_of(reader) and index < reader
        return here and not any(
            index < writer.index < reader for register in changing for writer in self.writers[register]
        )


def _is_base(instruction: Instruction, register: int) -> bool:
    """Is the register the address of an access to shared memory, and read for nothing else?"""
    if not is_memory(instruction) or memory_space(instruction) != "shared" or instruction.base in ("cp", "mbarrier"):
        return False
    guard = instruction.guard
    if guard is not None and guard.reg == register:
        return False
    bases = [operand.base for operand in instruction.operands if isinstance(operand, Mem)]
    based = sum(isinstance(base, Reg) and base.id == register for base in bases)
    return based == 1 and instruction.reads.count(register) == 1
