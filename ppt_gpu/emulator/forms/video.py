"""Video instructions, read from opcode and operands: shared by both engines.

Source: PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions". Selected bytes or half-words of the sources
are extended to integers, the operation is exact, its result optionally saturated to the destination's part, then
combined with c by a second operation or merged into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.ptx.module import Instruction, Minus, Operand, Part

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND = ("add", "min", "max")
#: opcodes of instructions on one value, and on 2 or 4 values in a word
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
SIMD = tuple(f"v{name}{n}" for n in (2, 4) for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set"))


@dataclass(frozen=True)
class Video:
    operation: str  # add sub absdiff min max shl shr mad set avrg
    lanes: int  # 1, 2 or 4 numbers in a register
    types: tuple[bool, bool, bool]  # are destination, a, b signed?
    saturate: bool
    second: str  # add, min, max, or ""
    wrap: bool  # shift amounts modulo 32, else clamped to 32
    comparison: str
    scale: int  # bits that vmad shifts its sum to the right
    plus_one: bool
    selectors: tuple[str, str, str]  # of destination, a, b; "" for the whole register
    negative: tuple[bool, bool, bool]  # of a, b, c
    has_c: bool

    @property
    def part_bits(self) -> int:
        """Bits of one number of the destination."""
        if self.lanes > 1:
            return 32 // self.lanes
        return {"": 32, "b": 8, "h": 16}[self.selectors[0][:1]]

    @property
    def sources(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """For a and b: the place of each number among the parts of {b, a} (SIMD) or of the operand, lowest first."""
        if self.lanes == 1:
            places = tuple((int(s[1:] or 0),) if s else (0,) for s in self.selectors[1:])
            return places[0], places[1]
        defaults = ("10", "32") if self.lanes == 2 else ("3210", "7654")
        a, b = (
            tuple(int(digit) for digit in reversed(s[1:] or default))
            for s, default in zip(self.selectors[1:], defaults, strict=True)
        )
        return a, b

    @property
    def source_bits(self) -> tuple[int, int]:
        """Bits of a part of a and of b."""
        if self.lanes > 1:
            return 32 // self.lanes, 32 // self.lanes
        a, b = ({"": 32, "b": 8, "h": 16}[s[:1]] for s in self.selectors[1:])
        return a, b

    @property
    def written(self) -> tuple[int, ...]:
        """Numbers of the destination that receive a result; the others are those of c."""
        digits = self.selectors[0][1:]
        if self.lanes == 1:
            return (int(digits or 0),)
        return tuple(sorted(int(d) for d in digits)) if digits else tuple(range(self.lanes))

    @property
    def signed_sum(self) -> bool:
        """Is the sum of vmad signed?"""
        return self.types[1] or self.types[2] or self.negative[0] != self.negative[1] or self.negative[2]


def video(ins: Instruction) -> Video:
    """The parts of a video instruction."""
    name = ins.base[1:]
    lanes = int(name[-1]) if name[-1] in "24" else 1
    operation = name.rstrip("24")
    types = [m[0] == "s" for m in ins.modifiers if m in ("u32", "s32")]
    if operation == "set":  # its result is 0 or 1
        types.insert(0, False)
    words = ins.modifiers[2:] if operation == "set" else ins.modifiers
    return Video(
        operation, lanes, (types[0], types[1], types[2]), "sat" in words,
        next((m for m in words if m in _SECOND), ""), "wrap" in words,
        next((m for m in words if m in COMPARISONS), ""),
        7 if "shr7" in words else 15 if "shr15" in words else 0, "po" in words,
        (_selector(ins.operands[0]), _selector(ins.operands[1]), _selector(ins.operands[2])),
        (_negative(ins.operands[1]), _negative(ins.operands[2]), len(ins.operands) > 3 and _negative(ins.operands[3])),
        len(ins.operands) > 3,
    )  # fmt: skip


def register_of(operand: Operand) -> Operand:
    """The operand without sign and selector."""
    if isinstance(operand, Minus):
        operand = operand.operand
    return operand.reg if isinstance(operand, Part) else operand


def _selector(operand: Operand) -> str:
    if isinstance(operand, Minus):
        operand = operand.operand
    return operand.selector if isinstance(operand, Part) else ""


def _negative(operand: Operand) -> bool:
    return isinstance(operand, Minus)
