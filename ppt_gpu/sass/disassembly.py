"""Disassembly of machine code: the text of `nvdisasm -c` and `cuobjdump -sass`, with or without encodings.

Both print an instruction as its address in a comment, an optional guard, the opcode, operands and a semicolon, and with
`-hex` (cuobjdump always) the encoding in comments of 16 hexadecimal digits each. nvdisasm prints labels; cuobjdump
prints addresses in their place.

Control codes of machine code: what the compiler tells the scheduler with every instruction, Maxwell and later.

21 bits. From the low end: stall (4), yield (1, active low), write barrier (3), read barrier (3), wait mask (6), reuse
flags (4). From Volta on they are bits 105 to 125 of an instruction's 128; Maxwell and Pascal pack three of them into
the 64-bit word before three instructions. Layout: arXiv 1804.06826, section 2.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.sass.machine import ARCHS

NO_BARRIER = 7
BARRIERS = 6  # scoreboards of a warp


@dataclass(frozen=True)
class Control:
    """What one instruction's control code says."""

    stall: int  # cycles until the warp may issue its next instruction
    yields: bool
    write_barrier: int  # scoreboard that is released when the result is there; -1: none
    read_barrier: int  # scoreboard that is released when the operands have been read; -1: none
    waits: tuple[int, ...]  # scoreboards that must be free before it issues

    @property
    def text(self) -> str:
        """ "stall 4, sets 2, waits 0 1": as in comments of task lists."""
        parts = [f"stall {self.stall}"]
        parts += [f"sets {self.write_barrier}"] if self.write_barrier >= 0 else []
        parts += [f"waits {' '.join(map(str, self.waits))}"] if self.waits else []
        return ", ".join(parts)


def decode(bits: int) -> Control:
    """The control code of 21 bits."""
    write, read = bits >> 5 & 7, bits >> 8 & 7
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        write_barrier=-1 if write == NO_BARRIER else write,
        read_barrier=-1 if read == NO_BARRIER else read,
        waits=tuple(number for number in range(BARRIERS) if bits >> 11 + number & 1),
    )


def of_encoding(words: tuple[int, ...]) -> Control | None:
    """Of a Volta or later instruction printed with its two 64-bit words, the low one first; None without them."""
    return decode(words[1] >> 41 & 0x1FFFFF) if len(words) == 2 else None


def of_group(word: int, position: int) -> Control:
    """Of instruction `position` (0 to 2) behind a control word of Maxwell or Pascal."""
    return decode(word >> 21 * position & 0x1FFFFF)


MAXWELL, VOLTA = 50, 70  # the first architectures with control codes of 21 bits, and with them in every instruction
_ADDRESS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s*(.*)")
_BODY = re.compile(
    r"(?:\{\s*)?(?:@(!?U?P[T0-9]+)\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)\s*([^;]*?)\s*;?\s*\}?\s*(?:/\*|$)"
)
_CODE = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_LABEL = re.compile(r"([^\s:]+):\s*$")
_TARGET = re.compile(r"\.target\s+(sm_\w+)|code for (sm_\w+)|EF_CUDA_SM(\d+)")
_FUNCTION = re.compile(r"\s*Function\s*:\s*(\S+)|\s*\.section\s+\.text\.([^\s,]+)\s*,")
_ENTRY = re.compile(r"\.other\s+(\S+?)\s*,.*STO_CUDA_ENTRY")
#: of BRA.U (a uniform predicate) and BRA.DIV (a uniform register) on Ampere and later
_CONDITION = re.compile(r"!?U?P\d|~?UR[\dZ]")
_SYMBOL = re.compile(r"`\(([^)]+)\)|\b(0x[0-9a-f]+)\s*$")


