"""Instructions that compiled code leaves out when only the trace is wanted: their results decide nothing in it.

What would stop them is kept: an instruction that is not executed yet is written in full, so that a thread that reaches
it is told so, and those that take a whole warp check that it is there.
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.emulator.jit.arith.described import emit_instruction
from ppt_gpu.emulator.jit.emit import NOT_EXECUTED, Emitter
from ppt_gpu.emulator.jit.matrix.matrix import need_whole_warp
from ppt_gpu.ptx.instructions import access_kind
from ppt_gpu.ptx.module import Imm, Instruction, Neg, Operand, Pair, Reg, Special, Vec
from ppt_gpu.ptx.table import PURE

_PRODUCTS = frozenset(("mma", "wmma", "movmatrix"))
#: forms of instructions that are known to be executed
_executed: set[Any] = set()


def leave_out(e: Emitter, i: Instruction) -> bool:
    """Write what is left of an instruction whose results nobody wants. False: it has to be written in full."""
    if not i.writes or e.wants(i.writes) or not _computes(i) or not _is_executed(e, i):
        return False
    if i.base in _PRODUCTS:
        need_whole_warp(e)
    return True


def _computes(i: Instruction) -> bool:
    """Does it do nothing but compute its results, of registers?"""
    return i.base in PURE or (i.base in _PRODUCTS and access_kind(i) is None)


def _is_executed(e: Emitter, i: Instruction) -> bool:
    """Can code be written for it? Tried once for each form."""
    form = (i.opcode, i.guard is None, *(_kind(e, operand) for operand in i.operands))
    if form not in _executed:
        trial = _Trial(e.kernel, e.frame, {}, traced=False)
        trial.begin_segment("trial")
        trial.groups.begin_segment()
        trial.begin_instruction(i, 0)
        try:
            emit_instruction(trial, i)
        except NOT_EXECUTED:  # writing it in full sees to that
            return False
        _executed.add(form)
    return True


def _kind(e: Emitter, operand: Operand) -> Any:
    """What of an operand may decide whether there is code for it."""
    if isinstance(operand, Reg):
        return e.kernel.registers[operand.id].type
    if isinstance(operand, Imm):
        return type(operand.value), operand.value if isinstance(operand.value, int) else operand.width
    if isinstance(operand, Special):
        return operand.name
    if isinstance(operand, Vec):
        return tuple(_kind(e, item) for item in operand.items)
    if isinstance(operand, Pair):
        return _kind(e, operand.first), _kind(e, operand.second)
    if isinstance(operand, Neg):
        return "not", e.kernel.registers[operand.reg.id].type
    return type(operand)


class _Trial(Emitter):
    """Its code is thrown away: helper functions are not compiled for it."""

    def helper(self, key: tuple[Any, ...], result: str, *arguments: tuple[str, str]) -> str:
        return "" if result == "void" else self.op(f"freeze {result} poison")
