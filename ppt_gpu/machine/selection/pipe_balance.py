"""Machine instructions that two pipes can do: which of them the compiler gives to the multipliers.

From Volta on a move, a left shift by a literal, a sum of two registers and the upper half of a 64-bit sum are an
instruction of the ALU (MOV, SHF, IADD3) or one of the multiplier (IMAD.MOV, IMAD.SHL, IMAD.IADD, IMAD.X). ptxas 13.0
chooses so that a basic block has as many instructions for one as for the other, as far as its others allow; `validate
isa` has both pipes beside ours. On sm_120, which has an ALU of its own for moves, only the shifts move.

Moves under a predicate, which choose a word (`local_array_promotion.py`), it gives out so that the whole kernel has as
many instructions for one as for the other: of 506 small kernels, compiled for sm_75, 80, 86 and 90, 3 % of these moves
are not where that puts them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ppt_gpu.machine.selection.fusion import Operations, kind
from ppt_gpu.ptx.instructions import loads_launch_parameter
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Reg, Special
from ppt_gpu.ptx.uses import writers_of
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import machine_operations

#: the operation of the ALU that everything which can be either is, and what it is on the multiplier
_MOVE, _ADD, _SHIFT, _MULTIPLIER = "int32.mov", "int32.add", "int32.shift", "int32.mad"


def banked(kernel: Kernel) -> frozenset[int]:
    """Registers that are operands in the constant bank: parameters and sizes of the launch, written once."""
    written = writers_of(kernel.instructions)
    return frozenset(r for r, (first, *others) in written.items() if not others and _is_bank(kernel, first))


def _is_bank(kernel: Kernel, writer: Instruction) -> bool:
    if loads_launch_parameter(kernel, writer):
        return True
    source = writer.operands[1] if writer.base in ("mov", "cvta") and len(writer.operands) == 2 else None
    return isinstance(source, Special) and source.name.startswith(("ntid.", "nctaid."))


def balanced(
    code: Sequence[Instruction],
    operations: Mapping[int, Operations],
    joined: Collection[int],
    banks: Collection[int],
    isa: Isa,
) -> dict[int, Operations]:
    """The operations of those instructions of a piece of straight-line code that the multiplier does.

    operations: by place, where they are not what the ISA expands the opcode to. joined: places whose own operation is
    that of several instructions. banks: `banked` of the kernel.
    """
    alus, multiplier = _pipes(isa)
    if alus & multiplier:
        return {}
    names = [operations[k] if k in operations else machine_operations(one, isa) for k, one in enumerate(code)]
    either = [
        (place, number)
        for place, own in enumerate(names)
        for number in range(len(own))
        if (own[number] == _SHIFT or len(alus) == 1)
        and not is_choice(code[place], own)
        and _is_either(own, number, None if place in joined else code[place], banks)
    ]
    others = [own for one, own in zip(code, names, strict=True) if not is_choice(one, own)]
    pipes = [isa.op(name).pipe for own in others for name in own]
    surplus = sum(pipe in alus for pipe in pipes) - sum(pipe in multiplier for pipe in pipes)
    moved = min(max(surplus // 2, 0), len(either))
    found: dict[int, list[str]] = {}
    for k, (place, number) in enumerate(either):  # spread evenly
        if (k + 1) * moved // len(either) > k * moved // len(either):
            found.setdefault(place, list(names[place]))[number] = _MULTIPLIER
    return {place: tuple(own) for place, own in found.items()}


def is_choice(instruction: Instruction, operations: Operations) -> bool:
    """Is it a move of the ALU under a predicate?"""
    return instruction.base == "mov" and instruction.guard is not None and operations[-1:] == (_MOVE,)


def multiplied_choices(code: Sequence[tuple[Instruction, Operations]], isa: Isa) -> float:
    """The part of the moves under a predicate that the multiplier does. code: the kernel's, with operations."""
    alus, multiplier = _pipes(isa)
    moves = sum(is_choice(one, own) for one, own in code)
    if not moves or alus & multiplier or len(alus) > 1:
        return 0.0
    pipes = [isa.op(name).pipe for one, own in code for name in own]
    surplus = sum(pipe in alus for pipe in pipes) - sum(pipe in multiplier for pipe in pipes)
    return min(max(surplus / 2, 0), moves) / moves


def as_multiplied(operations: Operations) -> Operations:
    """A move's operations, where the multiplier does it."""
    return (*operations[:-1], _MULTIPLIER)


def _pipes(isa: Isa) -> tuple[set[str], set[str]]:
    """Those of the ALU, and those of the multiplier."""
    return {isa.op(_ADD).pipe, isa.op(_MOVE).pipe}, {isa.op(_MULTIPLIER).pipe, isa.op("fp32.fma").pipe}


def _is_either(own: Operations, number: int, instruction: Instruction | None, banks: Collection[int]) -> bool:
    """Can both pipes do it? instruction: whose operation it is where it is the last one; None: of several."""
    if own[number] == _MOVE:
        return True
    if instruction is None or number != len(own) - 1 or own[number] not in (_ADD, _SHIFT):
        return False
    what, sources = kind(instruction), instruction.operands[1:]
    if what == "shl.32":
        return own[number] == _SHIFT
    constant = any(isinstance(source, Reg) and source.id in banks for source in sources)
    if what == "add.32":
        return own[number] == _ADD and not constant and all(isinstance(source, Reg) for source in sources)
    literal = any(isinstance(source, Imm) and isinstance(source.value, int) and source.value < 0 for source in sources)
    return what == "add.64" and own[number] == _ADD and not constant and not literal
