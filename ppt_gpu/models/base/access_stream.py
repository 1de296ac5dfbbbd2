"""The order in which one SM touches memory, as models without time see it: resident warps in turn, an access each.

Blocks run `resident` at a time; one whose warps have no access left makes place for the next (PPT-GPU-Mem: the blocks
of an SM interleaved instruction by instruction).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.common.compiled import entry
from ppt_gpu.models.base.warp_streams import WarpStreams
from ppt_gpu.sm.program.machine import WRITE_BACK, WRITE_EVICT, Machine, keeps_stores, machine_of, uses_l1
from ppt_gpu.sm.program.program import KIND_LOAD, Program


@dataclass(frozen=True)
class AccessStream:
    """T transactions in the order in which they are made, of a program with L lines."""

    machine: Machine  # the caches of one SM and its slice of the L2
    place: NDArray[np.int64]  # [T] of each in the program's transactions
    line: NDArray[np.int64]  # [T] line id, or FORCED_*
    sectors: NDArray[
        np.int64
    ]  # [T] mask of the program's sectors; of loads that look into the L1, of its whole sectors
    kind: NDArray[np.int64]  # [T] KIND_LOAD, KIND_STORE or KIND_ATOMIC
    cached: NDArray[np.bool_]  # [T] looks into the L1
    keeps: NDArray[np.bool_]  # [T] does, and what it stores stays there
    drops: NDArray[np.bool_]  # [T] does, and a store drops the line
    warm: NDArray[np.int64]  # [L] masks of the sectors that are in the L2 before this SM first asks
    kept: NDArray[np.bool_]  # [L] these stay there, by the uses of others


def access_stream(inputs: WarpStreams) -> AccessStream:
    """The global and local transactions of the simulated blocks."""
    program = inputs.program
    machine = caches_of(inputs)
    order = interleaved(program, inputs.resident_blocks)
    count = np.diff(program.access_start)[order]
    first = np.repeat(program.access_start[:-1][order] - np.concatenate(([0], np.cumsum(count)[:-1])), count)
    chosen = first + np.arange(len(first))
    op = np.repeat(entry_ops(program)[order], count)
    sectors = program.tx_sectors[chosen].astype(np.int64)
    line, kind = program.tx_line[chosen].astype(np.int64), program.op_kind[op].astype(np.int64)
    cached = uses_l1(program, machine)[op] & (line >= 0)
    keeps = cached & (keeps_stores(program, machine)[op] | (machine.l1_write == WRITE_BACK))
    return AccessStream(
        machine=machine,
        place=chosen,
        line=line,
        sectors=np.where(cached & (kind == KIND_LOAD), whole_sectors(sectors, machine.l1_group), sectors),
        kind=kind,
        cached=cached,
        keeps=keeps,
        drops=cached & ~keeps & (machine.l1_write == WRITE_EVICT),
        warm=program.line_warm.astype(np.int64),
        kept=program.line_kept if len(program.line_kept) else np.zeros(len(program.line_warm), np.bool_),
    )


def caches_of(inputs: WarpStreams) -> Machine:
    """The L1 of one SM and its slice of the L2, as the simulation has them."""
    return machine_of(inputs.program, inputs.gpu, inputs.active_sms, None, inputs.l2_dirty, inputs.l1_bytes)


def interleaved(program: Program, resident: int) -> NDArray[np.int64]:
    """[M] the memory entries in the order in which they are made."""
    order = np.zeros(len(program.access_start) - 1, np.int64)
    blocks = len(program.block_warp) - 1
    slots = np.full(max(min(resident, blocks), 1), -1, np.int64)
    _interleave(program.block_warp, program.warp_access, program.warp_access[:-1].copy(), slots, order)
    return order


@entry
def _interleave(
    block_warp: np.ndarray, warp_access: np.ndarray, place: np.ndarray, slots: np.ndarray, order: np.ndarray
) -> None:
    """place [W]: the next entry of each warp; slots: the block in each, -1: none."""
    blocks, following, done = len(block_warp) - 1, 0, 0
    while done < len(order):
        for slot in range(len(slots)):
            left = False
            while not left:
                if slots[slot] >= 0:
                    for warp in range(block_warp[slots[slot]], block_warp[slots[slot] + 1]):
                        if place[warp] < warp_access[warp + 1]:
                            left = True
                if not left:
                    if following == blocks:
                        slots[slot] = -1
                        break
                    slots[slot] = following
                    following += 1
            if left:
                for warp in range(block_warp[slots[slot]], block_warp[slots[slot] + 1]):
                    if place[warp] < warp_access[warp + 1]:
                        order[done] = place[warp]
                        place[warp] += 1
                        done += 1


def whole_sectors(sectors: NDArray[np.int64], group: int) -> NDArray[np.int64]:
    """Masks grown to whole groups of `group` bits: what an L1 with larger sectors fetches."""
    grown = np.zeros_like(sectors)
    for first in range(0, 8, group):
        mask = ((1 << group) - 1) << first
        grown |= np.where(sectors & mask, mask, 0)
    return grown
