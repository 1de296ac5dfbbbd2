"""Can what a kernel finds in memory steer it: decide where it branches, or which addresses it accesses?

Where it cannot, the trace of a block is the same whatever the buffers hold and whichever blocks ran before, so that
traces of single blocks can be kept and put together at will. The answer errs on the side of yes.

The analysis is a backward slice over registers without regard to order (Weiser, "Program Slicing", ICSE 1981): from the
registers in guards, branch targets, addresses, sizes and barrier operands to whatever they are computed from. Shared
and local memory count as one variable, that of all blocks of a cluster; a value loaded from global memory, or returned
by an atomic there, is the answer yes.

An mbarrier is no part of that variable: its phases are decided by the counts and bytes that instructions on it give,
which are operands, and nothing else may touch one ("mbarrier object", PTX ISA 9.0). Only in a kernel without
mbarrier.init, or with a store that looks like one of an mbarrier, it is. What a tensor map holds decides addresses and
bytes; a map in the parameters is the launch's, one in global memory could have been written there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.ptx.instructions import access_kind, is_branch, is_memory, memory_space
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Operand, Pair, Reg, Special, Sym, Vec
from ppt_gpu.ptx.uses import writers_of

#: reads and writes of memory that the slice understands; every other way to memory is taken to steer
PLAIN = frozenset(("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "wmma"))
#: instructions whose effect is outside of registers and of the memory spaces that loads and stores name
OPAQUE = frozenset(
    (
        *("call", "tcgen05", "tensormap", "multimem", "alloca", "stackrestore", "clusterlaunchcontrol"),
        *("tex", "tld4", "suld", "sust", "sured", "txq", "suq", "istypep"),
    )
)
#: whose operands all decide: who waits or takes part, how many bytes are copied and where, when a phase is complete
_DECIDING = frozenset(("bar", "barrier", "cp", "mbarrier"))
_MASKED = frozenset(("shfl", "vote", "match", "redux", "elect"))  # their last operand names lanes
#: special registers that tell the time or the place, which other blocks could change
_SITUATION = ("clock", "globaltimer", "smid", "nsmid", "pm", "envreg", "gridid", "warpid", "nwarpid")
#: what an address is made of when no memory is asked
_MOVES = frozenset(("mov", "cvta", "add", "sub", "selp"))
_SCRATCH = ("shared", "local")
_WHOLES = frozenset((Vec, Pair))  # operands that are made of operands


@dataclass(frozen=True)
class Deciding:
    """What decides the trace of a kernel that memory does not steer."""

    registers: frozenset[int]
    scratch: bool  # and what shared and local memory hold


def steered_by_memory(kernel: Kernel) -> bool:
    """Whether the trace of a block of `kernel` may depend on what is in global memory when it runs."""
    return decided_by(kernel) is None


@once_a_kernel
def decided_by(kernel: Kernel) -> Deciding | None:
    """What decides the trace of a block of `kernel`; None: what is in global memory when it runs may do, too."""
    found = _Slice(kernel)
    if any(i.base == "call" for i in kernel.instructions) or found.steered():
        return None
    return Deciding(frozenset(found.needed), found.scratch)


class _Slice:
    def __init__(self, kernel: Kernel) -> None:
        self.writers = writers_of(kernel.instructions)
        self.code = kernel.instructions
        self.parameters = {parameter.name for parameter in kernel.params}
        self.needed: set[int] = set()
        self.todo: list[int] = []
        self.scratch = False  # what shared and local memory hold is needed

    def steered(self) -> bool:
        for instruction in self.code:
            self._need(deciding(instruction))
            if _deciding_specials(instruction) or not self._maps_are_parameters(instruction):
                return True
        barriers = [i for i in self.code if i.base == "mbarrier"]
        set_up = any("init" in i.modifiers for i in barriers) and not any(map(_may_store_mbarrier, self.code))
        if barriers and not set_up and not self._need_scratch():
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
        if writer.base == "mbarrier":
            return True  # by operands that are needed anyway
        if writer.base == "wgmma" and not self._need_scratch():
            return False
        space = memory_space(writer)
        if space in ("param", "constant"):
            return True  # addresses are needed anyway, the content is the launch's
        self._need(writer.reads)
        if space is None:
            return True
        return writer.base in PLAIN and space in _SCRATCH and self._need_scratch()

    def _need_scratch(self) -> bool:
        """Add everything that is written into shared and local memory. Returns False when that cannot be told."""
        if self.scratch:
            return True
        self.scratch = True
        for instruction in self.code:
            if instruction.base in OPAQUE and instruction.base not in ("tex", "tld4", "txq", "suq", "istypep"):
                return False
            if instruction.base == "cp":
                if copies_from_global(instruction):
                    return False
                continue
            if access_kind(instruction) in ("store", "atomic") and memory_space(instruction) in (*_SCRATCH, "generic"):
                if instruction.base not in PLAIN:
                    return False
                self._need(instruction.reads)
        return True

    def _maps_are_parameters(self, instruction: Instruction) -> bool:
        """Do the tensor maps that the instruction copies by, if any, lie in the parameters?"""
        if instruction.base != "cp" or "tensor" not in instruction.modifiers:
            return True
        maps = [operand.base for operand in instruction.operands if isinstance(operand, Mem) and operand.indices]
        return all(self._is_parameter(base) for base in maps)

    def _is_parameter(self, base: Operand | None) -> bool:
        """Is it the address of a parameter, made of such addresses, thread numbers and constants only?"""
        todo, seen, found = [base], set[int](), False
        while todo:
            operand = todo.pop()
            if isinstance(operand, Sym):
                if operand.name not in self.parameters:
                    return False
                found = True
            if not isinstance(operand, Reg) or operand.id in seen:
                continue
            seen.add(operand.id)
            for writer in self.writers.get(operand.id, ()):
                if writer.base not in _MOVES:
                    return False
                todo += flat(writer.operands[1:])
        return found


def deciding(instruction: Instruction) -> set[int]:
    """Registers that decide where control goes, which lanes act, or which addresses are accessed."""
    found = {instruction.guard.reg} if instruction.guard is not None else set()
    base, operands = instruction.base, instruction.operands
    if is_branch(instruction) or base in _DECIDING or base in OPAQUE or "bulk" in instruction.modifiers:
        found |= set(instruction.reads)
    for operand in flat(operands):
        if isinstance(operand, Mem) and isinstance(operand.base, Reg):
            found.add(operand.base.id)
        if isinstance(operand, Mem):
            found |= {index.id for index in flat(operand.indices) if isinstance(index, Reg)}
    if base in _MASKED:
        found |= _registers(operands[-1:])
    elif base == "wgmma":
        found |= _registers(operands[1:3])  # descriptors; fragments are vectors
    elif base == "wmma" and is_memory(instruction):
        found |= _registers(operands[2:])  # from line to line
    return found


def _registers(operands: Sequence[Operand]) -> set[int]:
    return {operand.id for operand in operands if isinstance(operand, Reg)}


def _may_store_mbarrier(instruction: Instruction) -> bool:
    """A plain store of one integer of 64 bits, as large as an mbarrier, where mbarriers are."""
    whole = not {"v2", "v4"} & set(instruction.modifiers) and {"b64", "u64", "s64"} & set(instruction.modifiers)
    return instruction.base == "st" and bool(whole) and memory_space(instruction) in ("shared", "generic")


def copies_from_global(instruction: Instruction) -> bool:
    """A cp that brings what global memory holds into shared memory."""
    spaces = [word.partition("::")[0] for word in instruction.modifiers]
    spaces = [space for space in spaces if space in ("shared", "global")]
    return len(spaces) > 1 and spaces[0] == "shared" and spaces[-1] == "global"


def _deciding_specials(instruction: Instruction) -> bool:
    """Does the instruction branch or wait on a special register that other blocks could change?"""
    deciding = is_branch(instruction) or instruction.base in _DECIDING
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
