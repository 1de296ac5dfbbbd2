"""Kernels of the simulator's reference cases, instruction by instruction, and the paths of their warps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "validation" / "gpgpusim"


@dataclass(frozen=True)
class Instruction:
    pc: int
    opcode: str
    unit: str  # memory, fp or int
    space: str
    result: str
    sources: tuple[str, ...]  # read through the collectors: not those of addresses
    registers: frozenset[str]
    target: int
    guard: str


def kernel(file: str, name: str) -> list[Instruction]:
    """The body of a kernel, instruction by instruction."""
    text = (FOLDER / "ptx70" / f"{file}.ptx").read_text()
    body = text[text.index("\n{", text.index(f".entry {name}")) :]
    lines = [line.strip().rstrip(";") for line in body[2 : body.index("\n}")].splitlines()]
    lines = [line for line in lines if line and not line.startswith(".")]
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in lines:
        if line.endswith(":"):
            labels[line[:-1]] = len(code)
        else:
            code.append(line)
    return [_instruction(pc, line, labels) for pc, line in enumerate(code)]


def _instruction(pc: int, line: str, labels: dict[str, int]) -> Instruction:
    guard, rest = re.match(r"(?:@!?(%p\d+)\s+)?(.*)", line).groups("")  # type: ignore[union-attr]
    opcode, _, text = rest.partition(" ")
    operands = re.findall(r"\[[^\]]*\]|[^,\s]+", text)
    parts = opcode.split(".")
    memory, writes = parts[0] in ("ld", "st"), parts[0] not in ("st", "bra", "bar", "ret")
    read = operands[1:] if writes or parts[0] == "st" else []
    sources = tuple(o for o in read if re.fullmatch(r"%[rf]d?\d+", o))
    unit = "memory" if memory else "fp" if parts[-1] == "f32" and parts[0] != "mov" else "int"
    used = frozenset(re.findall(r"%(?:p|r|rd|f)\d+", line))
    target = labels[operands[0]] if parts[0] == "bra" else -1
    space, result = parts[1] if memory else "", operands[0] if writes and operands else ""
    return Instruction(pc, parts[0], unit, space, result, sources, used, target, guard)


def looping(code: Sequence[Instruction], rounds: int) -> list[Instruction]:
    """The path of a warp that goes back `rounds` - 1 times and never forward."""
    path, pc = [], 0
    while pc < len(code):
        path.append(code[pc])
        back = 0 <= code[pc].target <= pc and rounds > 1
        rounds -= back
        pc = code[pc].target if back else pc + 1
    return path


def reducing(code: Sequence[Instruction], warp: int) -> list[Instruction]:
    """The path of a warp of the reduction: it skips the arms that none of its threads takes part in."""
    last = {f"%p{3 + step}": (1 << 7 - step) - 1 for step in range(8)} | {"%p11": 0}
    path, pc = [], 0
    while pc < len(code):
        path.append(code[pc])
        pc = code[pc].target if warp * 32 > last.get(code[pc].guard, 1 << 20) else pc + 1
    return path
