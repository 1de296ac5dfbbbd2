"""Kinds of blocks: k-means on what blocks do, deterministic, with as many clusters as the differences need.

Features of a block, each divided by its mean over the grid: warp instructions, instructions of its longest warp and
sectors of memory asked for. The first are those that GPUMech clusters warps by (Huang et al. 2014, equation 6), with
the interval model's performance of a warp replaced by what sets it and needs no GPU: the memory that it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.block_features import BlockFeatures

MOST_CLUSTERS = 8
#: share of the (weighted) variance of the features that the clusters must explain
EXPLAINED = 0.95
ROUNDS = 50


@dataclass(frozen=True)
class Clusters:
    """K clusters of n blocks, the largest share first."""

    mean: NDArray[np.float64]  # [F] features of a block of the grid
    member: NDArray[np.int32]  # [n] cluster of each block
    centre: NDArray[np.float64]  # [K, F] features over their mean
    share: NDArray[np.float64]  # [K] of the grid's blocks
    representative: NDArray[np.int64]  # [K] position of the block nearest to the centre

    def __len__(self) -> int:
        return len(self.share)

    def assign(self, features: BlockFeatures) -> NDArray[np.int64]:
        """[n] the cluster of each of these blocks."""
        return _distances(_raw(features) / self.mean, self.centre).argmin(axis=1)


def cluster_blocks(features: BlockFeatures, weight: NDArray[np.float64]) -> Clusters:
    """Cluster blocks, of which each stands for `weight` blocks of the grid (0: it is assigned, but counts nowhere).

    The fewest clusters, up to MOST_CLUSTERS, within which at most 1 - EXPLAINED of the variance is left.
    """
    raw = _raw(features)
    mean = np.average(raw, axis=0, weights=weight)
    mean = np.where(mean > 0, mean, 1.0)
    points = raw / mean
    allowed = (1.0 - EXPLAINED) * _scatter(points, np.average(points, axis=0, weights=weight)[None], weight)
    for count in range(1, MOST_CLUSTERS + 1):
        centre = k_means(points, weight, count)
        if len(centre) < count or _scatter(points, centre, weight) <= allowed + 1e-12:
            break
    return _named(mean, points, weight, centre)


def k_means(points: NDArray[np.float64], weight: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Centres [K, F] of at most `count` clusters, by Lloyd's iteration from farthest points.

    The first start is the point farthest from the mean, each next the one farthest from those chosen; ties go to the
    lowest index. Fewer than `count` where there are not so many different points with weight.
    """
    chosen = [np.average(points, axis=0, weights=weight)]
    counted = weight > 0
    for _ in range(count):
        far = np.where(counted, _distances(points, np.array(chosen)).min(axis=1), -1.0)
        if far.max() <= 0 and len(chosen) > 1:
            break
        chosen.append(points[int(far.argmax())])
    centre = np.array(chosen[1:])
    for _ in range(ROUNDS):
        nearest = _distances(points, centre).argmin(axis=1)
        total = _sums(nearest, weight, len(centre))
        sums = np.stack([_sums(nearest, weight * column, len(centre)) for column in points.T], axis=1)
        moved = np.where(total[:, None] > 0, sums / np.maximum(total, 1e-300)[:, None], centre)
        if np.array_equal(moved, centre):
            break
        centre = moved
    return centre


def _sums(member: NDArray[np.intp], values: NDArray[np.float64], clusters: int) -> NDArray[np.float64]:
    """[clusters] the sum of the values of each cluster's members."""
    return np.asarray(np.bincount(member, weights=values, minlength=clusters), np.float64)


def _raw(features: BlockFeatures) -> NDArray[np.float64]:
    return np.stack([features.warp_instructions, features.longest, features.sectors], axis=1).astype(np.float64)


def _distances(points: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """[n, K] squared distances."""
    return np.stack([((points - one) ** 2).sum(axis=1) for one in centre], axis=1)


def _scatter(points: NDArray[np.float64], centre: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The weighted sum of squared distances to the nearest centre."""
    return float((_distances(points, centre).min(axis=1) * weight).sum())


def _named(
    mean: NDArray[np.float64], points: NDArray[np.float64], weight: NDArray[np.float64], centre: NDArray[np.float64]
) -> Clusters:
    """Clusters with weight, by descending share."""
    found = _sums(_distances(points, centre).argmin(axis=1), weight, len(centre))
    order = np.argsort(-found, kind="stable")
    order = order[found[order] > 0]
    distance = _distances(points, centre[order])
    member = distance.argmin(axis=1)
    own = np.where(member[:, None] == np.arange(len(order)), distance, np.inf)
    share = _sums(member, weight, len(order))
    return Clusters(mean, member.astype(np.int32), centre[order], share / share.sum(), own.argmin(axis=0))
