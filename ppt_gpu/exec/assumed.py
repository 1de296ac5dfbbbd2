"""Instructions that are timed as a class of work and not executed (`ppt_gpu.ptx.assume`): what a run does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ppt_gpu.ptx.module import Instruction, Kernel, Module, Reg
from ppt_gpu.ptx.table import ASSUMED

if TYPE_CHECKING:
    from ppt_gpu.exec.interp_warp import Warp


def pretend(warp: Warp, instruction: Instruction) -> None:
    """Registers that it would write become 0, predicates true: those mostly say that something has succeeded."""
    for register in instruction.writes:
        value = warp.kernel.registers[register].type == "pred"
        warp.write(Reg(register), np.full(32, value, np.uint64))


def assumed_warnings(kernel: Kernel, module: Module) -> tuple[str, ...]:
    """One warning for each operation assumed in `kernel`: what was not executed, and where."""
    lines: dict[str, list[int]] = {}
    for instruction in kernel.instructions:
        if instruction.base == ASSUMED:
            lines.setdefault(instruction.opcode, []).append(instruction.line)
    return tuple(
        f"'{_opcode(module, min(at))}' (line {', '.join(map(str, at[:3]))}{', ...' * (len(at) > 3)}) was timed as "
        f"{opcode.partition('.')[2]} and not executed: what depends on its results is not computed"
        for opcode, at in lines.items()
    )


def _opcode(module: Module, line: int) -> str:
    """The opcode that stands in the text."""
    words = module.lines[line - 1].split() if line <= len(module.lines) else []
    return next((word.rstrip(";") for word in words if not word.startswith(("@", "{", "//"))), "?")
