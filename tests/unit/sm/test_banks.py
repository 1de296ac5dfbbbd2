"""Bank conflicts: the examples of the CUDA guide's figures, by generation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from lower_fixtures import make_gpu

from ppt_gpu.sm.accesses.access import geometry
from ppt_gpu.sm.accesses.banks import BankRule, bank_passes, bank_rule
from ppt_gpu.spec import load_gpu

ALL = 0xFFFFFFFF
MODERN = bank_rule(make_gpu())
KEPLER_8 = bank_rule(make_gpu(capability=(3, 5), bank_width=8))
KEPLER_4 = bank_rule(make_gpu(capability=(3, 5), bank_width=4))
TESLA = bank_rule(make_gpu(capability=(1, 3), banks=16, coalescing="half_warp_1.2"))


def passes(
    rule: BankRule, lanes: Iterable[int], size: int = 4, mask: int = ALL, base: int = 0, atomic: bool = False
) -> int:
    return bank_passes(rule, np.array(list(lanes), np.int64), mask, base, size, atomic)


def stride(elements: int, size: int = 4) -> list[int]:
    return [lane * elements * size for lane in range(32)]


def test_rules_of_the_generations() -> None:
    assert BankRule(32, 4, 128, False, paired=True) == MODERN
    assert BankRule(32, 8, 256, False) == KEPLER_8
    assert BankRule(32, 4, 256, False) == KEPLER_4
    assert BankRule(16, 4, 64, True) == TESLA


@pytest.mark.parametrize("step", [*range(1, 34), 64])
def test_strides_conflict_by_their_common_divisor_with_the_banks(step: int) -> None:
    assert passes(MODERN, stride(step)) == math.gcd(step, 32)


def test_the_same_word_is_shared() -> None:
    assert passes(MODERN, [0] * 32) == 1
    assert passes(MODERN, [lane // 4 * 4 for lane in range(32)]) == 1
    assert passes(MODERN, range(32), size=1) == 1
    assert passes(MODERN, [0, 128] * 16) == 2


def test_wide_words_go_in_halves_and_quarters() -> None:
    assert passes(MODERN, stride(1, 8), size=8) == 2
    assert passes(MODERN, stride(1, 16), size=16) == 4
    assert passes(MODERN, stride(2, 8), size=8) == 4
    assert passes(MODERN, stride(1, 8), size=8, mask=0xFFFF) == 1


def test_pairs_of_lanes_that_read_the_same() -> None:
    """NVIDIA's answer in the developer forum, topic 77228: LDS.128 takes 2 requests instead of 4."""
    paired = BankRule(32, 4, 128, False, paired=True)
    same, next_to, one_between = [0] * 32, [lane // 2 * 16 for lane in range(32)], [lane % 2 * 16 for lane in range(32)]
    for lanes in (same, next_to, one_between):
        assert passes(paired, lanes, size=16) == 2
        assert passes(BankRule(32, 4, 128, False), lanes, size=16) == 4
    assert passes(paired, same, size=8) == 1
    assert passes(paired, [lane // 4 * 4 for lane in range(32)]) == 1
    assert passes(paired, stride(1, 16), size=16) == 4
    assert passes(paired, [lane // 16 * 16 for lane in range(32)], size=16) == 2
    assert passes(paired, [lane // 2 * 512 for lane in range(32)], size=16) == 16


def test_a_narrow_path_takes_several_cycles_for_lanes_that_are_served_together() -> None:
    """Turing: 64 B a clock and SM from an L1 that shares its memory with shared memory (JIA19: 61.8 measured)."""
    turing = bank_rule(load_gpu("t4"))
    assert turing.cycles == 2 and bank_rule(load_gpu("v100")).cycles == 1
    for size in (4, 8, 16):
        assert passes(turing, stride(1, size), size=size) == 2 * passes(MODERN, stride(1, size), size=size)
    assert passes(turing, stride(32)) == 64  # the other SM of the TPC has the path in between
    alone = bank_rule(load_gpu("t4"), both=False)
    assert alone.cycles == 1 and passes(alone, stride(32)) == 32
    assert [geometry(load_gpu("t4"), sms).banks.cycles for sms in (20, 21)] == [1, 2]
    assert passes(turing, [0] * 32) == 2
    assert passes(turing, stride(1), mask=0) == 0
    assert bank_rule(load_gpu("p100")).cycles == 1  # its shared memory is not part of the L1


def test_kepler_banks_deliver_8_bytes() -> None:
    assert passes(KEPLER_8, stride(1, 8), size=8) == 1
    assert passes(KEPLER_4, stride(1, 8), size=8) == 1
    assert passes(KEPLER_8, stride(1, 16), size=16) == 2
    # 4 B words, stride 2: rows of 256 B; conflict-free in both modes. Stride 32 floats: 4-byte mode, one bank,
    # two words a row; 8-byte mode, two banks.
    assert passes(KEPLER_8, stride(2)) == passes(KEPLER_4, stride(2)) == 1
    assert passes(KEPLER_4, stride(32)) == 16
    assert passes(KEPLER_8, stride(32)) == 16


def test_capability_1_serves_half_warps() -> None:
    assert passes(TESLA, stride(1)) == 2
    assert passes(TESLA, stride(2)) == 4
    assert passes(TESLA, stride(16)) == 32
    assert passes(TESLA, [0] * 32) == 2
    # one word is broadcast in each pass, the other banks serve one lane: bytes need 4 passes a half warp
    assert passes(TESLA, range(32), size=1) == 8
    # doubles are two requests with stride 2
    assert passes(TESLA, stride(1, 8), size=8) == 8


def test_atomics_serialise_equal_addresses() -> None:
    assert passes(MODERN, [0] * 32, atomic=True) == 32
    assert passes(MODERN, stride(1), atomic=True) == 1
    assert passes(MODERN, [0, 4] * 16, atomic=True) == 16
    assert passes(TESLA, [0] * 32, atomic=True) == 32


def test_no_active_lane_needs_no_pass() -> None:
    assert passes(MODERN, stride(1), mask=0) == 0
    assert passes(TESLA, stride(1), mask=0) == 0


def test_first_words_of_all_lanes_meet() -> None:
    """GPGPU-Sim counts conflicts of the address that each lane names, over the whole warp, whatever the width."""
    simulated = bank_rule(load_gpu("gpgpusim_qv100"))
    assert passes(simulated, [0] * 32, size=16) == 1  # a broadcast: quarters of a warp would take four
    assert passes(simulated, stride(1, 8), size=8) == 2  # as in halves
    assert passes(simulated, stride(1, 16), size=16) == 4  # as in quarters
    # two words of a bank in the first half of the warp, one of them in the second
    assert passes(BankRule(32, 4, 128, False), [0, 128] * 8 + [0] * 16, size=8) == 3
    assert passes(simulated, [0, 128] * 8 + [0] * 16, size=8) == 2
