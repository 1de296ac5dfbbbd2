"""What the values of a kernel's registers are multiples of, wherever they are written."""

from __future__ import annotations

from ppt_gpu.machine.values import ALIGNED, Values
from ppt_gpu.ptx.module import Kernel

#: passes over the kernel; a register that changes after so many is taken to be a multiple of 1
_PASSES = 8


def alignments(kernel: Kernel) -> dict[int, int]:
    """Of each register that instructions write: every value is a multiple of 2^this.

    The greatest solution: all are taken to be 0 at first, then each write may only lower what is known.
    """
    found = {register: ALIGNED for instruction in kernel.instructions for register in instruction.writes}
    for _ in range(_PASSES):
        before = dict(found)
        for instruction in kernel.instructions:
            values = Values(before)
            value = values.result(instruction)
            at_least = values.alignment(value) if value is not None else 0
            for register in instruction.writes:
                guarded = instruction.guard is not None
                found[register] = min(found[register], 0 if guarded else at_least)
        if found == before:
            return found
    return {register: alignment if before[register] == alignment else 0 for register, alignment in found.items()}
