"""Slices of the L2 that get more than their share of the requests, by address, and what that costs all.

Where all SMs come to few lines again and again, as a histogram's updates do, only the slices of these lines serve them,
however addresses choose slices (`few_lines`).

Others camp for a time. Where addresses choose the slice in turn (`l2.slice_index` "linear"), a stride of many times
`l2.interleave` leaves most slices idle. Queues even that out over as many requests as can wait before the slices
(`l2.waiting`): the requests of all SMs are taken in windows of so many sectors, and a window takes as long as the way
to all slices together or as its busiest slice, whichever is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.spec.gpu import Gpu

if TYPE_CHECKING:
    from ppt_gpu.sm.lower_access import Accesses

_BITS = np.array([mask.bit_count() for mask in range(256)], np.int64)


def slice_of_lines(address: NDArray[np.uint64], gpu: Gpu, line: int) -> NDArray[np.int32]:
    """[L] the slice of each line of `line` bytes: chunks of `l2.interleave` bytes go to the slices in turn.

    With `l2.slice_index` "hash", the number of the chunk is first folded by xor with its higher bits, so that no stride
    stays on one.
    """
    chunk = address.astype(np.uint64) // np.uint64(max(gpu.l2.interleave, line))
    slices = gpu.l2.slices
    if gpu.l2.slice_index == "hash" and slices > 1:
        bits = max((slices - 1).bit_length(), 1)
        folded = chunk.copy()
        for shift in range(bits, 64, bits):
            folded ^= chunk >> np.uint64(shift)
        chunk = folded & np.uint64((1 << bits) - 1)
    return (chunk % np.uint64(slices)).astype(np.int32)


def few_lines(
    address: NDArray[np.uint64],
    sectors: NDArray[np.float64],
    users: NDArray[np.float64],
    gpu: Gpu,
    line: int,
    sector: int,
    active_sms: int,
) -> float:
    """How many times as long as evenly spread ones the requests of all SMs take at the slices, at least 1.

    address, sectors, users [L]: of each line, the sectors that this SM asks the L2 for in all, and how many SMs do so.
    What this SM shares with others lies where they ask, too; what SMs have for themselves lies anywhere.
    """
    if not has_slices(gpu) or not sectors.sum():
        return 1.0
    slices = gpu.l2.slices
    shared = np.where(users > 1.0, sectors * users, 0.0)
    total = float(sectors.sum()) * active_sms
    asked = np.bincount(slice_of_lines(address, gpu, line), shared, slices) + (total - shared.sum()) / slices
    way = total * sector / gpu.l2.bandwidth
    return max(1.0, float(asked.max()) * sector / (gpu.l2.slice_bandwidth or gpu.l2.bandwidth / slices) / way)


def has_slices(gpu: Gpu) -> bool:
    """Whether it is known which slices of the L2 of `gpu` serve which addresses."""
    return gpu.l2.slices > 1 and not gpu.perfect_memory


def may_camp(gpu: Gpu) -> bool:
    """Whether strides of addresses can make slices of the L2 of `gpu` wait while others are idle."""
    return has_slices(gpu) and gpu.l2.slice_index == "linear" and gpu.l2.waiting > 0


@dataclass(frozen=True)
class Requests:
    """Of some SMs, T transactions each as they are asked for."""

    address: NDArray[np.uint64]  # [T] of the line
    sectors: NDArray[np.int64]  # [T] how many
    sm: NDArray[np.int64]  # [T] rising


def in_order(
    found: Accesses, block_start: NDArray[np.int64], block_sm: NDArray[np.int64], warps: int, resident: int
) -> Requests:
    """The transactions of blocks [B] as their SMs ask: `resident` blocks at a time, all warps equally far.

    block_start [B + 1]: into the accesses of `found`, those of a block warp by warp, about as many of each of its
    `warps`; block_sm [B]: its SM, which runs its blocks in their order.
    """
    counts = np.diff(block_start)
    order = np.argsort(block_sm, kind="stable")
    sorted_sm = block_sm[order]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(sorted_sm, sorted_sm)
    place = np.arange(block_start[-1]) - np.repeat(block_start[:-1], counts)
    depth = place % np.repeat(np.maximum(-(-counts // warps), 1), counts)  # how many accesses of its warp came before
    sm = np.repeat(block_sm, counts)
    turn = np.lexsort((depth, np.repeat(rank // resident, counts), sm))
    size = np.diff(found.start)[turn]
    first = np.cumsum(size) - size
    which = np.repeat(found.start[turn] - first, size) + np.arange(size.sum())
    return Requests(found.address[which], _BITS[found.sectors[which]], np.repeat(sm[turn], size))


def joined(some: Requests, others: Requests) -> Requests:
    """The requests of `some` SMs and of `others`."""
    sm = others.sm + some.sm.max(initial=-1) + 1
    return Requests(
        *map(np.concatenate, ((some.address, others.address), (some.sectors, others.sectors), (some.sm, sm)))
    )


def camping(requests: Requests, gpu: Gpu, sector_bytes: int) -> float:
    """How many times as long as evenly spread ones the requests of all SMs take at the slices, at least 1."""
    sms, place = np.unique(requests.sm, return_inverse=True)
    total = int(requests.sectors.sum())
    if total == 0:
        return 1.0
    before = np.cumsum(requests.sectors) - requests.sectors
    own = before - before[np.searchsorted(place, np.arange(len(sms)))][place]  # sectors that its SM asked for before
    window = own * len(sms) // gpu.l2.waiting
    slices = gpu.l2.slices
    of_slice = (requests.address // np.uint64(gpu.l2.interleave) % np.uint64(slices)).astype(np.int64)
    asked = np.bincount(window * slices + of_slice, requests.sectors, (int(window.max()) + 1) * slices)
    asked = asked.reshape(-1, slices) * sector_bytes
    way = asked.sum(axis=1) / gpu.l2.bandwidth
    busiest = asked.max(axis=1) / (gpu.l2.slice_bandwidth or gpu.l2.bandwidth / slices)
    return float(np.maximum(way, busiest).sum() / way.sum())
