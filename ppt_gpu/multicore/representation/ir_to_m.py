"""From the intermediate representation to the inputs of the M-core model (Blem, section 5.2, S-core to M-core).

32 threads are a warp: eight iterations of an outer loop with SIMD registers of four. What does not fit the shared
memory of the chip leaves it (Eq 5.2), in accesses of the largest transaction (Eq 5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ppt_gpu.multicore.base.operations import MEMORY, SPECIAL
from ppt_gpu.multicore.core_models.m_core import MInputs
from ppt_gpu.multicore.representation.ir import Ir
from ppt_gpu.sm.accesses.coalesce import transactions
from ppt_gpu.spec.gpu import Gpu

WARP = 32
#: warps of a block where none is given or searched for (section 5.3.1)
WARPS_PER_BLOCK = 8
#: largest transaction, B: b of Eq 5.3
TRANSACTION = 128


def off_chip_footprint(footprint: float, on_chip: float) -> float:
    """Eq 5.2: F_off-chip = max(F_CPU - C_on-chip, 0), B."""
    return max(footprint - on_chip, 0.0)


def off_chip_accesses(off_chip: float, warps: float, access: float = TRANSACTION) -> float:
    """Eq 5.3: memory instructions of a warp that leave the chip."""
    return off_chip / (access * warps)


def on_chip_capacity(gpu: Gpu) -> float:
    """C_on-chip: the shared memory of all SMs, B."""
    return float(gpu.shared.size * gpu.sm.count)


def blocks_of(warps: float, warps_per_block: int, *, literal: bool = False) -> int:
    """Blocks that hold all warps; `literal`: rounded to the nearest, as Table 5.3 does, which loses warps."""
    return max(1, math.floor(warps / warps_per_block + 0.5) if literal else math.ceil(warps / warps_per_block))


def m_inputs_of_ir(ir: Ir, gpu: Gpu) -> MInputs:
    """The inputs of `ir` on `gpu`."""
    warps = max(1.0, ir.threads / WARP)
    share = ir.width / WARP / warps
    counts = {name: amount.groups * share for name, amount in ir.operations.items()}
    sync = ir.inner_loops
    if sync:
        counts["sync"] = counts.get("sync", 0.0) + sync
    accesses = sum(counts.get(name, 0.0) for name in MEMORY)
    off_chip = footprint_off_chip(ir, gpu)
    leaving = min(off_chip_accesses(off_chip, warps), accesses)
    moved, size = transactions_of_access(ir, gpu)
    return MInputs(
        warps=math.ceil(warps),
        n_i=counts,
        N_SFU=sum(counts.get(name, 0.0) for name in SPECIAL),
        N_sync=sync,
        N_mem=accesses,
        N_off_chip=leaving,
        avg_trans_warp=moved,
        transaction_bytes=size,
        ILP=max(1.0, ir.ilp_in(2) or 1.0),
        MLP=1.0,
        name=ir.name,
        notes=ir.notes,
    )


def footprint_off_chip(ir: Ir, gpu: Gpu) -> float:
    """F_off-chip, B: of a GPU's run what it touched beside its shared memory, of a CPU's what Eq 5.2 leaves."""
    if ir.group_threads:
        return ir.footprint - ir.scratch
    return off_chip_footprint(ir.footprint, on_chip_capacity(gpu))


def transactions_of_access(ir: Ir, gpu: Gpu) -> tuple[float, float]:
    """(transactions of a warp's access, bytes of one): by distance between threads and the GPU's rules; at least 1."""
    if not ir.strides:
        return 1.0, float(TRANSACTION)
    element = _power_of_two(ir.element)
    total = moved = 0.0
    for distance, share in ir.strides.items():
        found = _transactions(gpu, None if distance == "irregular" else int(distance), element)
        total += share * len(found)
        moved += share * sum(bytes_moved for bytes_moved in found)
    return max(1.0, total), moved / total


def _transactions(gpu: Gpu, distance: int | None, element: int) -> list[int]:
    """Bytes of each transaction of a warp whose threads lie `distance` elements apart; None: far from each other."""
    step = distance * element if distance is not None else 4096
    offsets = np.arange(WARP, dtype=np.int64) * step
    line, sector = max(gpu.l2.line, gpu.l1.line), gpu.l2.sector
    found = transactions(gpu.memory.coalescing, offsets, 0xFFFFFFFF, 0, element, line, sector, False)
    return [int(mask).bit_count() * sector for _, mask in found]


def _power_of_two(element: float) -> int:
    return min(16, 1 << max(0, round(math.log2(max(1.0, element)))))


def search_block(time_of: Callable[[int], float], sizes: list[int]) -> tuple[int, float]:
    """(threads of a block, time) of the fastest of `sizes`; of equally fast ones the first."""
    best = min(sizes, key=time_of)
    return best, time_of(best)
