"""Rules that the oracle does not cover: 1.x and 2.x, carve-outs, next steps and errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.scale.occupancy.occupancy import OccupancyLimits, checked_occupancy, theoretical_occupancy

KIB = 1024
GT200 = OccupancyLimits(32, 8, 512, 16384, 512, "block", 124, 2, 16 * KIB, 16 * KIB, 512)
G80 = replace(GT200, max_warps=24, registers=8192, register_unit=256)
FERMI = OccupancyLimits(
    48, 8, 1024, 32768, 64, "warp", 63, 2, 48 * KIB, 48 * KIB, 128,
    carveouts=(16 * KIB, 48 * KIB), unified=64 * KIB, l1_size=16 * KIB, largest_carveout=True,
    wide_register_counts=frozenset((21, 22, 29, 30, 37, 38, 45, 46)),
)  # fmt: skip
KEPLER = OccupancyLimits(64, 16, 1024, 65536, 256, "warp", 255, 4, 48 * KIB, 48 * KIB, 256)
VOLTA = OccupancyLimits(
    64, 32, 1024, 65536, 256, "warp", 255, 4, 96 * KIB, 96 * KIB, 256,
    carveouts=tuple(size * KIB for size in (0, 8, 16, 32, 64, 96)), unified=128 * KIB, l1_size=32 * KIB,
)  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "threads", "registers", "shared", "blocks", "allocated"),
    [
        (G80, 256, 10, 0, 3, 2560),  # 8 warps * 32 * 10 = 2560 registers, a multiple of 256
        (G80, 256, 11, 0, 2, 2816),
        (G80, 96, 10, 0, 6, 1280),  # 3 warps count as 4: 24 / 4 = 6 blocks, 8192 / 1280 = 6
        (GT200, 256, 16, 0, 4, 4096),
        (GT200, 96, 17, 0, 6, 2560),  # 4 * 32 * 17 = 2176 -> 2560 (unit 512); 16384 / 2560 = 6
        (GT200, 64, 8, 2049, 6, 512),  # 2049 B -> 2560 B; 16384 / 2560 = 6
        (FERMI, 192, 20, 0, 8, 3840),
        (FERMI, 96, 63, 0, 5, 6144),  # 2016 -> 2048 a warp: 8 warps in each half = 16; 16 / 3 = 5
        (FERMI, 1024, 21, 0, 1, 24576),  # 672 -> 768 in units of 128: 21 * 2 = 42 warps
        (FERMI, 1024, 20, 0, 1, 20480),
    ],
)
def test_early_generations(
    limits: OccupancyLimits, threads: int, registers: int, shared: int, blocks: int, allocated: int
) -> None:
    found = theoretical_occupancy(limits, threads, registers, shared)
    assert found.blocks_per_sm == blocks
    assert found.registers_per_block == allocated


def test_limiters_are_named() -> None:
    assert theoretical_occupancy(KEPLER, 256, 37, 0).limiters == ("registers",)
    assert theoretical_occupancy(KEPLER, 256, 32, 0).limiters == ("warps", "registers")
    assert theoretical_occupancy(KEPLER, 256, 32, 12288).limiters == ("shared",)
    assert theoretical_occupancy(KEPLER, 32, 16, 0).limiters == ("blocks",)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "text"),
    [
        (256, 37, 0, "37 -> 32 registers per thread: 8 blocks"),
        (256, 32, 12288, "12288 -> 9728 B of shared memory per block: 5 blocks"),
        (256, 40, 8192, "40 -> 32 registers per thread and 8192 -> 6912 B of shared memory per block: 7 blocks"),
        (32, 16, 0, "32 -> 64 threads per block: 16 blocks, 32 warps"),
        (256, 32, 0, ""),
    ],
)
def test_next_step(threads: int, registers: int, shared: int, text: str) -> None:
    assert checked_occupancy(KEPLER, threads, registers, shared).next_step == text


def test_carveout_suffices_for_the_blocks_and_leaves_the_rest_to_the_l1() -> None:
    none = theoretical_occupancy(VOLTA, 256, 32, 0)
    assert (none.carveout, none.l1_bytes) == (0, 128 * KIB)
    some = theoretical_occupancy(VOLTA, 256, 32, 4096)  # 8 blocks * 4 KiB = 32 KiB
    assert (some.blocks_per_sm, some.carveout, some.l1_bytes) == (8, 32 * KIB, 96 * KIB)
    more = theoretical_occupancy(VOLTA, 256, 32, 4097)  # 8 * 4352 B = 34 KiB
    assert (more.blocks_per_sm, more.carveout, more.l1_bytes) == (8, 64 * KIB, 64 * KIB)


def test_fermi_defaults_to_the_largest_carveout() -> None:
    found = theoretical_occupancy(FERMI, 256, 20, 0)
    assert (found.carveout, found.l1_bytes) == (48 * KIB, 16 * KIB)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "what", "hint"),
    [
        (2048, 32, 0, "2048 threads per block", "at most 1024 threads"),
        (256, 300, 0, "300 registers per thread", "at most 255 registers"),
        (256, 32, 50000, "50000 B of shared memory per block", "at most 49152 B"),
        (1024, 65, 0, "registers of 32 warps", "at most 64 registers per thread"),
        (0, 32, 0, "a block of 0 threads", "at least 1"),
        (32, -1, 0, "-1 registers", "neither may be negative"),
    ],
)
def test_a_block_too_big(threads: int, registers: int, shared: int, what: str, hint: str) -> None:
    with pytest.raises(PptError) as caught:
        checked_occupancy(KEPLER, threads, registers, shared, name="K40")
    assert what in str(caught.value) and hint in str(caught.value)


def test_all_excesses_are_shown_at_once() -> None:
    with pytest.raises(InputErrors) as caught:
        checked_occupancy(KEPLER, 2048, 300, 50000)
    assert len(caught.value.errors) == 3


def test_a_block_may_have_fewer_registers_than_an_sm() -> None:
    """GK210 has 131,072 registers, a block of it 65,536 (CUDA C++ Programming Guide, cc 3.7)."""
    gk210 = replace(KEPLER, registers=131072, registers_per_block=65536)
    assert theoretical_occupancy(gk210, 1024, 64, 0).blocks_per_sm == 2
    with pytest.raises(PptError, match="one of K80 may have 65536") as caught:
        checked_occupancy(gk210, 1024, 65, 0, name="K80")
    assert "at most 64 registers per thread" in str(caught.value)
