"""The representative warp: k-means with two clusters on what warps do alone (GPUMech, paper 000, section III-C).

Deterministic: the centres start at the warp farthest from the mean and at the one farthest from that; ties go to the
lower number. Warps on one path are the same warp, so each path stands for as many as it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean

METHODS = ("clustering", "max", "min")
ROUNDS = 100


@dataclass(frozen=True)
class Representative:
    """The chosen one of n kinds of warps."""

    index: int
    features: NDArray[np.float64]  # [n, 2] Eq. 6
    labels: NDArray[np.int64]  # [n] cluster; all 0 where there was nothing to tell apart
    majority: int  # the larger cluster


def features(
    warp_perf: NDArray[np.float64], insts: NDArray[np.float64], count: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Eq. 6: performance alone and instructions, each by its mean over all warps. count [n]: warps of each kind."""
    weight = np.ones(len(insts)) if count is None else np.asarray(count, np.float64)
    columns = [np.asarray(column, np.float64) for column in (warp_perf, insts)]
    means = [float(np.average(column, weights=weight)) for column in columns]
    return np.stack([column / mean if mean else column for column, mean in zip(columns, means, strict=True)], axis=1)


def representative(
    warp_perf: NDArray[np.float64],
    insts: NDArray[np.float64],
    count: NDArray[np.float64] | None = None,
    *,
    method: str = "clustering",
    centres: tuple[int, int] | None = None,
) -> Representative:
    """The representative of n kinds of warps, `count` of each; `centres` are those to start from.

    `max` and `min` take the warp that performs best or worst alone, as the paper tries. PptError for another method.
    """
    if method not in METHODS:
        raise PptError(f"unknown way to choose the representative warp, '{method}'", hint=did_you_mean(method, METHODS))
    weight = np.ones(len(insts)) if count is None else np.asarray(count, np.float64)
    points = features(warp_perf, insts, weight)
    alone = np.zeros(len(points), np.int64)
    if method != "clustering":
        best = np.argmax(warp_perf) if method == "max" else np.argmin(warp_perf)
        return Representative(int(best), points, alone, 0)
    if (points == points[0]).all():
        return Representative(0, points, alone, 0)
    labels, centre = _two_means(points, weight, centres or _far_apart(points, weight))
    majority = int(weight[labels == 1].sum() > weight[labels == 0].sum())
    distance = np.where(labels == majority, _squares(points, centre[majority]), np.inf)
    return Representative(int(np.argmin(distance)), points, labels, majority)


def _squares(points: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = ((points - centre) ** 2).sum(axis=1)
    return found


def _far_apart(points: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[int, int]:
    outlier = int(np.argmax(_squares(points, np.average(points, axis=0, weights=weight))))
    other = int(np.argmax(_squares(points, points[outlier])))
    return min(outlier, other), max(outlier, other)


def _two_means(
    points: NDArray[np.float64], weight: NDArray[np.float64], start: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    centre = points[list(start)]
    labels = np.zeros(len(points), np.int64)
    for _ in range(ROUNDS):
        labels = (_squares(points, centre[1]) < _squares(points, centre[0])).astype(np.int64)
        moved = centre.copy()
        for cluster in (0, 1):
            inside = labels == cluster
            if inside.any():
                moved[cluster] = np.average(points[inside], axis=0, weights=weight[inside])
        if np.array_equal(moved, centre):
            break
        centre = moved
    return labels, centre
