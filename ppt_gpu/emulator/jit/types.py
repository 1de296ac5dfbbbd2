"""What an opcode's modifiers say: its types, flush-to-zero, rounding, saturation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ppt_gpu.emulator.jit.emit import Unsupported
from ppt_gpu.emulator.llvm.text import ELEMENT
from ppt_gpu.ptx.module import Instruction

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs")


@dataclass(frozen=True)
class Opcode:
    order: tuple[str, ...]  # the modifiers as written
    types: tuple[str, ...]
    modifiers: frozenset[str]
    rounding: str  # "rn" when none is given

    @property
    def kind(self) -> str:
        """The type of the instruction: its last."""
        if not self.types:
            raise Unsupported("an instruction without a type")
        return self.types[-1]

    def has(self, *names: str) -> bool:
        return any(name in self.modifiers for name in names)


@lru_cache(maxsize=65536)
def opcode_of(text: str) -> Opcode:
    parts = text.split(".")[1:]
    return Opcode(
        order=tuple(parts),
        types=tuple(p for p in parts if p in ELEMENT),
        modifiers=frozenset(parts),
        rounding=next((p for p in parts if p in ROUNDINGS), "rn"),
    )


def parts(instruction: Instruction) -> Opcode:
    return opcode_of(instruction.opcode)


def is_signed(kind: str) -> bool:
    return kind[0] == "s"
