"""Warnings of a functional run, one an instruction: what works here but not on every GPU."""

from __future__ import annotations

from collections.abc import Iterable

from ppt_gpu.emulator.memory.warp_context import Flag
from ppt_gpu.ptx.module import Kernel

_TEXTS = {
    Flag.DIVERGENT_BARRIER: "a barrier in divergent code: some lanes of a warp reached it without the others",
    Flag.DIVERGENT_SYNC: "a .sync instruction named lanes that were not executing with the others",
}


def warnings_of(kernel: Kernel, path: str, notes: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """The texts of notes (instruction, Flag bits), by instruction: each begins with the place in the PTX."""
    found = []
    for index, bits in sorted(notes):
        instruction = kernel.instructions[index]
        source = f", source line {instruction.source_line}" if instruction.source_line else ""
        for flag, text in _TEXTS.items():
            if bits & flag:
                found.append(f"{path}:{instruction.line}: {text} ('{instruction.opcode}'{source})")
    return tuple(found)


def is_noted(warnings: Iterable[str], flag: Flag) -> bool:
    """Is one of these texts about `flag`?"""
    return any(_TEXTS[flag] in text for text in warnings)
