"""Accesses to shared memory in a recorded trace: what each instruction does there, and the accesses of each path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Trace
from ppt_gpu.ptx.instructions import access_bytes, is_traced, memory_space
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.spec.gpu import MEMORY_SPACES

SHARED = MEMORY_SPACES.index("shared")
#: what an instruction does to shared memory, if its addresses lie there; atomics read and write
NOTHING, READS, WRITES, UPDATES = range(4)
MOST_BLOCKS = 16  # that are looked at, spread over those of the trace


@dataclass(frozen=True)
class PathAccesses:
    """The memory instructions on the paths of a trace, path after path: M of them."""

    start: NDArray[np.int64]  # [P+1] where those of each path begin
    place: NDArray[np.int64]  # [M] position in `Trace.path_pc`
    pc: NDArray[np.int32]  # [M] instruction
    size: NDArray[np.int64]  # [I] bytes that a lane moves, by instruction

    @staticmethod
    def of(kernel: Kernel, trace: Trace) -> PathAccesses:
        facts = {i.opcode: (is_traced(i), access_bytes(i)) for i in kernel.instructions}
        table = np.array([facts[i.opcode] for i in kernel.instructions], np.int64).reshape(-1, 2)
        place = np.flatnonzero((table[:, 0] != 0)[trace.path_pc])
        pc = trace.path_pc[place].astype(np.int32)
        return PathAccesses(np.searchsorted(place, trace.path_start), place, pc, table[:, 1].copy())


def role(instruction: Instruction) -> int:
    """What an instruction does to shared memory, if its addresses lie there and its trace says where."""
    if memory_space(instruction) not in ("shared", "generic"):
        return NOTHING
    if instruction.base in ("ld", "ldu", "ldmatrix") or instruction.opcode.startswith("wmma.load"):
        return READS
    if instruction.base in ("st", "stmatrix") or instruction.opcode.startswith("wmma.store"):
        return WRITES
    return UPDATES if instruction.base in ("atom", "red") else NOTHING


def some_blocks(trace: Trace) -> list[int]:
    """Positions of blocks to look at: the first, the last, others evenly between them."""
    count = len(trace.blocks)
    return np.unique(np.linspace(0, count - 1, min(MOST_BLOCKS, count)).astype(np.int64)).tolist()
