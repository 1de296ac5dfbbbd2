"""`check` of machine code: disassembly, cubins, kernel traces and lists of them, read from beginning to end."""

from __future__ import annotations

from math import prod
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.frontends.disassemble import open_code
from ppt_gpu.sass.counts import counted
from ppt_gpu.sass.kernelslist import read_run
from ppt_gpu.sass.operations import known_operation
from ppt_gpu.sass.trace_body import read_machine_trace


def check_run(path: Path) -> list[str]:
    """What a kernel trace, or a list of them, holds: a line each. PptError for whatever is wrong in it."""
    run = read_run(path)
    lines = [f"{path}: traces of {len(run.launches)} launches, {len(run.copies)} host copies"]
    for traced in run.launches:
        found, head = read_machine_trace(traced.header.path, traced.ranges), traced.header
        lines.append(
            f"  {head.kernel}: sm_{head.arch}, {len(found.trace.blocks)} of {prod(head.grid)} blocks of "
            f"{prod(head.block)} threads, {len(found.module.lines)} instructions, "
            f"{found.trace.warp_instructions} executed by warps, {len(found.trace.access_base)} accesses"
        )
    return lines


def check_code(path: Path) -> list[str]:
    """The functions of a disassembly or cubin. PptError for whatever is wrong in it."""
    code = open_code(path)
    lines = [f"{path}: machine code of {code.target}, {len(code.functions)} functions"]
    for function in code.functions.values():
        for each in function.instructions:
            try:
                known_operation(each.opcode)
            except PptError as error:
                raise PptError(error.message, path=path, line=each.line, hint=error.hint) from None
        others = {name: each for name, each in code.functions.items() if each is not function}
        lines.append(f"  {function.name}: {counted(function, others).total()} instructions that count")
    return lines
