"""Can what a kernel finds in memory steer it: decide where it branches, or which addresses it accesses?

Where it cannot, the trace of a block is the same whatever the buffers hold and whichever blocks ran before, so that
traces of single blocks can be kept and put together at will. The answer errs on the side of yes.

The analysis is a backward slice over registers without regard to order (Weiser, "Program Slicing", ICSE 1981): from the
registers in guards, branch targets, addresses and barrier operands to whatever they are computed from. Shared and local
memory count as one variable; a value loaded from global memory, or returned by an atomic there, is the answer yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ppt_gpu.exec.once import once_a_kernel
from ppt_gpu.ptx.instructions import access_kind, is_branch, memory_space
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Operand, Pair, Reg, Special, Vec
from ppt_gpu.ptx.uses import writers_of

#: reads and writes of memory that the slice understands; every other way to memory is taken to steer
PLAIN = frozenset(("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix"))
#: instructions whose effect is outside of registers and of the memory spaces that loads and stores name
OPAQUE = frozenset(
    (
        *("call", "cp", "mbarrier", "wgmma", "tcgen05", "tensormap", "multimem", "alloca", "stackrestore"),
        *("tex", "tld4", "suld", "sust", "sured", "txq", "suq", "istypep", "griddepcontrol", "clusterlaunchcontrol"),
    )
)
#: synchronisation whose operands decide who waits or takes part
_MEETING = frozenset(("bar", "barrier"))
_MASKED = frozenset(("shfl", "vote", "match", "redux"))  # their last operand names lanes
#: special registers that tell the time or the place, which other blocks could change
_SITUATION = ("clock", "globaltimer", "smid", "nsmid", "pm", "envreg", "gridid", "warpid", "nwarpid", "cluster")
_SCRATCH = ("shared", "local")
_WHOLES = frozenset((Vec, Pair))  # operands that are made of operands


@once_a_kernel
def steered_by_memory(kernel: Kernel) -> bool:
    """Whether the trace of a block of `kernel` may depend on what is in global memory when it runs."""
    code = kernel.instructions
    return any(i.base == "call" or "cluster" in i.opcode for i in code) or _Slice(kernel).steered()


class _Slice:
    def __init__(self, kernel: Kernel) -> None:
        self.writers = writers_of(kernel.instructions)
        self.code = kernel.instructions
        self.needed: set[int] = set()
        self.todo: list[int] = []
        self.scratch = False  # what shared and local memory hold is needed

    def steered(self) -> bool:
        for instruction in self.code:
            self._need(deciding(instruction))
            if _deciding_specials(instruction):
                return True
        while self.todo:
            for writer in self.writers.get(self.todo.pop(), ()):
                if not self._explain(writer):
                    return True
        return False

    def _need(self, registers: Iterable[int]) -> None:
        fresh = set(registers) - self.needed
        self.needed |= fresh
        self.todo += sorted(fresh)

    def _explain(self, writer: Instruction) -> bool:
        """Add what a needed result is computed from. Returns False when that may be global memory."""
        if writer.base in OPAQUE or any(_is_situation(operand) for operand in flat(writer.operands)):
            return False
        space = memory_space(writer)
        if space in ("param", "constant"):
            return True  # addresses are needed anyway, the content is the launch's
        self._need(writer.reads)
        if space is None:
            return writer.base not in PLAIN
        return writer.base in PLAIN and space in _SCRATCH and self._need_scratch()

    def _need_scratch(self) -> bool:
        """Add everything that is written into shared and local memory. Returns False when that cannot be told."""
        if self.scratch:
            return True
        self.scratch = True
        for instruction in self.code:
            if instruction.base in OPAQUE and instruction.base not in ("tex", "tld4", "txq", "suq", "istypep"):
                return False
            if access_kind(instruction) in ("store", "atomic") and memory_space(instruction) in (*_SCRATCH, "generic"):
                if instruction.base not in PLAIN:
                    return False
                self._need(instruction.reads)
        return True


def deciding(instruction: Instruction) -> set[int]:
    """Registers that decide where control goes, which lanes act, or which addresses are accessed."""
    found = {instruction.guard.reg} if instruction.guard is not None else set()
    if is_branch(instruction) or instruction.base in _MEETING or instruction.base in OPAQUE:
        found |= set(instruction.reads)
    for operand in flat(instruction.operands):
        if isinstance(operand, Mem) and isinstance(operand.base, Reg):
            found.add(operand.base.id)
        if isinstance(operand, Mem):
            found |= {index.id for index in flat(operand.indices) if isinstance(index, Reg)}
    if instruction.base in _MASKED and instruction.operands and isinstance(instruction.operands[-1], Reg):
        found.add(instruction.operands[-1].id)
    return found


def _deciding_specials(instruction: Instruction) -> bool:
    """Does the instruction branch or wait on a special register that other blocks could change?"""
    deciding = is_branch(instruction) or instruction.base in _MEETING
    return deciding and any(_is_situation(operand) for operand in instruction.operands)


def _is_situation(operand: Operand) -> bool:
    return isinstance(operand, Special) and operand.name.startswith(_SITUATION)


def flat(operands: Sequence[Operand]) -> Sequence[Operand]:
    """The operands, with the parts of vectors and pairs instead of these."""
    for operand in operands:
        if type(operand) in _WHOLES:
            break
    else:
        return operands
    found: list[Operand] = []
    for operand in operands:
        if isinstance(operand, Vec):
            found += flat(operand.items)
        else:
            found += flat((operand.first, operand.second)) if isinstance(operand, Pair) else (operand,)
    return found
