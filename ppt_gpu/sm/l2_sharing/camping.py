"""Slices of the L2 that get more than their share of the requests, by address, and what that costs all.

Where all SMs come to few lines again and again, as a histogram's updates do, only the slices of these lines serve them,
however addresses choose slices (`few_lines`).

Others camp for a time. Where addresses choose the slice in turn (`l2.slice_index` "linear"), a stride of many times
`l2.interleave` leaves most slices idle. Queues even that out over as many requests as can wait before the slices
(`l2.waiting`): the requests of all SMs are taken in windows of so many sectors, and a window takes as long as the way
to all slices together or as its busiest slice, whichever is longer. What an SM finds in its L1 is no request
(`beyond_l1`): a line that all warps read again and again would seem to keep its slice busy. SMs and their warps get out
of step, the more the longer their blocks run, and so ask several slices at a time that each would camp on in turn:
windows grow by DRIFT of what has been asked for since the wave of blocks began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.l2_sharing.slice_hash import polynomial_slice
from ppt_gpu.spec.gpu import Gpu

if TYPE_CHECKING:
    from ppt_gpu.sm.accesses.access import Accesses

_BITS = np.array([mask.bit_count() for mask in range(256)], np.int64)
#: by what share of what they have asked for in a wave SMs are apart (chosen: validation/RESULTS.md)
DRIFT = 0.03
#: of a line that the L1 of the SM does not hold
NEVER = -1


def slice_of_lines(address: NDArray[np.uint64], gpu: Gpu, line: int) -> NDArray[np.int32]:
    """[L] the slice of each line of `line` bytes: chunks of `l2.interleave` bytes go to the channels of DRAM in turn,
    and those of a channel to its slices, which have numbers next to one another.

    With `l2.slice_index` "hash", the number of the chunk is first folded by xor with its higher bits, so that no stride
    stays on one; with "polynomial" as `slice_hash` says.
    """
    chunk = address.astype(np.uint64) // np.uint64(max(gpu.l2.interleave, line))
    slices = gpu.l2.slices
    if gpu.l2.slice_index == "polynomial" and slices > 1:
        chunk = polynomial_slice(chunk, slices, gpu.dram.channels)
    if gpu.l2.slice_index == "hash" and slices > 1:
        bits = max((slices - 1).bit_length(), 1)
        folded = chunk.copy()
        for shift in range(bits, 64, bits):
            folded ^= chunk >> np.uint64(shift)
        chunk = folded & np.uint64((1 << bits) - 1)
    if gpu.l2.slice_index == "linear" and slices % gpu.dram.channels == 0:
        channels, each = np.uint64(gpu.dram.channels), np.uint64(slices // gpu.dram.channels)
        chunk = chunk % channels * each + chunk // channels % each
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
    way = total * sector / gpu.l2_way(active_sms)
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
    sectors: NDArray[np.uint8]  # [T]
    sm: NDArray[np.int64]  # [T] rising
    wave: NDArray[np.int64]  # [T] of its blocks; rising in each SM
    load: NDArray[np.bool_]  # [T] looks into the L1


def in_order(
    found: Accesses,
    load: NDArray[np.bool_],
    block_start: NDArray[np.int64],
    block_sm: NDArray[np.int64],
    warps: int,
    resident: int,
) -> Requests:
    """The transactions of blocks [B] as their SMs ask: `resident` blocks at a time, all warps equally far.

    load [M]: which accesses look into the L1. block_start [B + 1]: into the accesses of `found`, those of a block warp
    by warp, about as many of each of its `warps`; block_sm [B]: its SM, which runs its blocks in their order.
    """
    counts = np.diff(block_start)
    order = np.argsort(block_sm, kind="stable")
    sorted_sm = block_sm[order]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(sorted_sm, sorted_sm)
    place = np.arange(block_start[-1]) - np.repeat(block_start[:-1], counts)
    depth = place % np.repeat(np.maximum(-(-counts // warps), 1), counts)  # how many accesses of its warp came before
    sm = np.repeat(block_sm, counts)
    wave = np.repeat(rank // resident, counts)
    turn = np.lexsort((depth, wave, sm))
    size = np.diff(found.start)[turn]
    first = np.cumsum(size) - size
    which = np.repeat(found.start[turn] - first, size) + np.arange(size.sum())
    of_sm, of_wave = np.repeat(sm[turn], size), np.repeat(wave[turn], size)
    return Requests(found.address[which], found.sectors[which], of_sm, of_wave, np.repeat(load[turn], size))


def beyond_l1(requests: Requests, gpu: Gpu, line: int, sector: int) -> Requests:
    """What of `requests` the L1 of each SM has to ask the L2 for: whole sectors of the L1 that it does not hold.

    line, sector: B, those of `requests`. It holds a line until as many others have come in since its last use as there
    is room for; stores go on, and write-evict ones drop the line.
    """
    if gpu.l1.size == 0 or not gpu.l1.caches_global:
        return requests
    number, distinct = dense_ids(requests.address)
    left = np.zeros(len(number), np.uint8)
    _beyond_l1(
        number, requests.sectors, requests.sm, requests.load, max(gpu.l1.size // line, 1), _whole(gpu, sector),
        gpu.l1.write == "write-evict", np.full(len(distinct), NEVER, np.int64), np.zeros(len(distinct), np.uint8), left,
    )  # fmt: skip
    asked = left != 0
    return Requests(
        requests.address[asked], left[asked], requests.sm[asked], requests.wave[asked], requests.load[asked]
    )


def _whole(gpu: Gpu, sector: int) -> NDArray[np.uint8]:
    """[256] of each mask of sectors, the mask of all sectors in the sectors of the L1 that have one of them."""
    group = max(gpu.l1.sector // sector, 1)
    found = np.arange(256)
    for first in range(0, 8, group):
        of_group = ((1 << min(group, 8 - first)) - 1) << first
        found = np.where(found & of_group, found | of_group, found)
    return found.astype(np.uint8)


@entry
def _beyond_l1(
    number: np.ndarray, sectors: np.ndarray, sm: np.ndarray, load: np.ndarray, room: int, whole: np.ndarray,
    evict: bool, last: np.ndarray, valid: np.ndarray, left: np.ndarray,
) -> None:  # fmt: skip
    """Fill `left`. Of each line, last: how many lines had come in when the SM used it, valid: the sectors it holds."""
    count = 0
    for t in range(len(number)):
        if t == 0 or sm[t] != sm[t - 1]:
            count += room  # what came in before, another SM holds
        line = number[t]
        held = count - last[line] < room
        if load[t]:
            if not held:
                count += 1
                valid[line] = 0
            left[t] = whole[sectors[t] & ~valid[line]]
            valid[line] |= left[t]
            last[line] = count
        else:
            left[t] = sectors[t]
            if evict:
                last[line] = NEVER
            elif held:
                last[line] = count


def joined(some: Requests, others: Requests) -> Requests:
    """The requests of `some` SMs and of `others`."""
    sm = others.sm + some.sm.max(initial=-1) + 1
    return Requests(
        np.concatenate((some.address, others.address)),
        np.concatenate((some.sectors, others.sectors)),
        np.concatenate((some.sm, sm)),
        np.concatenate((some.wave, others.wave)),
        np.concatenate((some.load, others.load)),
    )


def _windows(requests: Requests, sectors: NDArray[np.int64], waiting: int) -> NDArray[np.int64]:
    """[T] in which window each of the `requests`, of so many `sectors`, is asked for."""
    begins = np.flatnonzero((np.diff(requests.sm, prepend=-1) != 0) | (np.diff(requests.wave, prepend=-1) != 0))
    of_part = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(sectors))))
    before = np.cumsum(sectors) - sectors
    sm = requests.sm[begins]
    _, first = np.unique(sm, return_index=True)
    sms = len(first)

    def windows(own: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.log1p(DRIFT * own * sms / waiting) / DRIFT

    length = windows(np.add.reduceat(sectors, begins))
    ends = np.cumsum(length)
    start = ends - length
    start -= np.repeat(start[first], np.diff(np.append(first, len(sm))))
    return (start[of_part] + windows(before - before[begins][of_part])).astype(np.int64)


def camping(requests: Requests, gpu: Gpu, sector_bytes: int) -> float:
    """How many times as long as evenly spread ones the requests of all SMs take at the slices, at least 1."""
    sectors = _BITS[requests.sectors]
    if not sectors.sum():
        return 1.0
    window = _windows(requests, sectors, gpu.l2.waiting)
    slices = gpu.l2.slices
    of_slice = (requests.address // np.uint64(gpu.l2.interleave) % np.uint64(slices)).astype(np.int64)
    asked = np.bincount(window * slices + of_slice, sectors, (int(window.max()) + 1) * slices)
    asked = asked.reshape(-1, slices) * sector_bytes
    way = asked.sum(axis=1) / gpu.l2_way(len(np.unique(requests.sm)))
    busiest = asked.max(axis=1) / (gpu.l2.slice_bandwidth or gpu.l2.bandwidth / slices)
    return float(np.maximum(way, busiest).sum() / way.sum())
