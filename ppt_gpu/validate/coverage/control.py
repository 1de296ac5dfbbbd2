"""Cases of validation/coverage/cuda/control.cu."""

from __future__ import annotations

import numpy as np

from ppt_gpu.validate.coverage.case import Data, case, rng


@case("control", 2, 32)
def calls() -> Data:
    x = rng(1).integers(-8, 9, 64).astype(np.float32)
    y = (2 * x + 1) * x
    y = np.where(np.arange(64) & 1, (y * x + np.float32(0.5)) * y, y)
    return Data([x, np.zeros(64, np.float32)], {1: 2 * y - 2 * x})


def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


@case("control", 1, 64)
def recursion() -> Data:
    x = rng(2).integers(0, 100, 64, dtype=np.int32)
    expected = [(2 * (int(v) & 3) + 3) * 1000 + _fibonacci(int(v) & 7) for v in x]  # Ackermann(2, n) = 2 n + 3
    return Data([x, np.zeros(64, np.int32)], {1: np.array(expected)})


@case("control", 1, 64)
def function_pointers() -> Data:
    x = rng(3).integers(0, 100, 64, dtype=np.int32)
    return Data([x, np.zeros(64, np.int32)], {1: np.choose(x % 3, [x + 7, x - 7, x * 7])})


@case("control", 1, 64)
def virtual_functions() -> Data:
    x = rng(4).integers(0, 100, 64, dtype=np.int32)
    return Data([x, np.zeros(64, np.int32)], {1: np.where(x & 1, x * x, 3 * x)})


def _jumped(v: int) -> int:
    r = [11, v + 5, v * 3, -v][v & 3]
    case_ = v % 9
    if case_ == 0:
        return r + 5
    if case_ == 1:
        return r * 3 - 4
    if case_ == 2:
        return r - 4
    if case_ == 3:
        return r ^ 77
    if case_ == 4:
        return int(r / 3) + 1
    if case_ == 5:
        return r * 2
    if case_ == 6:
        return -r + v
    return r + v if case_ == 7 else 1


@case("control", 2, 32)
def jump_table() -> Data:
    x = rng(5).integers(0, 1000, 64, dtype=np.int32)
    return Data([x, np.zeros(64, np.int32)], {1: np.array([_jumped(int(v)) for v in x])})


def _irregular(v: int, n: int) -> int:
    r = 0
    for i in range(n):
        if v == i:
            return r + 1
        if v ^ i == 9:
            continue
        if i * i > v:
            r -= 2
            break
        r += i
        if r > 40:
            return -r
    return r * 10 + 1


@case("control", 2, 64)
def irregular() -> Data:
    x = rng(6).integers(0, 150, 128, dtype=np.int32)
    return Data([x, np.zeros(128, np.int32), 12], {1: np.array([_irregular(int(v), 12) for v in x])})


@case("control", 3, 64)
def block_votes() -> Data:
    x = rng(7).integers(0, 90, 192, dtype=np.int32)
    x[5], x[70] = 95, 950
    blocks = x.reshape(3, 64)
    votes = (blocks & 1).sum(axis=1) * 4 + (blocks < 900).all(axis=1) * 2 + (blocks > 90).any(axis=1)
    return Data([x, np.zeros(192, np.int32)], {1: np.repeat(votes, 64)})


@case("control", 1, 128)
def named_barriers() -> Data:
    x = rng(8).integers(0, 1000, 128, dtype=np.int32)
    warps = np.stack([np.zeros(32, np.int32), x[:32][::-1] + 1, np.full(32, 2, np.int32), x[64:96][::-1] + 1])
    return Data([x, np.zeros(128, np.int32)], {1: warps + 100})


@case("control", 1, 64)
def prints() -> Data:
    x = rng(9).integers(0, 10, 64, dtype=np.int32)
    return Data([x, np.zeros(64, np.int32)], {1: x + 1})


@case("control", 2, 32)
def clocks() -> Data:
    return Data([np.zeros(64, np.int64)], {0: np.full(64, 15)})


@case("control", (2, 3, 2), (4, 2, 4))
def three_dimensions() -> Data:
    block = np.arange(12)[:, None]
    thread = np.arange(32)[None, :]
    expected = block % 2 + 10 * (block // 2 % 3) + 100 * (block // 6)
    expected = expected + 1000 * (thread % 4) + 10000 * (thread // 4 % 2) + 100000 * (thread // 8)
    return Data([np.zeros(384, np.int32)], {0: expected})
