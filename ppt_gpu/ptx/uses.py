"""Who writes a register, and who reads it."""

from __future__ import annotations

from collections.abc import Iterable

from ppt_gpu.ptx.module import Instruction


def writers_of(code: Iterable[Instruction]) -> dict[int, list[Instruction]]:
    """Of each register that is written, the instructions that do, in order."""
    found: dict[int, list[Instruction]] = {}
    for instruction in code:
        for register in instruction.writes:
            found.setdefault(register, []).append(instruction)
    return found


def readers_of(code: Iterable[Instruction]) -> dict[int, list[Instruction]]:
    """Of each register that is read, the instructions that do, in order; twice who reads it twice."""
    found: dict[int, list[Instruction]] = {}
    for instruction in code:
        for register in instruction.reads:
            found.setdefault(register, []).append(instruction)
    return found
