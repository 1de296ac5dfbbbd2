"""The rules of occupancy: how many blocks of a kernel an SM holds at once, and what limits them.

The rules are NVIDIA's, as published in the header `cuda_occupancy.h` (CUDA 13.0 for compute capability 3.5 and later,
CUDA 7.0 for 1.x and 2.x); the numbers of a GPU come from its hardware file. All sizes are bytes or 32-bit registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.spec.gpu import Gpu

#: the limit of a resource that the block does not use
UNLIMITED = 2**31 - 1

#: resources in the order in which limiters are listed
RESOURCES = ("warps", "blocks", "registers", "shared")

#: Compute capability 2.x allocates these register counts per thread in units of 128 instead of 64.
_FERMI_WIDE = frozenset((21, 22, 29, 30, 37, 38, 45, 46))


@dataclass(frozen=True)
class OccupancyLimits:
    """What one SM offers and in which units it is handed out."""

    max_warps: int
    max_blocks: int
    max_threads_per_block: int
    registers: int
    register_unit: int
    register_granularity: str  # "warp": each warp from one sub-partition's file; "block": one piece for the block
    max_registers_per_thread: int
    warp_granularity: int  # sub-partitions ("warp") or the multiple to which a block's warps are rounded ("block")
    shared_size: int
    shared_per_block: int
    shared_unit: int
    shared_reserved: int = 0
    carveouts: tuple[int, ...] = ()  # selectable shared sizes of a unified L1, ascending
    unified: int = 0  # bytes that L1 and shared memory divide
    l1_size: int = 0  # L1 without a choice of carve-out
    largest_carveout: bool = False  # the driver's default is the largest (2.x, 3.x), else the smallest that suffices
    wide_register_counts: frozenset[int] = frozenset()  # registers per thread allocated in twice the unit
    warp_size: int = 32
    registers_per_block: int = 0  # that a block may have; 0: all of the SM

    @classmethod
    def of(cls, gpu: Gpu) -> OccupancyLimits:
        """The limits of `gpu`."""
        sm, shared = gpu.sm, gpu.shared
        major = gpu.compute_capability[0]
        return cls(
            max_warps=sm.max_warps,
            max_blocks=sm.max_blocks,
            max_threads_per_block=sm.max_threads_per_block,
            registers=sm.registers,
            register_unit=sm.register_unit,
            register_granularity=sm.register_granularity,
            max_registers_per_thread=sm.max_registers_per_thread,
            warp_granularity=sm.warp_granularity,
            shared_size=shared.size,
            shared_per_block=shared.per_block,
            shared_unit=shared.unit,
            shared_reserved=shared.reserved,
            carveouts=tuple(sorted(shared.carveouts)),
            unified=gpu.l1.unified,
            l1_size=gpu.l1.size,
            largest_carveout=major < 7,
            wide_register_counts=_FERMI_WIDE if major == 2 else frozenset(),
            warp_size=sm.warp_size,
            registers_per_block=sm.registers_per_block,
        )


@dataclass(frozen=True)
class Occupancy:
    """Blocks of one kernel on one SM."""

    blocks_per_sm: int
    warps_per_block: int
    warps_per_sm: int
    fraction: float  # warps_per_sm / the SM's maximum
    limiters: tuple[str, ...]  # of RESOURCES: those whose limit equals blocks_per_sm
    limits: Mapping[str, int]  # blocks that each resource alone would allow; UNLIMITED when it is not used
    registers_per_block: int  # allocated
    shared_per_block: int  # B allocated, with the reserved part
    carveout: int  # B of shared memory chosen on the SM
    l1_bytes: int  # B of L1 that remain
    next_step: str = ""  # smallest change that would raise the warps per SM; "" when none does


def theoretical_occupancy(limits: OccupancyLimits, threads: int, registers: int, shared: int) -> Occupancy:
    """Occupancy from plain numbers; 0 blocks when the block does not fit. Never raises for positive `threads`."""
    warps = ceil_div(threads, limits.warp_size)
    by_warps, by_registers, registers_per_block = warp_and_register_limits(limits, threads, warps, registers)
    footprint = round_up(shared + limits.shared_reserved, limits.shared_unit)
    by_shared = limits.shared_size // footprint if footprint else UNLIMITED
    if shared > limits.shared_per_block:
        by_shared = 0
    allowed = {"warps": by_warps, "blocks": limits.max_blocks, "registers": by_registers, "shared": by_shared}
    blocks = min(allowed.values())
    carveout, l1_bytes = _carveout(limits, blocks * footprint)
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_block=warps,
        warps_per_sm=blocks * warps,
        fraction=blocks * warps / limits.max_warps,
        limiters=tuple(resource for resource in RESOURCES if allowed[resource] == blocks),
        limits=allowed,
        registers_per_block=registers_per_block,
        shared_per_block=footprint,
        carveout=carveout,
        l1_bytes=l1_bytes,
    )


def warp_and_register_limits(limits: OccupancyLimits, threads: int, warps: int, registers: int) -> tuple[int, int, int]:
    """(blocks by warps, blocks by registers, registers allocated per block)."""
    granularity = limits.warp_granularity
    too_many = registers > limits.max_registers_per_thread
    if limits.register_granularity == "block":
        # 1.x: the block's warps are rounded up, and its registers are one piece.
        slots = round_up(warps, granularity)
        per_block = round_up(slots * limits.warp_size * registers, limits.register_unit)
        by_registers = limits.registers // per_block if per_block else UNLIMITED
    else:
        slots = warps
        unit = limits.register_unit * (2 if registers in limits.wide_register_counts else 1)
        per_warp = round_up(registers * limits.warp_size, unit)
        per_block = per_warp * warps
        if not per_warp:
            by_registers = UNLIMITED
        elif per_warp * round_up(warps, granularity) > (limits.registers_per_block or limits.registers):
            by_registers = 0  # the launch check assumes that every sub-partition gets as many warps
        else:
            by_registers = limits.registers // granularity // per_warp * granularity // warps
    by_warps = 0 if threads > limits.max_threads_per_block else limits.max_warps // slots
    return by_warps, 0 if too_many else by_registers, per_block


def _carveout(limits: OccupancyLimits, needed: int) -> tuple[int, int]:
    """(shared memory of the SM, L1 of the SM) in bytes when resident blocks need `needed` bytes of shared memory.

    Without a preference set by the program, the driver of 7.x and later picks a carve-out that does not cost
    occupancy (CUDA C++ Programming Guide, "Shared Memory" of each compute capability); we take the smallest such.
    2.x and 3.x default to the largest.
    """
    if not limits.carveouts:
        return limits.shared_size, limits.l1_size
    fitting = [size for size in limits.carveouts if size >= needed]
    chosen = limits.carveouts[-1] if limits.largest_carveout or not fitting else fitting[0]
    return chosen, limits.unified - chosen if limits.unified else limits.l1_size


def ceil_div(value: int, unit: int) -> int:
    return -(-value // unit)


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
