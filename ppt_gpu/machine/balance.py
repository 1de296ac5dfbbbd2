"""Machine instructions that two pipes can do: which of them the compiler gives to the multipliers.

From Volta on a move, a left shift by a literal, a sum of two registers and the upper half of a 64-bit sum are an
instruction of the ALU (MOV, SHF, IADD3) or one of the multiplier (IMAD.MOV, IMAD.SHL, IMAD.IADD, IMAD.X). ptxas 13.0
chooses so that a basic block has as many instructions for one as for the other, as far as its others allow; `validate
isa` has both pipes beside ours. On sm_120, which has an ALU of its own for moves, only the shifts move.

Of moves under a predicate, which choose a word (`machine/chosen.py`), the multiplier gets three in ten and no more,
however busy the ALU is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ppt_gpu.machine.fuse import Operations, kind
from ppt_gpu.ptx.instructions import loads_launch_parameter
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Reg, Special
from ppt_gpu.ptx.uses import writers_of
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import machine_operations

#: the operation of the ALU that everything which can be either is, and what it is on the multiplier
_MOVE, _ADD, _SHIFT, _MULTIPLIER = "int32.mov", "int32.add", "int32.shift", "int32.mad"
#: of moves under a predicate: how many are of the multiplier. ptxas 13.0, ten loops over arrays of 2 to 32 words: 28 %
#: of 284 on sm_75, 32 on sm_86, 31 on sm_90
_OF_GUARDED = 0.3


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
    alus = {isa.op(_ADD).pipe, isa.op(_MOVE).pipe}
    multiplier = {isa.op(_MULTIPLIER).pipe, isa.op("fp32.fma").pipe}
    if alus & multiplier:
        return {}
    names = [operations[k] if k in operations else machine_operations(one, isa) for k, one in enumerate(code)]
    either = [
        (place, number)
        for place, own in enumerate(names)
        for number in range(len(own))
        if (own[number] == _SHIFT or len(alus) == 1)
        and _is_either(own, number, None if place in joined else code[place], banks)
    ]
    pipes = [isa.op(name).pipe for own in names for name in own]
    surplus = max(sum(pipe in alus for pipe in pipes) - sum(pipe in multiplier for pipe in pipes), 0)
    guarded = [one for one in either if _is_guarded_move(code[one[0]])]
    others = [one for one in either if not _is_guarded_move(code[one[0]])]
    found: dict[int, list[str]] = {}
    moved = min(surplus // 2, round(_OF_GUARDED * len(guarded)))
    for places, count in ((guarded, moved), (others, min(surplus // 2 - moved, len(others)))):
        for k, (place, number) in enumerate(places):  # spread evenly
            if (k + 1) * count // len(places) > k * count // len(places):
                found.setdefault(place, list(names[place]))[number] = _MULTIPLIER
    return {place: tuple(own) for place, own in found.items()}


def _is_guarded_move(instruction: Instruction) -> bool:
    return instruction.base == "mov" and instruction.guard is not None


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
