"""Coalescing: the worked cases of the CUDA guide and of Hong & Kim's appendix."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from ppt_gpu.sm.accesses.coalesce import active_phases, phase_lanes, transactions

ALL = 0xFFFFFFFF


def moved(
    rule: str, lanes: Iterable[int], size: int = 4, mask: int = ALL, base: int = 0, whole: bool = False
) -> list[tuple[int, int]]:
    return transactions(rule, np.array(list(lanes), np.int64), mask, base, size, 128, 32, whole)


def test_half_warp_1_0_in_order_is_one_segment_a_half_warp() -> None:
    assert moved("half_warp_1.0", range(0, 128, 4)) == [(0, 0b0011), (0, 0b1100)]
    assert moved("half_warp_1.0", range(0, 256, 8), size=8) == [(0, 0b1111), (1, 0b1111)]
    assert moved("half_warp_1.0", range(0, 512, 16), size=16) == [(n, 0b1111) for n in range(4)]


def test_half_warp_1_0_inactive_lanes_do_no_harm() -> None:
    assert moved("half_warp_1.0", range(0, 128, 4), mask=0x00080010) == [(0, 0b0011), (0, 0b1100)]


@pytest.mark.parametrize(
    ("lanes", "size"),
    [
        ([4, 0, *range(8, 128, 4)], 4),  # two lanes swapped
        (range(4, 132, 4), 4),  # misaligned
        (range(0, 32), 1),  # bytes never coalesce
        (range(0, 256, 8), 4),  # stride 2
    ],
)
def test_half_warp_1_0_otherwise_one_transaction_a_lane(lanes: Iterable[int], size: int) -> None:
    found = moved("half_warp_1.0", lanes, size=size, mask=0xFFFF)
    assert len(found) == 16
    assert all(mask in (1, 2, 4, 8) for _, mask in found)


def test_half_warp_1_2_reduces_the_segment() -> None:
    assert moved("half_warp_1.2", range(0, 128, 4)) == [(0, 0b0011), (0, 0b1100)]
    assert moved("half_warp_1.2", range(0, 128, 4), mask=0xFF) == [(0, 0b0001)]
    assert moved("half_warp_1.2", [0] * 16 + [36] * 16) == [(0, 0b0001), (0, 0b0010)]
    # from 32 on: 64 B across the middle of the segment cannot be halved
    assert moved("half_warp_1.2", range(32, 160, 4), mask=0xFFFF) == [(0, 0b1111)]


@pytest.mark.parametrize(
    ("stride", "size", "base", "expected"),
    [
        (4, 4, 0, 1),
        (4, 4, 68, 2),  # misaligned across a segment
        (8, 4, 0, 1),
        (128, 4, 0, 16),
        (8, 8, 0, 1),
        (16, 16, 0, 2),
        (1, 1, 0, 1),
    ],
)
def test_half_warp_1_2_counts_of_hong_and_kim(stride: int, size: int, base: int, expected: int) -> None:
    """Algorithm 2 of the appendix (SPEC 1.8), for one half warp."""
    lanes = [lane * stride for lane in range(32)]
    assert len(moved("half_warp_1.2", lanes, size=size, mask=0xFFFF, base=base)) == expected


def test_line_fetches_whole_lines_only_when_asked() -> None:
    assert moved("line", [0] * 32, whole=True) == [(0, 0b1111)]
    assert moved("line", [0] * 32) == [(0, 0b0001)]


def test_line_splits_wide_words_into_requests() -> None:
    """All lanes at one address: 8 B words are two requests, 16 B words four, each with its own transaction."""
    for size, requests in ((4, 1), (8, 2), (16, 4), (32, 8)):
        assert len(moved("line", [0] * 32, size=size)) == requests
        assert moved("sector", [0] * 32, size=size)[0][0] == 0
        assert len(moved("sector", [0] * 32, size=size)) == 1


def test_sector_masks() -> None:
    assert moved("sector", range(0, 128, 4), base=64) == [(0, 0b1100), (1, 0b0011)]
    assert moved("sector", [0, 96] * 16) == [(0, 0b1001)]
    assert moved("sector", range(0, 32 * 128, 128)) == [(n, 1) for n in range(32)]


def test_addresses_below_the_base() -> None:
    assert moved("sector", range(0, -128, -4)) == [(0, 0b0001), (-1, 0b1111)]


def test_no_active_lane_moves_nothing() -> None:
    for rule in ("half_warp_1.0", "half_warp_1.2", "line", "sector"):
        assert moved(rule, range(32), mask=0) == []


def test_phases() -> None:
    assert [phase_lanes(size) for size in (1, 4, 8, 16, 32)] == [32, 32, 16, 8, 4]
    assert active_phases(ALL, 8) == 4
    assert active_phases(0x0000FF01, 8) == 2
    assert active_phases(0x80000000, 16) == 1


def test_segments_of_narrow_words() -> None:
    """GPGPU-Sim's Fermi: bytes in segments of 32 B, 2 B words of 64 B, all others of a line; the whole warp at once."""
    lanes = range(0, 128, 4)
    assert moved("segment", lanes) == [(0, 0b1111)]
    assert moved("segment", lanes, size=2) == [(0, 0b0011), (0, 0b1100)]
    assert moved("segment", lanes, size=1) == [(0, 1 << n) for n in range(4)]
    assert moved("segment", range(0, 32), size=1) == [(0, 0b0001)]
    assert moved("segment", lanes, size=1, whole=True) == [(0, 0b1111)] * 4  # each asks the L1 for its line
    assert moved("segment", [0, 8] * 16, size=8) == [(0, 0b0001)]  # not by half warps


def test_segments_of_vectors_are_those_of_their_words() -> None:
    four = np.arange(32) * 4
    assert transactions("segment", four, ALL, 0, 4, 128, 32, False, word=1) == [(0, 1 << n) for n in range(4)]
    assert transactions("segment", four, ALL, 0, 4, 128, 32, False, word=4) == [(0, 0b1111)]
