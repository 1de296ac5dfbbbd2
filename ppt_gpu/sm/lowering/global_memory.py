"""Accesses to global memory by themselves, whichever SM makes them: their transactions, lines, and atomics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.accesses.access import Accesses, Geometry, geometry, lower_accesses
from ppt_gpu.sm.accesses.atomic_contention import Atomics
from ppt_gpu.sm.accesses.coalesce import WARP
from ppt_gpu.sm.accesses.shapes import GLOBAL
from ppt_gpu.sm.lowering.code import ANY, NOBODY, Code, lower_code
from ppt_gpu.spec.gpu import Gpu


def touched_lines(
    kernel: Kernel, trace: Trace, gpu: Gpu, accesses: GlobalAccesses
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """(Line addresses of the transactions of `accesses`, in their order; masks of the sectors that each writes).

    trace: of some blocks of the launch.
    """
    code = lower_code(kernel, trace, gpu)
    found, variant = global_transactions(code, accesses, geometry(gpu)), global_variants(code, accesses)
    writes = ~code.variants.load[variant] | code.variants.atomic[variant]
    return found.address, np.where(np.repeat(writes, np.diff(found.start)), found.sectors, 0).astype(np.uint8)


def global_variants(code: Code, accesses: GlobalAccesses) -> NDArray[np.int32]:
    """The variant of each access."""
    return np.where(code.memory_operations > 0, code.variant_of[:, GLOBAL], -1)[accesses.pc].astype(np.int32)


def global_transactions(code: Code, accesses: GlobalAccesses, shape: Geometry) -> Accesses:
    """What the accesses become, one behind the other."""
    variant = global_variants(code, accesses)
    return lower_accesses(shape, code.variants, variant, *global_patterns(code, accesses))


def global_patterns(
    code: Code, accesses: GlobalAccesses
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Pattern and base address of each access, and offsets and masks of the patterns."""
    known = accesses.pattern_offset, accesses.pattern_mask
    pattern, offsets, masks = by_one_lane(code, accesses.pc, accesses.pattern, *known)
    return pattern, accesses.base.astype(np.int64), offsets, masks


def by_one_lane(
    code: Code,
    pc: NDArray[np.int32],
    pattern: NDArray[np.int32],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
    """Patterns of accesses (of instructions `pc`), and all patterns; atomics that one lane does have one lane left."""
    if not code.elected.any():
        return pattern, offsets, masks
    mode, mask = code.elected[pc], masks[pattern] if len(masks) else np.zeros(len(pattern), np.uint32)
    alone = (mode != NOBODY) & (mask != 0) & ((mode == ANY) | (mask == np.uint32(0xFFFFFFFF)))
    one = np.where(alone, len(masks), pattern).astype(np.int32)
    return one, np.concatenate((offsets, np.zeros((1, WARP), np.int64))), np.append(masks, np.uint32(1))


def atomics_of(
    code: Code,
    variant: NDArray[np.int32],
    pattern: NDArray[np.int32],
    base: NDArray[np.int64],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> tuple[Atomics, NDArray[np.int64]]:
    """Atomics of global memory, and which they are of the accesses."""
    meets = np.append(code.variants.atomic & (code.variants.space == GLOBAL), False)  # the last: -1, nothing recorded
    chosen = np.flatnonzero(meets[variant]) if meets.any() else np.zeros(0, np.int64)
    floats = None if code.variants.floats is None else code.variants.floats[variant[chosen]]
    return Atomics(pattern[chosen], base[chosen], offsets, masks, floats), chosen
