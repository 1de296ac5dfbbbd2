"""Bit scans of the compiled loop."""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.bits import NO_KEY, ctz, least_of, pointer, quotient, rotated
from ppt_gpu.common.compiled import entry, popcount

ctz_of = entry(lambda value: ctz(value))
popcount_of = entry(lambda value: popcount(value))
quotient_of = entry(lambda value, divisor: quotient(value, divisor))
rotated_of = entry(lambda value, places: rotated(value, places))
least = entry(lambda keys, offset, mask: least_of(pointer(keys), offset, mask))


def test_scans() -> None:
    for bit in range(64):
        value = np.int64(np.uint64(1 << bit).view(np.int64))
        assert ctz_of(value) == bit and popcount_of(value) == 1
    assert popcount_of(np.int64(-1)) == 64 and popcount_of(np.int64(0)) == 0 and ctz_of(np.int64(-8)) == 3


def test_rotation_and_quotient() -> None:
    for value, places in ((0b1001, 0), (0b1001, 1), (0b1001, 67), (-8, 3), (1, 64)):
        bits, right = value % (1 << 64), places % 64
        turned = (bits >> right | bits << (64 - right)) % (1 << 64)
        assert rotated_of(np.int64(value), np.int64(places)) % (1 << 64) == turned
    for value, divisor in ((0, 1), (7, 8), (1 << 60, 3), (12345678901, 12345)):
        assert quotient_of(np.int64(value), np.int64(divisor)) == value // divisor


def test_least_of_the_chosen_keys() -> None:
    keys = np.random.default_rng(5).permutation(64).astype(np.int64)
    for mask in (0b1, 0b1000_0000_0000_0000, 0b1011, 0xFFFF, 0x10001):
        chosen = [keys[32 + bit] for bit in range(16) if mask >> bit & 1]
        assert least(keys, np.int64(32), np.int64(mask)) == min(chosen)
    assert least(keys, np.int64(0), np.int64(0)) == NO_KEY
