"""Cases of validation/coverage/cuda/memory.cu."""

from __future__ import annotations

import numpy as np

from ppt_gpu.frontends.texture_argument import ArrayTexture
from ppt_gpu.validate.coverage.case import Data, case, rng


@case("memory", 2, 32)
def vectors() -> Data:
    g = rng(1)
    a = g.integers(0, 100, (64, 4)).astype(np.float32)
    b = g.integers(0, 256, (64, 4), dtype=np.uint8)
    c = g.integers(-100, 100, (64, 2), dtype=np.int16)
    d = g.integers(-100, 100, (64, 2)).astype(np.float64)
    out = np.stack([a[:, 3] + c[:, 0], a[:, 2] - c[:, 1], d[:, 0], d[:, 1]], axis=1).astype(np.float32)
    plus = (b[:, 0].astype(int) + 1).astype(np.uint8)
    data = np.stack([b[:, 3], plus, b[:, 2], b[:, 1]], axis=1)
    return Data([a, b, c, d, np.zeros_like(a), np.zeros_like(b)], {4: out, 5: data})


@case("memory", 2, 64, dynamic_shared=64 * 16)
def dynamic_shared() -> Data:
    pairs = np.zeros(128, [("first", "f4"), ("second", "i4")])
    pairs["first"] = rng(2).integers(0, 100, 128)
    pairs["second"] = rng(3).integers(-100, 100, 128)
    t = np.arange(64)
    expected = []
    for block in pairs.reshape(2, 64):
        other = block[(t + 1) % 64]
        scaled = other["first"] * ((t & 3) + np.float32(0.5)).astype(np.float32)
        expected.append(2.0 * (63 - t) + scaled.astype(np.float64) + other["second"])
    return Data([pairs, np.zeros(128), 128], {1: np.concatenate(expected)})


@case("memory", (2, 2), (32, 8))
def transpose() -> Data:
    x = rng(4).random((64, 64), dtype=np.float32)
    return Data([x, np.zeros_like(x), 64], {1: x.T.copy()})


@case("memory", 3, 64)
def constants() -> Data:
    x = rng(5).integers(-50, 50, 192).astype(np.float32)
    taps = np.array([1, -2, 3, -4, 5, -4, 3, -2, 1], np.float32)
    sizes = np.array([10, 200, 3000, 40000], np.int32)
    expected = np.convolve(x, taps, mode="same") + sizes[np.arange(192) & 3]
    return Data([x, np.zeros(192, np.float32), 192], {1: expected.astype(np.float32)}, {"sizes": sizes})


@case("memory", 1, 32)
def module_variables() -> Data:
    t = np.arange(32)
    counters = np.array([10, 20, 30, 40], np.int32)
    table = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    expected = counters[t & 3] + table[t & 7] + table[4 + (t & 3)] + 12
    return Data([np.zeros(32, np.int32)], {0: expected, "counters": counters + np.arange(4, dtype=np.int32)})


@case("memory", 1, 64)
def struct_by_value() -> Data:
    data = rng(6).integers(0, 100, 64).astype(np.float32)
    table = np.array([5, -4, 3, -2, 1], np.int16)
    settings = (np.float32(2), np.int32(-7), np.float64(0.5), *table, np.uint8(1), data)
    expected = 2 * data - 7 + np.float32(0.5) + table[np.arange(64) % 5] + 65
    return Data([settings, np.int8(65), np.zeros(64, np.float32)], {2: expected.astype(np.float32)})


@case("memory", 1, 64)
def local_arrays() -> Data:
    x = rng(7).integers(-1000, 1000, (64, 24), dtype=np.int32)
    expected = np.sort(x, axis=1)
    for t in range(64):
        text = np.zeros(16, np.uint8)
        for i in range(16):
            text[i * 5 + t & 15] = i + t
        expected[t, 0] += text.view(np.int32)[t & 3]
    return Data([x, np.zeros_like(x)], {1: expected})


@case("memory", 1, 64)
def generic_addresses() -> Data:
    x = rng(8).integers(0, 100, 64, dtype=np.int32)
    t = np.arange(64)
    own = np.where(x[0] & 1, -5, t)
    expected = np.where(t % 3 == 0, x * 8 + 1, np.where(t % 3 == 1, x[63 - t] * 24 + 2, own * 8 + 4))
    return Data([x, np.zeros(64, np.int32)], {1: expected})


@case("memory", 1, 64)
def hints() -> Data:
    x = rng(9).integers(0, 100, 64).astype(np.float32)
    wide = rng(10).integers(0, 100, (64, 4), dtype=np.int32)
    return Data([x, wide, np.zeros(64, np.float32), np.zeros_like(wide)], {2: 6 * x + 1, 3: wide})


@case("memory", 2, 64)
def texture_lines() -> Data:
    line = rng(11).random(64, dtype=np.float32)
    return Data([ArrayTexture(line), np.zeros(128, np.float32)], {1: line[np.arange(128) * 5 % 64]})


@case("memory", (2, 2), (16, 8), tolerance=1e-6)
def texture_planes() -> Data:
    plane = rng(12).integers(0, 256, (12, 20, 4), dtype=np.uint8)
    volume = rng(13).integers(-100, 100, (4, 6, 8), dtype=np.int16)
    y, x = np.mgrid[:16, :32]
    texels = plane[y % 12, x % 20].astype(np.float64) / 255  # 0.5 is the middle of the first texel
    inside = volume[np.minimum(y % 5, 3), np.minimum(y, 5), np.minimum(x, 7)]
    args = [ArrayTexture(plane, channels=4, address="wrap", normalized=True, unorm=True), ArrayTexture(volume)]
    expected = texels[..., 0] + 2 * texels[..., 1] + 4 * texels[..., 2] + 8 * texels[..., 3]
    out = [np.zeros((16, 32), np.float32), np.zeros((16, 32), np.int32)]
    return Data([*args, *out], {2: expected.astype(np.float32), 3: inside})
