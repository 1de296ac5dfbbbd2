"""Cases of validation/coverage/cuda/hopper.cu."""

from __future__ import annotations

import numpy as np

from ppt_gpu.validate.coverage.case import Data, case, rng
from ppt_gpu.validate.coverage.half import bf16


@case("hopper", 8, 32)
def cluster_sums() -> Data:
    x = rng(1).integers(0, 1000, 256, dtype=np.int32)
    part = x.reshape(2, 4, 32)
    sums = part.sum(axis=1, keepdims=True) + part + 1000 * (np.arange(32) == 0)
    return Data([x, np.zeros(256, np.int32)], {1: sums})


@case("hopper", 1, 64)
def bulk_copy() -> Data:
    x = rng(2).integers(0, 1000, 512, dtype=np.int32)
    return Data([x, np.zeros(512, np.int32), 512], {1: x + np.repeat([1, 2], 256)})


@case("hopper", 1, 64)
def elected() -> Data:
    return Data([np.zeros(64, np.uint32)], {0: np.full(64, 101)})


@case("hopper", 1, 32)
def stored_matrix() -> Data:
    x = rng(3).integers(0, 2**16, (8, 8), dtype=np.uint16)
    return Data([x, np.zeros_like(x)], {1: x.T.copy()})


@case("hopper", 1, 64)
def bf16_atomics() -> Data:
    x = rng(4).integers(-3, 4, 64).astype(np.float32)
    total = np.float32(x.sum())
    args = [x, np.zeros(2, np.uint16), np.zeros(2, np.uint16), np.zeros(2, np.float16)]
    return Data(args, {1: bf16([total, 0]), 2: bf16([total, -total]), 3: np.array([total, 0])})


@case("hopper", 2, 64)
def grid_dependency() -> Data:
    x = rng(5).integers(0, 1000, 128, dtype=np.int32)
    return Data([x, np.zeros(128, np.int32)], {1: x + 1})
