"""Cases of validation/coverage/cuda/atomic.cu."""

from __future__ import annotations

import numpy as np

from ppt_gpu.validate.coverage.case import Data, case, rng


@case("atomic", 4, 64)
def atomics_32() -> Data:
    x = rng(2).integers(0, 2**32, 256, dtype=np.uint32)
    out = np.array([5, 7, 2**31, 3, 2**32 - 1, 0, 9, 90, 3], np.uint32)
    wrap = out[8]
    for _ in range(256):
        wrap = 1000 if wrap == 0 or wrap > 1000 else wrap - 1
    expected = np.array(
        [
            (5 + int(x.sum(dtype=np.uint64))) % 2**32, (7 - int(x.sum(dtype=np.uint64))) % 2**32, min(x.min(), 2**31),
            max(x.max(), 3), np.bitwise_and.reduce(x | np.uint32(0xFF00FF00)), np.bitwise_or.reduce(x),
            np.bitwise_xor.reduce(x) ^ np.uint32(9), (90 + 256) % 100, wrap,
        ],
        np.uint32,
    )  # fmt: skip
    signed = np.array([4, 4], np.int32)
    ends = np.array([min(4, x.view(np.int32).min()), max(4, x.view(np.int32).max())], np.int32)
    return Data([x, out, signed], {1: expected, 2: ends})


@case("atomic", 4, 64)
def atomics_64() -> Data:
    x = rng(3).integers(0, 2**64, 256, dtype=np.uint64)
    out = np.array([5, 2**63, 3, 2**64 - 1, 0, 9], np.uint64)
    total = (5 + sum(int(v) for v in x)) % 2**64
    low = np.uint64(0xFFFFFFFF00000000)
    expected = [total, min(x.min(), out[1]), max(x.max(), out[2]), np.bitwise_and.reduce(x | low)]
    expected += [np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x) ^ np.uint64(9)]
    y = x.view(np.int64)
    signed = np.array([min(4, y.min()), max(4, y.max())], np.int64)
    return Data([x, out, np.array([4, 4], np.int64)], {1: np.array(expected, np.uint64), 2: signed})


@case("atomic", 2, 64)
def atomics_float() -> Data:
    x = rng(4).integers(-8, 9, 128).astype(np.float32)
    sums = x.reshape(-1, 16).sum(axis=0)
    halves = np.stack([sums, -sums], axis=1).astype(np.float16)
    args = [x, np.array([0.5], np.float32), np.array([0.25]), np.zeros(32, np.float16)]
    return Data(args, {1: np.array([0.5 + x.sum()], np.float32), 2: np.array([0.25 + x.sum()]), 3: halves.reshape(-1)})


@case("atomic", 3, 64)
def tickets() -> Data:
    last = np.array([2**32 - 1, 2**32 - 1, 0, 0], np.uint32)
    args = [np.zeros(1, np.uint32), np.zeros(192, np.uint32), last]
    return Data(args, {0: np.array([192], np.uint32), 1: np.ones(192, np.uint32)})


@case("atomic", 4, 64)
def cas_float_max() -> Data:
    x = rng(5).random(256, dtype=np.float32)
    return Data([x, np.zeros(1, np.float32)], {1: np.array([x.max()])})


def _repeated(value: int, times: int, bits: int, factor: int, step: int) -> int:
    for _ in range(times):
        value = (value * factor + step) % (1 << bits)
    return value


@case("atomic", 1, 64)
def cas_64() -> Data:
    return Data([np.array([7], np.uint64)], {0: np.array([_repeated(7, 64, 64, 3, 1)], np.uint64)})


@case("atomic", 1, 64)
def cas_16() -> Data:
    return Data([np.array([65500, 17], np.uint16)], {0: np.array([_repeated(65500, 64, 16, 1, 3), 17], np.uint16)})


@case("atomic", 3, 256)
def histogram() -> Data:
    x = (rng(6).standard_normal(5000) * 30 + 128).astype(np.uint8)
    return Data([x, np.zeros(256, np.uint32), 5000], {1: np.bincount(x, minlength=256).astype(np.uint32)})


@case("atomic", 3, 64)
def scopes() -> Data:
    x = rng(7).integers(1, 1000, 192, dtype=np.int32)
    expected = np.array([x.sum(), *x.reshape(3, 64).max(axis=1)], np.int32)
    return Data([x, np.zeros(4, np.int32)], {1: expected})


@case("atomic", 5, 128)
def last_block() -> Data:
    x = rng(8).integers(0, 100, 640).astype(np.float32)
    args = [x, np.zeros(5, np.float32), np.zeros(1, np.uint32), np.zeros(1, np.float32)]
    return Data(args, {1: x.reshape(5, 128).sum(axis=1), 2: np.zeros(1, np.uint32), 3: np.array([x.sum()])})
