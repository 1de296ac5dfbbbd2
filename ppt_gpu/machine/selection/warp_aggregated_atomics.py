"""Atomics that one lane does for its warp: where all lanes update the same word, ptxas adds up what they bring first.

What ptxas 13.0 does for sm_75, sm_80 and sm_90 with every operation, type, operand and use of the result, read off its
machine code. The word must be the same for all lanes as far as the code says: an address made of parameters, of the
block's place in the grid and of what is loaded through such addresses.

* Additions of one value to a word of 32 or 64 bits: the lanes are counted.
* Additions, and min, max, and, or, xor of 32 bits whose result nobody reads: values are reduced (REDUX from sm_80 on,
  before that by shuffles, where no lane is missing).
* Additions of 32 bits whose results are read: a scan by shuffles, where no lane is missing.
* Nothing else: not inc, dec, exch and cas, nor floating point.

Where each lane has a word of its own, shared memory itself counts lanes from sm_80 on (`counted_by_word`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.ptx.instructions import access_kind, memory_space
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Mem, Operand, Reg, Special
from ppt_gpu.ptx.uses import writers_of

#: special registers that all lanes of a warp read alike
_ALIKE = ("ctaid.", "ntid.", "nctaid.", "clusterid.", "nclusterid.", "cluster_", "gridid", "smid", "nsmid")
_REDUCED = frozenset(("add", "min", "max", "and", "or", "xor"))
_WORDS = frozenset(("u32", "s32", "b32"))
_LONG = frozenset(("u64", "s64"))


@dataclass(frozen=True)
class Election:
    """How one lane comes to do the atomic of all."""

    counted: bool  # all lanes bring the same
    used: bool  # the result is read

    def needs_all(self, redux: bool) -> bool:
        """Only where no lane is missing; redux: one instruction reduces the values of the lanes that are there."""
        return not self.counted and (self.used or not redux)


def elections(kernel: Kernel) -> dict[int, Election]:
    """Of the atomics of `kernel` that one lane does for its warp, by instruction."""
    atomics = [instruction for instruction in kernel.instructions if access_kind(instruction) == "atomic"]
    if not atomics:
        return {}
    alike = _alike(kernel)
    read = {register for instruction in kernel.instructions for register in instruction.reads}
    found = ((instruction.index, _election(instruction, alike, read)) for instruction in atomics)
    return {index: election for index, election in found if election is not None}


def counted_by_word(instructions: Sequence[Instruction]) -> set[int]:
    """Of `instructions`, which add one to words of shared memory and want nothing back.

    ptxas 13.0 has ATOMS.POPC.INC for them from sm_80 on, which counts the lanes that name a word.
    """
    found = {number for number, instruction in enumerate(instructions) if _adds_one(instruction)}
    if not found:
        return found
    read = {register for instruction in instructions for register in instruction.reads}
    return {number for number in found if read.isdisjoint(instructions[number].writes)}


def _adds_one(instruction: Instruction) -> bool:
    if instruction.base not in ("atom", "red") or memory_space(instruction) != "shared":
        return False
    value, words = instruction.operands[-1], instruction.modifiers
    return "add" in words and words[-1] in _WORDS and isinstance(value, Imm) and value.value == 1


def operations(election: Election, made: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The machine operations beside the atomic itself; made: the table [unnamed] of the ISA."""
    parts = ["elect", "count" if election.counted else "scan" if election.used else "reduce"]
    if election.used:
        parts.append("spread")
    return tuple(name for part in parts for name in made.get(part, ()))


def _election(instruction: Instruction, alike: set[int], read: set[int]) -> Election | None:
    first = int(instruction.base == "atom")  # the word; before it, the result
    if instruction.base not in ("atom", "red") or len(instruction.operands) != first + 2:
        return None
    word, value = instruction.operands[first:]
    if not isinstance(word, Mem) or not _is_alike(word.base, alike):
        return None
    used = not read.isdisjoint(instruction.writes)
    counted, words = _is_alike(value, alike), instruction.modifiers
    if "add" in words and counted:
        return Election(True, used) if instruction.modifiers[-1] in _WORDS | _LONG else None
    reduced = words[-1] in _WORDS and not _REDUCED.isdisjoint(words) and ("add" in words or not used)
    return Election(False, used) if reduced else None


def _is_alike(operand: Operand | None, alike: set[int]) -> bool:
    return operand.id in alike if isinstance(operand, Reg) else not isinstance(operand, Special)


def _alike(kernel: Kernel) -> set[int]:
    """Registers that have one value for all lanes that are there: written once, from such values alone."""
    written = writers_of(kernel.instructions)
    found: set[int] = set()
    grown = True
    while grown:
        grown = False
        for instruction in kernel.instructions:
            new = [r for r in instruction.writes if len(written[r]) == 1 and r not in found]
            if new and _keeps_alike(instruction, found):
                found.update(new)
                grown = True
    return found


def _keeps_alike(instruction: Instruction, alike: set[int]) -> bool:
    if instruction.guard is not None or access_kind(instruction) == "atomic" or instruction.base in ("shfl", "call"):
        return False
    if memory_space(instruction) == "local":
        return False  # each lane has its own
    specials = (operand.name for operand in instruction.operands if isinstance(operand, Special))
    return alike.issuperset(instruction.reads) and all(name.startswith(_ALIKE) for name in specials)
