"""Cases of validation/coverage/cuda/warp.cu."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng

LANES = np.arange(32)


def small(n: int, high: int = 100, seed: int = 1) -> NDArray[np.int32]:
    """n random integers from 1 to `high`."""
    return rng(seed).integers(1, high, n, dtype=np.int32, endpoint=True)


def by_warp(values: NDArray, function: Callable[[NDArray], NDArray]) -> NDArray:
    """`function` of each warp's 32 values."""
    return np.concatenate([function(warp) for warp in values.reshape(-1, 32)])


def mask(lanes: NDArray[np.bool_]) -> int:
    """Lanes as the bits of a mask."""
    return int((lanes.astype(np.uint64) << LANES.astype(np.uint64)).sum())


@case("warp", 2, 64)
def shuffles() -> Data:
    x = small(128)
    down = np.where(LANES % 16 + 5 < 16, LANES + 5, LANES)
    parts = [LANES * 7 & 31, np.where(LANES >= 3, LANES - 3, LANES), down, LANES ^ 9]
    expected = np.concatenate([by_warp(x, lambda w, s=source: w[s]) for source in parts])  # type: ignore[misc]
    return Data([x, np.zeros(512, np.int32)], {1: expected})


@case("warp", 2, 64)
def shuffle_wide() -> Data:
    x = small(128).astype(np.float64)
    return Data([x, np.zeros(128)], {1: by_warp(x, lambda w: np.full(32, w.sum()))})


@case("warp", 2, 64)
def votes() -> Data:
    x = small(128)

    def vote(w: NDArray) -> NDArray:
        return np.full(32, (mask(w % 2 == 1) + int((w > 90).any()) + 2 * int((w > 3).all())) & 0xFFFFFFFF, np.uint32)

    return Data([x, np.zeros(128, np.uint32)], {1: by_warp(x, vote)})


@case("warp", 2, 64)
def matches() -> Data:
    x = small(128, 9)
    x[64:96] = 5

    def any_(w: NDArray) -> NDArray:
        return np.array([mask(w == v) for v in w], np.uint32)

    all_ = by_warp(x, lambda w: np.full(32, 0, np.uint32))  # every value is below 2^30: all match, mask + 1 wraps to 0
    expected = np.concatenate([by_warp(x, any_), all_, by_warp(x, any_)])
    return Data([x, np.zeros(384, np.uint32)], {1: expected})


@case("warp", 2, 64)
def warp_scan() -> Data:
    x = small(128)
    return Data([x, np.zeros(128, np.int32)], {1: by_warp(x, np.cumsum)})


def _divergent(v: int, thread: int) -> int:
    steps = 0
    start = thread & 1
    while v != 1:
        if v % 3 == 0:
            v //= 3
        elif v & 1:
            v = v // 2 if v > 1000 else 3 * v + 1
        else:
            v >>= 1
        steps += 1
        if steps > 200:
            break
    for i in range((v & 3) + start):
        for j in range(i, 3):
            steps += i * j + 1
    return steps


@case("warp", 2, 64)
def divergence() -> Data:
    x = small(128, 5000)
    expected = np.array([_divergent(int(v), t % 64) for t, v in enumerate(x)], np.int32)
    return Data([x, np.zeros(128, np.int32)], {1: expected})


@case("warp", 2, 64)
def active_lanes() -> Data:
    x = small(128)
    expected = by_warp(x, lambda w: np.where(w & 1, mask(w % 2 == 1), 0).astype(np.uint32))
    return Data([x, np.zeros(128, np.uint32)], {1: expected})


@case("warp", 1, 64)
def lane_masks() -> Data:
    lane = np.tile(LANES, 2).astype(np.uint64)
    bit = np.uint64(1) << lane
    full = np.uint64(0xFFFFFFFF)
    parts = (bit - np.uint64(1), 2 * bit - np.uint64(1), full & ~(2 * bit - np.uint64(1)), full & ~(bit - np.uint64(1)))
    total = sum(np.uint64(k) * part for k, part in zip((1, 3, 5, 7), parts, strict=True))
    total = total + np.uint64(11) * bit + np.uint64(13) * lane + np.uint64(1)
    return Data([np.zeros(64, np.uint32)], {0: (total & full).astype(np.uint32)})


@case("warp", 2, 64)
def spin_lock() -> Data:
    return Data([np.zeros(1, np.int32), np.zeros(1, np.int32)], {0: np.zeros(1, np.int32), 1: np.array([2 * 2016])})


@case("warp", 1, 128)
def producer_consumer() -> Data:
    x = small(32)
    expected = np.tile(x * 2, 3) + np.arange(32, 128)
    return Data([x, np.zeros(96, np.int32)], {1: expected})


@case("warp", 1, 64)
def groups() -> Data:
    x = small(64)
    expected = np.zeros(64, np.int32)
    for start in range(0, 64, 8):
        expected[start : start + 8] = x[start : start + 8].sum() + start // 8
    for start in (0, 32):
        chosen = start + np.flatnonzero(x[start : start + 32] % 3 == 0)
        expected[chosen] += 1000 * len(chosen) + np.arange(len(chosen))
    return Data([x, np.zeros(64, np.int32)], {1: expected})
