"""The machine operations that one PTX instruction becomes on a GPU."""

from __future__ import annotations

from ppt_gpu.ptx.instructions import operation
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.spec.gpu import Isa


def operations_of(kernel: Kernel, pc: int, isa: Isa | None) -> tuple[str, ...]:
    """Operation names of instruction `pc` of a kernel; of machine code, of parts that others do or that it does.

    isa: expands opcodes; None: each is its own operation.
    """
    done = kernel.joined.get(pc)
    if done is not None:
        return done
    instruction = kernel.instructions[pc]
    return (operation(instruction),) if isa is None else machine_operations(instruction, isa)


def machine_operations(instruction: Instruction, isa: Isa) -> tuple[str, ...]:
    """Operation names in issue order: what the ISA expands the opcode to (() is free), else the opcode's own one."""
    expanded = isa.expansion(instruction.opcode)
    return (operation(instruction),) if expanded is None else expanded