@dataclass(frozen=True)
class SassInstruction:
    """One machine instruction."""

    address: int  # B from the start of the function's code
    guard: str  # "P0", "!P0", "UP1"; "" when it has none
    opcode: str  # "IMAD.WIDE.U32"
    operands: str  # as printed
    line: int  # of the text
    encoding: tuple[int, ...] = ()  # the 64-bit words printed beside it
    control: Control | None = None  # where the encoding is printed, Maxwell and later

    @property
    def head(self) -> str:
        """The first part of the opcode."""
        return self.opcode.partition(".")[0]

    @property
    def conditional(self) -> bool:
        """Whether what follows may run, too, if this is a branch: it has a guard, or a condition as first operand."""
        return bool(self.guard) or _CONDITION.match(self.operands) is not None

    @property
    def target(self) -> str:
        """The label or address that it names ("" when none): of branches, calls and convergence points."""
        found = _SYMBOL.search(self.operands)
        return (found[1] or found[2]) if found else ""


@dataclass(frozen=True)
class SassFunction:
    """The code of one function, subroutines of the compiler's own behind it included."""

    name: str
    instructions: tuple[SassInstruction, ...]
    labels: Mapping[str, int]  # -> position of an instruction
    entry: bool = True  # a kernel, as far as the text says


@dataclass(frozen=True)
class Disassembly:
    target: str  # "sm_80"
    functions: Mapping[str, SassFunction]
    path: str = ""


@dataclass
class _Draft:
    name: str
    instructions: list[SassInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    group: tuple[int, int] | None = None  # a control word of three instructions, and how many have followed it

    def add(self, instruction: SassInstruction) -> None:
        if self.group is not None:
            word, used = self.group
            instruction = replace(instruction, control=of_group(word, used))
            self.group = (word, used + 1) if used < 2 else None
        self.instructions.append(instruction)

    def code(self, word: int, arch: int) -> None:
        """A word on a line of its own: the second half of an instruction, or a control word before Volta."""
        if arch < VOLTA:
            self.group = (word, 0) if arch >= MAXWELL else None
        elif self.instructions:
            last = self.instructions[-1]
            words = (*last.encoding, word)
            self.instructions[-1] = replace(last, encoding=words, control=of_encoding(words))

    def done(self, entry: bool) -> SassFunction:
        places = {f"0x{each.address:x}": place for place, each in enumerate(self.instructions)}
        return SassFunction(self.name, tuple(self.instructions), places | self.labels, entry)


def read_disassembly(text: str, path: str | Path = "<text>") -> Disassembly:
    """The functions in `text`. Raises PptError, with the line, when it is not what a disassembler prints."""
    target, drafts, entries = "", {}, set()
    draft: _Draft | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if (found := _TARGET.search(line)) and not target:
            target = found[1] or found[2] or f"sm_{found[3]}"
        if found := _FUNCTION.match(line):
            draft = _Draft(found[1] or found[2])
            drafts[draft.name] = draft
        elif found := _ENTRY.search(line):
            entries.add(found[1])
        elif draft is None:
            continue
        elif found := _LABEL.match(line):
            draft.labels[found[1]] = len(draft.instructions)
        elif found := _ADDRESS.match(line):
            draft.add(_instruction(int(found[1], 16), found[2], number, path))
        elif code := _CODE.search(line):
            draft.code(int(code[1], 16), _number(target))
    if not any(draft.instructions for draft in drafts.values()):
        hint = "expected what nvdisasm -c -hex or cuobjdump -sass print"
        raise PptError("no machine instruction in this text", path=path, hint=hint)
    if not target:
        raise PptError("the disassembly does not say for which architecture it is", path=path)
    if _number(target) not in ARCHS:
        raise PptError(f"machine code of an unknown architecture, {target}", path=path, hint="such as sm_70 or sm_80")
    functions = {
        name: draft.done(not entries or name in entries) for name, draft in drafts.items() if draft.instructions
    }
    return Disassembly(target, functions, str(path))


def _number(target: str) -> int:
    """80 of "sm_80", "sm_90a"."""
    return int(target.removeprefix("sm_").rstrip("af") or 0)


def _instruction(address: int, text: str, line: int, path: str | Path) -> SassInstruction:
    found = _BODY.match(text)
    if not found:
        raise PptError(f"no machine instruction: '{text.strip()[:60]}'", path=path, line=line)
    codes = tuple(int(code, 16) for code in _CODE.findall(text))
    return SassInstruction(address, found[1] or "", found[2], found[3], line, codes)
