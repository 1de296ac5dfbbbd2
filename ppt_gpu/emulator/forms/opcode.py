"""What an opcode's modifiers say: its types, flush-to-zero, rounding, saturation; and the bits of a literal."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

from ppt_gpu.ptx.module import Instruction

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs")
#: bits of a value of a PTX type
WIDTH: dict[str, int] = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32, "u16x2": 32, "s16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64, "b128": 128,
}  # fmt: skip
_PACK = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}
_FLOATS = frozenset(("f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "f32x2", "tf32"))


@dataclass(frozen=True)
class Opcode:
    order: tuple[str, ...]  # the modifiers as written
    types: tuple[str, ...]
    modifiers: frozenset[str]
    rounding: str  # "rn" when none is given

    @property
    def kind(self) -> str:
        """The type of the instruction: its last. IndexError where it has none."""
        return self.types[-1]

    @property
    def is_float(self) -> bool:
        """Is the type that it computes with a floating-point one, packed or not?"""
        return self.types[-1] in _FLOATS

    def has(self, *names: str) -> bool:
        return any(name in self.modifiers for name in names)


@lru_cache(maxsize=65536)
def opcode_of(text: str) -> Opcode:
    parts = text.split(".")[1:]
    return Opcode(
        order=tuple(parts),
        types=tuple(p for p in parts if p in WIDTH),
        modifiers=frozenset(parts),
        rounding=next((p for p in parts if p in ROUNDINGS), "rn"),
    )


def parts(instruction: Instruction) -> Opcode:
    return opcode_of(instruction.opcode)


def is_signed(kind: str) -> bool:
    return kind[0] == "s"


def float_bits(value: float, width: int) -> int:
    """The bits of `value` rounded to nearest even in `width` bits; too large becomes infinity."""
    as_float, as_int = _PACK[width]
    try:
        return struct.unpack(as_int, struct.pack(as_float, value))[0]
    except OverflowError:
        infinity = {16: 0x7C00, 32: 0x7F800000}[width]
        return infinity | (1 << (width - 1) if value < 0 else 0)


def float_from_bits(bits: int, width: int) -> float:
    as_float, as_int = _PACK[width]
    return struct.unpack(as_float, struct.pack(as_int, bits))[0]
