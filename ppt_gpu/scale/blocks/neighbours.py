"""Blocks that other SMs run at the same time: what they touch says what this SM finds in the L2.

Blocks of a grid along one axis that touch what a block touches, other than its neighbours.

A grid of one axis may walk through data of several: the next row of a picture then belongs to a block some hundred
further on, and all other SMs but the one that runs it share nothing with this one. Where the addresses of accesses grow
by the same step from block to block, accesses whose addresses are d steps apart make blocks d apart meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.blocks.strata import GOLDEN
from ppt_gpu.workload.workload import Dim3

#: pairs of blocks looked at, spaced over those that are simulated
PAIRS = 5
#: steps looked at, those of most accesses
STEPS = 16
#: accesses of a warp looked at, of those that are at different places
LOOKED_AT = 256
#: distances told at most, either way
MOST = 4
#: accesses of the warp that must meet others for a distance to count, as a share of them
TELLING = 0.05


def met_blocks(bases: Callable[[int], NDArray[np.int64]], blocks: list[int], grid_blocks: int) -> list[int]:
    """How many blocks further on (or back: negative) blocks meet a block, those that meet in most accesses first.

    bases(k) [n]: addresses of the accesses to global memory by one warp of `blocks[k]`, in its order. The steps are
    those between successive blocks, none where one makes another number of accesses, as at a border of the grid.
    """
    if len(blocks) < 2:
        return []
    pairs = np.unique(np.linspace(0, len(blocks) - 2, PAIRS).round().astype(int)).tolist()
    weights: Counter[int] = Counter()
    for k in pairs:
        first, second = bases(k), bases(k + 1)
        if len(first) == len(second):
            _add_met(first, (second - first) / (blocks[k + 1] - blocks[k]), grid_blocks, weights)
    enough = TELLING * len(pairs)
    told = [distance for distance, weight in weights.items() if weight >= enough and 1 < abs(distance) < grid_blocks]
    return sorted(told, key=lambda distance: (-weights[distance], abs(distance), distance))[: 2 * MOST]


def _add_met(places: NDArray[np.int64], step: NDArray[np.float64], grid_blocks: int, weights: Counter[int]) -> None:
    """Where others meet a block whose accesses [n] are at `places` and go on by `step` from block to block."""
    steps, accesses = np.unique(step[step > 0], return_counts=True)
    for one in steps[np.argsort(-accesses, kind="stable")[:STEPS]]:  # of gathers every step is another
        alike = np.unique(places[step == one])[:LOOKED_AT]
        apart = ((alike[:, np.newaxis] - alike) / one).ravel()
        apart = apart[(np.abs(apart) >= 1.0) & (np.abs(apart) < grid_blocks)]
        below = np.floor(apart)
        for distance, weight in ((below, 1.0 - (apart - below)), (below + 1.0, apart - below)):
            distinct, at = np.unique(distance.astype(np.int64), return_inverse=True)
            shares = np.bincount(at, weight / len(alike), len(distinct))
            weights.update(dict(zip(distinct.tolist(), shares.tolist(), strict=True)))


#: SMs sampled beside the adjacent ones, where as many can be
FAR_SMS = 4


class Neighbour(NamedTuple):
    """A block that runs on another SM at the same time."""

    block: int
    offset: int  # how many SMs further, 1 ... active SMs - 1
    stands_for: float  # how many of the other SMs its SM stands for


def neighbour_blocks(
    spread: GridSpread, blocks: Sequence[int], grid: Dim3, samples: int = 8, met: Sequence[int] = ()
) -> list[Neighbour]:
    """Blocks that run on other SMs at the same time as `blocks` of one SM, by block.

    From up to `samples` other SMs: those that run the neighbours of `blocks` along the axes of the grid, which share
    most with them and stand for themselves; and others, spaced over the chip and, where not all are sampled, next to
    none of the blocks, which stand for all the rest. They serve to estimate how much of what this SM fetches another SM
    has fetched into the L2 already. `met`: how much further on other blocks are that touch the same.
    """
    near = adjacent_sms(spread, grid, met)[: max(samples - FAR_SMS, samples // 2, 1)]
    rest = [offset for offset in range(1, spread.active_sms) if offset not in near]
    around = _around(spread, grid, met)
    apart = [offset for offset in rest if offset not in around]
    every = not apart or samples >= spread.active_sms - 1
    places = list(zip(*(part.tolist() for part in spread.place(np.array(blocks, np.int64))), strict=True))
    line = _in_line(spread, places[: spread.resident], grid)
    far = _of_each_line(rest, rest if every else apart, line, samples - len(near))
    stands_for = dict.fromkeys(near, 1.0) | far
    if near and not far:
        stands_for = dict.fromkeys(near, (spread.active_sms - 1) / len(near))
    found = {
        Neighbour(spread.block((sm + offset) % spread.active_sms, position), offset, weight)
        for offset, weight in stands_for.items()
        for sm, position in places
    }
    # of the mix that stands for a grid of different blocks, one may meet what runs in a wave that is not in the mix
    found |= {
        Neighbour(block + step, step % spread.active_sms, 1.0)
        for block in blocks
        for step in (() if spread.bunched else met)
        if step % spread.active_sms in near and block + step >= 0
    }
    return sorted(neighbour for neighbour in found if neighbour.block < spread.grid_blocks)


def _in_line(spread: GridSpread, places: Sequence[tuple[int, int]], grid: Dim3) -> list[int]:
    """For the SM at each offset, the axes along which its blocks lie in line with those at `places`: a bit for each.

    Two blocks are in line along an axis that alone tells their coordinates apart. `places` (SM, position) are of one
    wave.
    """
    sm, position = (np.array(part, np.int64) for part in zip(*places, strict=True))
    at = (sm + np.arange(spread.active_sms)[:, None]) % spread.active_sms
    ids = [[spread.block(int(s), int(p)) for s, p in zip(row, position, strict=True)] for row in at]
    x, y, _ = grid
    blocks = np.array(ids, np.int64)
    coordinates = np.stack([blocks % x, blocks // x % y, blocks // (x * y)])  # [axes, SMs, blocks of a wave]
    differs = coordinates[:, :, :, None] != coordinates[:, 0][:, None, None, :]
    alone = differs & (differs.sum(axis=0) == 1)
    exists = (blocks < spread.grid_blocks)[None, :, :, None]
    return (np.array([1, 2, 4]) @ (alone & exists).any(axis=(2, 3))).tolist()


def _of_each_line(rest: list[int], apart: list[int], line: list[int], samples: int) -> dict[int, float]:
    """`samples` of the SMs `apart`, by offset, with how many of the `rest` each stands for.

    Blocks in a row or a column of a grid may share what others do not (in a product, a tile of a factor), so each group
    of SMs that are in line alike is sampled, and the small ones together where there are more of them than samples.
    """
    if samples < 1:
        return {}
    sizes = Counter(line[offset] for offset in rest)
    known = [axes for axes, _ in sizes.most_common() if any(line[offset] == axes for offset in apart)]
    alike = known if len(known) <= samples else known[: samples - 1]
    groups = [[offset for offset in apart if line[offset] == axes] for axes in alike]
    stand_for = [sizes[axes] for axes in alike]
    others = [offset for offset in apart if line[offset] not in alike]
    if others:
        groups.append(others)
        stand_for.append(0)
    if groups:
        stand_for[-1 if others else 0] += len(rest) - sum(stand_for)
    counts = [1] * len(groups)
    for _ in range(min(samples, len(apart)) - len(groups)):
        free = [k for k in range(len(groups)) if counts[k] < len(groups[k])]
        counts[max(free, key=lambda k: stand_for[k] / counts[k])] += 1
    return {offset: stand_for[k] / counts[k] for k in range(len(groups)) for offset in _spaced(groups[k], counts[k])}


def adjacent_sms(spread: GridSpread, grid: Dim3, met: Sequence[int] = ()) -> list[int]:
    """Offsets of the SMs that run the next and the previous block along x, y, z, and of those `met` further on."""
    steps = [sign * step for step in _steps(spread, grid) for sign in (1, -1)]
    offsets = dict.fromkeys(step % spread.active_sms for step in (*steps, *_in_rows(spread, met)))
    return [offset for offset in offsets if offset]


def _around(spread: GridSpread, grid: Dim3, met: Sequence[int]) -> set[int]:
    """Offsets of the SMs that run a block next to a block, also across edges and corners: these are like no others."""
    offsets = {0}
    for step in _steps(spread, grid):
        offsets |= {(offset + sign * step) % spread.active_sms for offset in offsets for sign in (1, -1)}
    return offsets | {step % spread.active_sms for step in _in_rows(spread, met)}


def _in_rows(spread: GridSpread, met: Sequence[int]) -> list[int]:
    """How many SMs further on those blocks run, where an SM may get as many in a row as it holds."""
    return [round(step / spread.resident) if spread.bunched else step for step in met]


def _steps(spread: GridSpread, grid: Dim3) -> list[int]:
    """How many SMs further the next block along each axis of the grid runs; one of as many in a row, at least one."""
    row = spread.resident if spread.bunched else 1
    steps = zip((1, grid[0], grid[0] * grid[1]), grid, strict=True)
    return [max(step // row, 1) for step, extent in steps if extent > 1]


def _spaced(others: list[int], samples: int) -> list[int]:
    """`samples` of `others`: one of each of as many equal parts.

    From another place of each part, by the golden ratio: SMs that share may be a fixed number apart (as the blocks of
    the same rank in all clusters), and samples as far apart would meet all of them or none.
    """
    count = min(len(others), samples)
    bounds = [index * len(others) // count for index in range(count + 1)]
    places = ((index + 1) * GOLDEN % 1.0 for index in range(count))
    return [others[a + int(place * (b - a))] for a, b, place in zip(bounds[:-1], bounds[1:], places, strict=True)]
