"""Hit probability from the stack distance: SDCM, as PPT-GPU-Mem uses it (Arafa et al., ICS 2020).

A line that D distinct lines followed is still in its set of A ways if fewer than A of them fell into that set; each
does with probability A / B in a cache of B lines:

    P(h|D) = sum over a < A of C(D, a) (A/B)^a ((B-A)/B)^(D-a),    P(h|0) = 1,    P(h|cold) = 0
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError


def hit_probability(distance: NDArray[np.int64], ways: int, blocks: int) -> NDArray[np.float64]:
    """P(h|D) for every stack distance; 0 for negative ones (first uses). blocks: lines of the cache.

    Raises PptError unless 1 <= ways <= blocks.
    """
    _check(ways, blocks)
    depth, back = np.unique(np.asarray(distance, np.int64), return_inverse=True)
    if ways == blocks:
        found = (depth < ways).astype(np.float64)
    else:
        d = np.maximum(depth, 0).astype(np.float64)
        step = math.log(ways / (blocks - ways))
        log_term = d * math.log1p(-ways / blocks)  # of a = 0
        found = np.exp(log_term)
        for a in range(1, ways):
            with np.errstate(divide="ignore"):
                log_term = log_term + np.log(np.maximum(d - a + 1, 0.0) / a) + step
            found += np.exp(log_term)
        found = np.minimum(found, 1.0)
    found[depth < 0] = 0.0
    return np.asarray(found[back].reshape(np.shape(distance)))


def normal_hit_probability(distance: int, ways: int, blocks: int, *, literal: bool = False) -> float:
    """The normal approximation of P(h|D), for distance >= 1: Phi((A - 1 - mu) / sigma).

    literal: with the absolute value that the released code (lanl/PPT, NMSU-PEARL/PPT-GPU) takes of A - 1 - mu, which
    makes hits of distances far beyond the cache.
    """
    _check(ways, blocks)
    mean = distance * ways / blocks
    deviation = math.sqrt(mean * (blocks - ways) / blocks)
    if deviation == 0:
        return 1.0 if distance < ways else 0.0
    score = (ways - 1 - mean) / deviation
    return 0.5 * (1 + math.erf((abs(score) if literal else score) / math.sqrt(2)))


def released_hit_probability(distance: NDArray[np.int64], ways: int, blocks: int) -> NDArray[np.float64]:
    """`hit_probability` as the released code has it, with its absolute value."""
    depth, back = np.unique(np.asarray(distance, np.int64), return_inverse=True)
    values = [
        0.0 if d < 0 else 1.0 if d == 0 else normal_hit_probability(d, ways, blocks, literal=True)
        for d in depth.tolist()
    ]
    return np.asarray(values, np.float64)[back].reshape(np.shape(distance))


def _check(ways: int, blocks: int) -> None:
    if not 1 <= ways <= blocks:
        raise PptError(f"a cache of {blocks} lines with {ways} ways")
