"""Occupancy of a kernel on a GPU: checked, with what limits it and what would raise it.

What a block that does not fit exceeds, and the smallest change that lets an SM hold more.
"""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.scale.occupancy.rules import (
    RESOURCES,
    UNLIMITED,
    Occupancy,
    OccupancyLimits,
    ceil_div,
    round_up,
    theoretical_occupancy,
    warp_and_register_limits,
)
from ppt_gpu.spec.gpu import Gpu


def next_step(limits: OccupancyLimits, threads: int, registers: int, shared: int, now: Occupancy) -> str:
    """The smallest change that raises the warps per SM, as text; "" when none of those tried does.

    Tried in this order: fewer registers, less shared memory, both, then the nearest other block size.
    """
    if now.warps_per_sm >= limits.max_warps:
        return ""

    def blocks(new_threads: int, new_registers: int, new_shared: int) -> int:
        return theoretical_occupancy(limits, new_threads, new_registers, new_shared).blocks_per_sm

    goal = now.blocks_per_sm + 1
    fewer = next((r for r in range(registers - 1, 0, -1) if _fits(limits, threads, r, goal)), None)
    less = _shared_for(limits, goal)
    registers_text = f"{registers} -> {fewer} registers per thread"
    shared_text = f"{shared} -> {less} B of shared memory per block"
    if fewer is not None and (found := blocks(threads, fewer, shared)) >= goal:
        return f"{registers_text}: {_plural(found)}"
    if 0 <= less < shared and (found := blocks(threads, registers, less)) >= goal:
        return f"{shared_text}: {_plural(found)}"
    if fewer is not None and 0 <= less < shared and (found := blocks(threads, fewer, less)) >= goal:
        return f"{registers_text} and {shared_text}: {_plural(found)}"
    sizes = range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size)
    for size in sorted(sizes, key=lambda size: (abs(size - threads), size)):
        found = blocks(size, registers, shared)
        if found * ceil_div(size, limits.warp_size) > now.warps_per_sm:
            warps = found * ceil_div(size, limits.warp_size)
            return f"{threads} -> {size} threads per block: {_plural(found)}, {warps} warps"
    return ""


def _fits(limits: OccupancyLimits, threads: int, registers: int, goal: int) -> bool:
    warps = ceil_div(threads, limits.warp_size)
    return warp_and_register_limits(limits, threads, warps, registers)[1] >= goal


def _shared_for(limits: OccupancyLimits, goal: int) -> int:
    """The most shared memory per block with which `goal` blocks fit; negative when the reserved part is too much."""
    return limits.shared_size // goal // limits.shared_unit * limits.shared_unit - limits.shared_reserved


def problems_of(limits: OccupancyLimits, threads: int, registers: int, shared: int, name: str) -> list[PptError]:
    problems = []
    if threads < 1:
        problems.append(PptError(f"a block of {threads} threads", hint="a block has at least 1 thread"))
        return problems
    if registers < 0 or shared < 0:
        problems.append(
            PptError(
                f"{registers} registers per thread and {shared} B of shared memory per block",
                hint="neither may be negative",
            )
        )
        return problems
    if threads > limits.max_threads_per_block:
        problems.append(_exceeds(f"{threads} threads per block", limits.max_threads_per_block, "threads", name))
    if registers > limits.max_registers_per_thread:
        problems.append(
            _exceeds(f"{registers} registers per thread", limits.max_registers_per_thread, "registers", name)
        )
    if shared > limits.shared_per_block:
        problems.append(_exceeds(f"{shared} B of shared memory per block", limits.shared_per_block, "B", name))
    if problems:
        return problems
    found = theoretical_occupancy(limits, threads, registers, shared)
    if found.limits["warps"] == 0:
        problems.append(_exceeds(f"{found.warps_per_block} warps per block", limits.max_warps, "warps", name))
    if found.limits["registers"] == 0:
        problems.append(_too_many_registers(limits, threads, registers, name))
    if found.limits["shared"] == 0:
        problems.append(
            _exceeds(f"{found.shared_per_block} B of shared memory per block as allocated",
                     limits.shared_size, "B", name)
        )  # fmt: skip
    return problems


def _too_many_registers(limits: OccupancyLimits, threads: int, registers: int, name: str) -> PptError:
    warps = round_up(ceil_div(threads, limits.warp_size), limits.warp_granularity)
    most = next((r for r in range(registers - 1, 0, -1) if _fits(limits, threads, r, 1)), 0)
    whole = not limits.registers_per_block
    has = f"an SM of {name} has {limits.registers}" if whole else f"one of {name} may have {limits.registers_per_block}"
    return PptError(
        f"a block of {threads} threads with {registers} registers per thread needs the registers of {warps} warps; "
        f"{has}",
        hint=f"at most {most} registers per thread fit with {threads} threads per block",
    )


def _exceeds(what: str, limit: int, unit: str, name: str) -> PptError:
    return PptError(f"{what} exceed the limit of {name}", hint=f"at most {limit} {unit}")


def _plural(blocks: int) -> str:
    return f"{blocks} block{'' if blocks == 1 else 's'}"


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
