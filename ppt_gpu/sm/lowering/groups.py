"""Groups of asynchronous copies and products: which instructions belong to one, close one, or wait for some."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.ptx.instructions import access_kind, form, is_bulk, is_call
from ppt_gpu.ptx.module import Imm, Instruction, Kernel
from ppt_gpu.sm.accesses.scoreboard import (
    GROUP_COMMIT,
    GROUP_COPY,
    GROUP_EXPECT,
    GROUP_USE,
    GROUP_WAIT,
    GROUP_WAIT_ALL,
    GROUP_WAIT_OLDEST,
)


def copy_groups(kernel: Kernel, events: bool) -> NDArray[np.int32] | None:
    """[I] what each instruction does with groups of asynchronous copies.

    Stores of bulk copies have groups of their own, for which nobody waits here: stores yield nothing. With events, bulk
    loads have none: their mbarriers are waited for.
    """
    found = np.zeros(len(kernel.instructions), np.int32)
    loads = [pc for pc, i in enumerate(kernel.instructions) if is_bulk(i) and access_kind(i) == "load" and not events]
    if loads:
        found[[pc for pc, i in enumerate(kernel.instructions) if _uses_shared(i)]] = GROUP_USE
    found[loads] = GROUP_COPY
    calls = any(is_call(instruction) for instruction in kernel.instructions)  # then ret may not end the warp
    ends = ("exit",) if calls else ("exit", "ret")
    for pc, instruction in enumerate(kernel.instructions):
        words = instruction.modifiers
        if loads and instruction.base == "mbarrier":
            if "expect_tx" in words:
                found[pc] = GROUP_EXPECT
            elif words[0] in ("test_wait", "try_wait"):
                found[pc] = GROUP_WAIT_OLDEST
        elif loads and instruction.base in ends:
            found[pc] = GROUP_WAIT_ALL
        if instruction.base != "cp" or "bulk" in words or "mbarrier" in words:
            continue
        if "commit_group" in words:
            found[pc] = GROUP_COMMIT
        elif "wait_all" in words:
            found[pc] = GROUP_WAIT_ALL
        elif "wait_group" in words:
            found[pc] = _wait(instruction)
        else:
            found[pc] = GROUP_COPY
    return found if found.any() else None


def product_groups(kernel: Kernel) -> NDArray[np.int32] | None:
    """[I] what each instruction does with groups of asynchronous products."""
    found = np.zeros(len(kernel.instructions), np.int32)
    for pc, instruction in enumerate(kernel.instructions):
        if instruction.base != "wgmma":
            continue
        what = instruction.modifiers[0]
        if what == "mma_async":
            found[pc] = GROUP_COPY
        elif what == "commit_group":
            found[pc] = GROUP_COMMIT
        elif what == "wait_group":
            found[pc] = _wait(instruction)
    return found if found.any() else None


def _wait(instruction: Instruction) -> int:
    """The wait for all groups but the last few, whose number is a literal."""
    pending = instruction.operands[0]
    return GROUP_WAIT + (int(pending.value) if isinstance(pending, Imm) else 0)


def _uses_shared(instruction: Instruction) -> bool:
    """May it be why a warp waits for its bulk loads: does it read shared memory, or meet other warps at a barrier?"""
    what = form(instruction.opcode)
    if what.base in ("bar", "barrier"):
        return True
    if what.base in ("mbarrier", "wgmma", "tcgen05"):
        return any(word in ("mma_async", "mma", "cp") for word in what.modifiers)
    if is_bulk(instruction):
        return what.access == "store"
    return what.access in ("load", "atomic") and what.space in ("shared", "generic")
