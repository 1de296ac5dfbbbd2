"""The registers that a disassembled instruction reads and writes, by their text.

Results stand first: up to two predicates, a general or uniform register, and behind it the predicate of a carry. What
stores, branches and barriers name is read.
"""

from __future__ import annotations

import re

from ppt_gpu.sass.disassembly import SassInstruction
from ppt_gpu.sass.operations import operation
from ppt_gpu.sass.registers import number, widths

_REGISTER = re.compile(r"(?<![\w.])(UR|UP|R|P)(\d+)(\.64)?\b")
#: opcodes (first parts) whose operations yield no register
_NO_RESULT = ("RED", "REDG", "BAR", "MEMBAR", "DEPBAR", "LDGDEPBAR", "LDGSTS", "CCTL", "SYNCS", "R2P", "R2B")
#: a general register behind the first predicates is a result, too
_BEHIND_PREDICATE = ("SHFL", "ATOM", "ATOMG", "LOP3", "ULOP3", "QSPC", "MATCH", "VOTE", "LDG", "LD")
#: two predicates are results, all others are read
_PREDICATES_ONLY = ("PLOP3", "PSETP", "CSETP", "UPLOP3", "UPSETP")


def registers(each: SassInstruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids (`ppt_gpu.sass.registers`) of the registers read, guard included, and written."""
    operands = _split(each.operands)
    wide, firsts, further = widths(each.opcode)
    count = _results(each, operands)
    writes = [r for operand in operands[:count] for r in _group(operand, max(wide, 1))]
    reads = _group(each.guard.removeprefix("!"), 1)
    position = 0
    for operand in operands[count:]:
        named = _REGISTER.findall(operand)
        width = firsts[position] if position < len(firsts) else further
        reads += _group(operand, width)
        position += any(file == "R" for file, _, _ in named)
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes))


def _results(each: SassInstruction, operands: list[str]) -> int:
    """How many of the operands, from the first on, are results."""
    name = operation(each.opcode) or ""
    if each.head in _NO_RESULT or name.startswith(("store.", "branch", "barrier", "fence")):
        return 0
    if each.head in _PREDICATES_ONLY:
        return min(2, len(operands))
    count = 0
    while count < min(2, len(operands)) and _is(operands[count], "P"):
        count += 1
    behind = count == 0 or each.head in _BEHIND_PREDICATE
    if behind and count < len(operands) and _is(operands[count], "R"):
        carry = count == 0 and len(operands) > 2 and _is(operands[1], "P")
        count += 2 if carry else 1
    return count


def _is(operand: str, kind: str) -> bool:
    """Is the operand just a register of this kind ("P": predicate, "R": general or uniform)?"""
    found = re.fullmatch(r"(U?)(R|P)(\d+|Z|T)(\.reuse)?", operand)
    return bool(found) and found[2] == kind  # type: ignore[index]


def _group(operand: str, width: int) -> list[int]:
    """Ids of the registers in an operand; general ones stand for `width`, or two where the text says .64."""
    found = []
    for file, index, double in _REGISTER.findall(operand):
        count = 2 if double or ("desc[" in operand and file == "UR") else width if file == "R" else 1
        found += [number(file, int(index) + k) for k in range(count)]
    return [each for each in found if each >= 0]


def _split(text: str) -> list[str]:
    """The operands: parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
