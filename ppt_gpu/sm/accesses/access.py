"""From a trace's accesses to transactions: one compiled pass over all warps, each access shape worked out once.

An access shape is (pattern of lane offsets, base address modulo the row of lines or banks, variant); a variant is
what the instruction says: space, bytes per lane, load or atomic. Real kernels have few shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.accesses.atomic_contention import Serving, in_updates
from ppt_gpu.sm.accesses.banks import BankRule, bank_rule, path_bandwidth
from ppt_gpu.sm.accesses.coalesce import PHASE, RULES
from ppt_gpu.sm.accesses.shapes import GLOBAL, NOTHING, PERIOD_BITS, SHARED, VARIANT_BITS, key_parts, shapes
from ppt_gpu.spec.gpu import Gpu

STAYS, BY_L1, PAST_L1 = range(3)
MOST_UPDATES = (1 << 7) - 1  # of an access: it has so many bits for them in the simulation


@dataclass(frozen=True)
class Geometry:
    """What the GPU makes of addresses."""

    rule: int  # coalesce.RULES
    line: int  # B
    sector: int  # B
    banks: BankRule
    per_cycle: float  # transactions
    l1_global: bool  # global loads go through the L1
    l1_banked: bool = False  # its data lie in the banks of shared memory
    l1_tag_sets: int = 0  # look up one line each in a cycle; 0: lines never meet in one
    l1_sector_banks: int = 0  # look up one sector each in a cycle, in order
    l1_phase: int = 1  # cycles that it takes for the 128 B that lanes are served with together
    atomics_apart: bool = False  # as in gpu.memory
    atomic_units: int = 0  # of the L2; as in gpu.l2
    float_update: float = 1.0  # as in `Serving`

    @property
    def serving(self) -> Serving:
        """How the L2 serves atomics."""
        return Serving(self.line, self.sector, self.atomic_units, self.float_update)


@dataclass(frozen=True)
class Variants:
    """V kinds of access."""

    space: NDArray[np.int8]  # [V] GLOBAL, SHARED or LOCAL
    size: NDArray[np.int32]  # [V] B per lane
    load: NDArray[np.bool_]  # [V]
    atomic: NDArray[np.bool_]  # [V]
    onward: NDArray[np.int8]  # [V] loads whose data go on to shared memory (cp.async): BY_L1, PAST_L1, or STAYS
    floats: NDArray[np.bool_] | None = None  # [V] atomics that add floating-point numbers; None: not known of any
    word: NDArray[np.int32] | None = None  # [V] B of each of the words that a lane asks for; None: it asks for one


@dataclass(frozen=True)
class Accesses:
    """M memory entries, T transactions."""

    start: NDArray[np.int64]  # [M+1]
    cycles: NDArray[np.int32]  # [M]
    atomic: NDArray[np.int32]  # [M]
    address: NDArray[np.uint64]  # [T] of the line
    sectors: NDArray[np.uint8]  # [T]


def geometry(gpu: Gpu, active_sms: int = 0) -> Geometry:
    """Rules and sizes of a GPU. Sectors are 32 B, or an eighth of a line where lines are longer than 256 B.

    active_sms: how many run blocks; 0: all. Where they are few, none shares its path to the L1 with another (`l1.sms`).
    """
    line = gpu.l1.line or gpu.l2.line
    sector = min(line, max(32, line // 8))
    one_by_one = gpu.l1.size > 0 and gpu.l1.caches_global and gpu.l1.sector <= sector  # not a whole transaction at once
    both = not active_sms or active_sms * gpu.l1.sms > gpu.sm.count
    return Geometry(
        rule=RULES[gpu.memory.coalescing],
        line=line,
        sector=sector,
        banks=bank_rule(gpu, both),
        per_cycle=gpu.memory.transactions_per_cycle,
        l1_global=gpu.l1.size > 0 and gpu.l1.caches_global,
        l1_banked=gpu.l1.size > 0 and gpu.l1.caches_global and gpu.l1.banked,
        l1_tag_sets=gpu.l1.tag_sets if gpu.l1.size > 0 and gpu.l1.caches_global else 0,
        l1_sector_banks=gpu.l1.sector_banks if one_by_one else 0,
        atomics_apart=gpu.memory.atomics_apart,
        atomic_units=gpu.l2.atomic_units,
        float_update=gpu.memory.atomics_per_cycle
        / (gpu.memory.float_atomics_per_cycle or gpu.memory.atomics_per_cycle),
        l1_phase=max(1, round(PHASE / path_bandwidth(gpu, both))) if gpu.l1.size > 0 and gpu.l1.caches_global else 1,
    )


def lower_accesses(
    shape: Geometry,
    variants: Variants,
    variant: NDArray[np.int32],
    pattern: NDArray[np.int32],
    base: NDArray[np.int64],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> Accesses:
    """Transactions of M accesses.

    variant, pattern, base [M]; variant -1: an operation that the run recorded nothing for (one cycle, nothing
    moved). Local addresses are
    interleaved already. offsets [N, 32], masks [N]: the patterns.
    """
    period = _periods(shape, variants)
    if len(masks) >= 1 << (64 - PERIOD_BITS - VARIANT_BITS) or len(variants.size) >= 1 << VARIANT_BITS:
        raise PptError("the trace has too many access patterns", hint="run fewer blocks")
    variant, pattern = np.ascontiguousarray(variant, np.int32), np.ascontiguousarray(pattern, np.int32)
    base = np.ascontiguousarray(base, np.int64)
    ids, keys = dense_ids(access_keys(variant, pattern, base, period).view(np.uint64))
    start, line, sectors, cycles, atomic = shapes(
        keys, offsets, masks, variants.space, variants.size, variants.load, variants.atomic, shape.rule, shape.line,
        shape.sector, shape.l1_global, shape.per_cycle, shape.banks, (variants.onward != PAST_L1) & shape.l1_banked,
        shape.l1_phase, shape.l1_sector_banks, shape.atomics_apart, variants.word,
    )  # fmt: skip
    if variants.floats is not None:
        slow = (keys != NOTHING) & (variants.floats & (variants.space == GLOBAL))[
            key_parts(keys)[0] % len(variants.size)
        ]
        atomic[slow] = np.minimum(in_updates(atomic[slow], shape.float_update), MOST_UPDATES)
    access_start = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(np.diff(start)[ids], out=access_start[1:])
    address, sector = np.empty(access_start[-1], np.int64), np.empty(access_start[-1], np.uint8)
    _expand(ids, start, line, sectors, variant, base, period, shape.line, address, sector)
    taken = cycles[ids]
    if shape.l1_tag_sets:
        _look_up(access_start, address, shape.line, np.zeros(shape.l1_tag_sets, np.int64), taken)
    if variants.onward.any():
        _written_on(shape.banks, variants, variant, masks[pattern] if len(masks) else np.zeros(0, np.uint32), taken)
    return Accesses(access_start, taken, atomic[ids], address.view(np.uint64), sector)


def _written_on(
    rule: BankRule, variants: Variants, variant: NDArray[np.int32], mask: NDArray[np.uint32], cycles: NDArray[np.int32]
) -> None:
    """Passes in which shared memory takes what asynchronous copies bring, all banks at work: its place is not recorded.

    What comes by the L1 has been read there before; what passes it by is written while others are looked up.
    """
    lanes = (mask[:, np.newaxis] >> np.arange(32, dtype=np.uint32) & 1).sum(axis=1, dtype=np.int32)
    kind = np.append(variants.onward, np.int8(STAYS))[variant]  # the last: -1, nothing recorded
    passes = -(-lanes * np.append(variants.size, 0)[variant] // rule.row) * rule.cycles
    cycles += np.where(kind == BY_L1, passes, 0).astype(np.int32)
    np.maximum(cycles, np.where(kind == PAST_L1, passes, 0), out=cycles, casting="unsafe")


def _periods(shape: Geometry, variants: Variants) -> NDArray[np.int64]:
    """[V] B after which an access shape repeats: all powers of two that fit a key."""
    period = np.empty(len(variants.size), np.int64)
    period[:] = max(shape.line, 128, shape.banks.row if shape.l1_banked else 0)
    period[variants.space == SHARED] = shape.banks.row
    for value in np.unique(period):
        if value & (value - 1) or value > 1 << PERIOD_BITS:
            raise PptError(
                f"lines or banks of {value} B cannot be simulated", hint=f"a power of two up to {1 << PERIOD_BITS}"
            )
    return period


def access_keys(
    variant: NDArray[np.int32], pattern: NDArray[np.int32], base: NDArray[np.int64], period: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The key of every access [M], which `key_parts` reads; all bits set (NOTHING) where nothing was recorded."""
    if len(period) == 0:
        return np.full(len(variant), -1, np.int64)
    keys = pattern.astype(np.int64)
    keys <<= VARIANT_BITS
    keys |= variant
    keys <<= PERIOD_BITS
    keys |= base & (period[variant] - 1)
    keys[variant < 0] = -1
    return keys


