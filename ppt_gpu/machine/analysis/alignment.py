"""What the values of a kernel's registers are multiples of, wherever they are written."""

from __future__ import annotations

from collections.abc import Iterable

from ppt_gpu.machine.analysis.values import ALIGNED, Values
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.ptx.uses import readers_of

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
