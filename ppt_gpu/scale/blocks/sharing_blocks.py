"""Blocks of a grid along one axis that touch what a block touches, other than its neighbours.

A grid of one axis may walk through data of several: the next row of a picture then belongs to a block some hundred
further on, and all other SMs but the one that runs it share nothing with this one. Where the addresses of accesses grow
by the same step from block to block, accesses whose addresses are d steps apart make blocks d apart meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