@entry
def _expand(
    ids: np.ndarray, start: np.ndarray, line_number: np.ndarray, sectors: np.ndarray, variant: np.ndarray,
    base: np.ndarray, period: np.ndarray, line: int, address: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """Line addresses and sector masks of all transactions."""
    at = 0
    for i in range(len(ids)):
        for t in range(start[ids[i]], start[ids[i] + 1]):
            address[at] = (base[i] & -period[variant[i]]) + line_number[t] * line
            mask[at] = sectors[t]
            at += 1


@entry
def _look_up(start: np.ndarray, address: np.ndarray, line: int, load: np.ndarray, cycles: np.ndarray) -> None:
    """Cycles of accesses whose lines meet in a set of the tags: as many as the set has lines.

    load: room for each set. The sets of NVIDIA's patent US 9,348,762: the number of a line folded by xor, as many bits
    at a time as a set's number has.
    """
    bits = 0
    while 1 << bits < len(load):
        bits += 1
    for i in range(len(cycles)):
        first, last = start[i], start[i + 1]
        if last - first <= cycles[i]:
            continue
        for k in range(len(load)):
            load[k] = 0
        most = cycles[i]
        for t in range(first, last):
            earlier = first
            while address[earlier] != address[t]:
                earlier += 1
            if earlier < t:  # lanes that are served one after another may name a line twice, which is looked up once
                continue
            number = address[t] // line
            at = 0
            while number:
                at ^= number
                number >>= bits
            at &= len(load) - 1
            load[at] += 1
            if load[at] > most:
                most = load[at]
        cycles[i] = most
