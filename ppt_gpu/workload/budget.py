"""Limits of a functional run. Exceeding one raises BudgetError; nothing is cut silently."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits of one launch. Raise a field to allow more."""

    instructions: int = 1_000_000_000  # warp instructions, all blocks of the run
    memory: int = 8 << 30  # B of device memory
    trace: int = 4 << 30  # B of trace arrays
    stack: int = 16 << 10  # B of local memory a thread, for recursive calls and alloca (cudaLimitStackSize)
    heap: int = 8 << 20  # B of device memory for malloc in kernels (cudaLimitMallocHeapSize, whose default this is)
