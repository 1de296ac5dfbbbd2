"""Constants at addresses that the compiler knows: operands of the instructions that read them, not loads.

Before compute capability 9.0 an instruction reads one operand from a constant bank (c[0x3][0x40]); later ones have
neighbouring words loaded into uniform registers, eight bytes at a time. Which of the two a GPU does, its ISA says
([fuse], "load.constant+operand").
"""

from __future__ import annotations

from collections.abc import Mapping

from ppt_gpu.machine.selection.pairs import Operations
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import access_bytes, operation
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Sym

#: the pattern of [fuse] that says what such a load becomes; nothing: an operand of each instruction that reads it
CONSTANT_OPERAND = "load.constant+operand"
#: bytes that one load of uniform registers brings
_LOADED = 8


def constant_operands(kernel: Kernel, flow: ControlFlow, fuse: Mapping[str, Operations]) -> dict[int, Operations]:
    """The machine operations of loads of such constants, by instruction of the kernel."""
    loaded = fuse.get(CONSTANT_OPERAND)
    if loaded is None:
        return {}
    found: dict[int, Operations] = {}
    for first, end in zip(flow.block_start, flow.block_end, strict=True):
        there: set[tuple[str, int]] = set()  # words that have been loaded in this block
        for index in range(first, end):
            place = fixed_constant(kernel.instructions[index])
            if place is None:
                continue
            name, offset = place
            size = access_bytes(kernel.instructions[index])
            words = {(name, word) for word in range(offset // _LOADED, (offset + size - 1) // _LOADED + 1)}
            found[index] = loaded * len(words - there)
            there |= words
    return found


def in_no_register(kernel: Kernel, operands: Mapping[int, Operations]) -> set[int]:
    """The registers of PTX that nothing but such loads writes."""
    loaded: set[int] = set()
    written: set[int] = set()
    for index, instruction in enumerate(kernel.instructions):
        (loaded if index in operands else written).update(instruction.writes)
    return loaded - written


def fixed_constant(instruction: Instruction) -> tuple[str, int] | None:
    """The variable, and the byte of it, from which the instruction loads a constant; None where it computes that."""
    if operation(instruction) != "load.constant" or instruction.guard is not None or len(instruction.operands) != 2:
        return None
    address = instruction.operands[1]
    if not isinstance(address, Mem) or not isinstance(address.base, Sym) or address.indices:
        return None
    return address.base.name, address.base.offset + address.offset
