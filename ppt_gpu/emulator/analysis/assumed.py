"""Instructions that are timed as a class of work and not executed (`ppt_gpu.ptx.assume`): what a run says of them."""

from __future__ import annotations

from ppt_gpu.ptx.module import Kernel, Module
from ppt_gpu.ptx.table import ASSUMED


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
