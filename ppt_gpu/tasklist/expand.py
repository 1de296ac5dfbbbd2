"""The machine operations that one PTX instruction becomes on a GPU."""

from __future__ import annotations

from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.module import Instruction
from ppt_gpu.spec.gpu import Isa


def machine_operations(instruction: Instruction, isa: Isa) -> tuple[str, ...]:
    """Operation names in issue order: what the ISA expands the opcode to (() is free), else the opcode's own one."""
    expanded = isa.expansion(instruction.opcode)
    return (operation(instruction),) if expanded is None else expanded
