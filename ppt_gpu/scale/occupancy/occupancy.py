"""Occupancy of a kernel on a GPU: checked, with what limits it and what would raise it."""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.common.errors import InputErrors
from ppt_gpu.scale.occupancy.advice import next_step, problems_of
from ppt_gpu.scale.occupancy.rules import (
    RESOURCES,
    UNLIMITED,
    Occupancy,
    OccupancyLimits,
    theoretical_occupancy,
)
from ppt_gpu.spec.gpu import Gpu

__all__ = [
    "RESOURCES",
    "UNLIMITED",
    "Occupancy",
    "OccupancyLimits",
    "checked_occupancy",
    "occupancy",
    "theoretical_occupancy",
]


def occupancy(gpu: Gpu, threads_per_block: int, registers_per_thread: int, shared_bytes: int) -> Occupancy:
    """Occupancy of blocks of `threads_per_block` threads that use `shared_bytes` (static + dynamic) on `gpu`.

    Raises PptError (InputErrors when there are several) that names each limit the block exceeds.
    """
    return checked_occupancy(
        OccupancyLimits.of(gpu), threads_per_block, registers_per_thread, shared_bytes, name=gpu.name
    )


def checked_occupancy(
    limits: OccupancyLimits, threads: int, registers: int, shared: int, *, name: str = "this GPU"
) -> Occupancy:
    """`theoretical_occupancy` with `next_step`; a block that cannot run raises PptError."""
    problems = problems_of(limits, threads, registers, shared, name)
    if problems:
        raise problems[0] if len(problems) == 1 else InputErrors(problems)
    found = theoretical_occupancy(limits, threads, registers, shared)
    step = next_step(limits, threads, registers, shared, found)
    return replace(found, next_step=step)
