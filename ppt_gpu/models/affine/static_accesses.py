"""The off-chip accesses of a kernel, instruction by instruction: how often, how wide, and how coalesced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.ptx.instructions import access_bytes, is_memory, is_traced, memory_space
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.accesses.coalesce import RULES, coalesce
from ppt_gpu.sm.lowering.match import match_accesses
from ppt_gpu.spec.gpu import MEMORY_SPACES, Gpu

#: the only spaces of a trace that lie in the DRAM
_GLOBAL, _LOCAL = MEMORY_SPACES.index("global"), MEMORY_SPACES.index("local")
_LINE, _SECTOR = 128, 32


@dataclass(frozen=True)
class OffChip:
    """The accesses of one instruction that go to global or local memory. A of them, with an active lane each."""

    pc: int
    bytes: int  # a lane
    executed: int  # warp executions, also those without an active lane
    local: bool
    access: NDArray[np.int64]  # [A] in the trace


def off_chip_accesses(inputs: ModelInputs) -> list[OffChip]:
    """Every instruction that went off the chip, in text order. DoesNotApply for a task list."""
    kernel, trace = inputs.need_kernel(), inputs.need_trace()
    pcs, access = matched(kernel, trace)
    space = trace.access_space[access]
    active = trace.pattern_mask[trace.access_pattern[access]] != 0
    found = []
    for instruction in kernel.instructions:
        if memory_space(instruction) not in ("global", "local", "generic"):
            continue
        own = pcs == instruction.index
        mine = own & active & np.isin(space, (_GLOBAL, _LOCAL))
        if mine.any():
            local = bool((space[mine] == _LOCAL).all())
            # Of a generic instruction that also went to shared memory, only what left the SM counts.
            executed = (
                int(mine.sum()) if (own & active).sum() > mine.sum() else int(trace.pc_executed[instruction.index])
            )
            size = max(access_bytes(instruction), 1)
            found.append(OffChip(instruction.index, size, executed, local, access[mine]))
    return found


def matched(kernel: Kernel, trace: Trace) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(instruction, access) of every access to memory of a trace."""
    traced = np.array([is_traced(item) for item in kernel.instructions], np.bool_)
    memory = np.array([is_memory(item) for item in kernel.instructions], np.bool_)
    entries = match_accesses(trace, traced, (traced & memory).astype(np.int32))
    return entries.pc, entries.access


def transactions_of(trace: Trace, accesses: OffChip, rule: str) -> NDArray[np.int64]:
    """[A] transactions of each access by one of the rules of `ppt_gpu.sm.accesses.coalesce`, in lines of 128 B."""
    access = accesses.access
    start, _, _ = coalesce(
        RULES[rule],
        trace.pattern_offset,
        trace.pattern_mask.astype(np.int64),
        trace.access_pattern[access].astype(np.int64),
        trace.access_base[access].astype(np.int64),
        np.full(len(access), accesses.bytes, np.int64),
        np.zeros(len(access), np.bool_),
        _LINE,
        _SECTOR,
    )
    return np.diff(start)


def rule_of(gpu: Gpu) -> str:
    """The rule of the GPU's compute capability: below 1.2, 1.2 and 1.3, later (distinct lines of a warp)."""
    if gpu.compute_capability < (1, 2):
        return "half_warp_1.0"
    return "half_warp_1.2" if gpu.compute_capability < (2, 0) else "sector"
