"""The compiled heart of `lower_access`: what each distinct access shape does, once."""

from __future__ import annotations

import numpy as np
from numba import njit

from ppt_gpu.sm.banks import passes
from ppt_gpu.sm.coalesce import (
    LINE,
    MAX_TRANSACTIONS,
    SECTOR,
    WARP,
    active_phases,
    coalesce,
    i64,
    phase_lanes,
)

GLOBAL, SHARED, LOCAL = range(3)  # as in MEMORY_SPACES
#: A key is pattern, variant, and the base address modulo the period of the variant.
PERIOD_BITS = 10
VARIANT_BITS = 22
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # the key of an operation that the run recorded nothing for


@njit(cache=True)
def _multiplicity(offsets: np.ndarray, mask: int) -> int:
    """Most active lanes with the same address, at least 1."""
    most = 1
    for lane in range(WARP):
        if (mask >> lane) & 1:
            same = 1
            for other in range(lane):
                if (mask >> other) & 1 and offsets[other] == offsets[lane]:
                    same += 1
            most = max(most, same)
    return most


@njit(cache=True)
def shapes(
    keys: np.ndarray, offsets: np.ndarray, masks: np.ndarray, v_space: np.ndarray, v_size: np.ndarray,
    v_load: np.ndarray, v_atomic: np.ndarray, rule: int, line: int, sector: int, l1_global: bool, per_cycle: float,
    banks: int, width: int, row: int, half_warp: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Of every shape: its transactions (start, line number, sectors), load/store cycles, atomic multiplicity."""
    count = len(keys)
    start = np.zeros(count + 1, np.int64)
    cycles, atomic = np.ones(count, np.int32), np.ones(count, np.int32)
    out_line, out_mask = np.empty(4 * MAX_TRANSACTIONS, np.int64), np.empty(4 * MAX_TRANSACTIONS, np.uint8)
    n = 0
    for i in range(count):
        start[i + 1] = n
        if keys[i] == NOTHING:
            continue
        base = i64(keys[i] & np.uint64((1 << PERIOD_BITS) - 1))
        v = i64(keys[i] >> np.uint64(PERIOD_BITS)) & ((1 << VARIANT_BITS) - 1)
        pattern = i64(keys[i] >> np.uint64(PERIOD_BITS + VARIANT_BITS))
        mask, size, lane = i64(masks[pattern]), i64(v_size[v]), offsets[pattern]
        if mask == 0:
            continue
        if v_atomic[v]:
            atomic[i] = _multiplicity(lane, mask)
        if v_space[v] == SHARED:
            cycles[i] = max(1, passes(lane, mask, base, size, banks, width, row, half_warp, v_atomic[v]))
            continue
        if n + MAX_TRANSACTIONS > len(out_line):
            wide_line, wide_mask = np.empty(2 * len(out_line), np.int64), np.empty(2 * len(out_line), np.uint8)
            wide_line[:n], wide_mask[:n] = out_line[:n], out_mask[:n]
            out_line, out_mask = wide_line, wide_mask
        first = n
        least = 1
        whole = rule == LINE and v_load[v] and (l1_global or v_space[v] == LOCAL)
        n = coalesce(rule, lane, mask, base, size, line, sector, whole, out_line, out_mask, n)
        if rule in (LINE, SECTOR):
            least = active_phases(mask, phase_lanes(size))
        cycles[i] = max(least, i64(np.ceil((n - first) / per_cycle)))
        start[i + 1] = n
    return start, out_line[:n].copy(), out_mask[:n].copy(), cycles, atomic
