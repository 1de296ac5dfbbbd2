"""What the L2 holds before an SM asks: host copies and the lines of other SMs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.sm.accesses.sharing import (
    Touched,
    Touches,
    Waves,
    areas,
    fetched_by_others,
    rising_order,
    sectors_used,
    settled,
    share_factor,
    sharers,
    taken,
    while_kept,
)
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.program.program import Program
from ppt_gpu.workload.workload import Range

LINES = np.arange(64, dtype=np.uint64) * np.uint64(128)


def warm(ranges: list[Range], capacity: int) -> list[int]:
    left = LeftLines.copied(ranges, capacity // 128, 128)
    return np.flatnonzero(left.places(LINES) < len(left.address)).tolist()


@pytest.mark.parametrize("run", [1, 3, 256, 1000])
def test_transactions_in_the_order_of_their_sms(run: int) -> None:
    values = np.repeat(np.random.default_rng(run).integers(0, 5, 3000 // run), run).astype(np.int32)
    order = np.argsort(values, kind="stable")
    place = np.arange(len(values))
    assert np.array_equal(taken(place, rising_order(values, 5)), order)
    assert np.array_equal(taken(place, rising_order(np.sort(values), 5)), place)
    assert taken(place[:0], rising_order(values[:0], 5)).tolist() == []


def test_copies_stay_last_first_and_by_their_ends() -> None:
    first, second = Range("a", 0, 1024, True), Range("b", 1024, 1024, True)
    assert warm([first, second], 1 << 20) == list(range(16))
    assert warm([first, second], 1024 + 256) == list(range(6, 16))
    assert warm([second, first], 1024) == list(range(8))
    assert warm([first, second], 1000) == list(range(9, 16))  # the line that fits in part is gone
    assert warm([Range("a", 0, 1024, False)], 1 << 20) == []


def test_partial_lines_at_the_ends_of_a_buffer() -> None:
    assert warm([Range("a", 64, 128, True)], 1 << 20) == [0, 1]


def test_users_of_a_line() -> None:
    """Line 0 is touched by both sampled SMs, line 1 by one (twice), line 2 by none; line 3 by halves, and elsewhere."""
    rows = [
        (0, 0b1111, 0), (128, 0b0001, 0), (128, 0b1110, 0), (4096, 1, 0), (384, 0b0111, 0), (384, 0b0110, 0),
        (384, 0b1100, 1), (0, 0b1111, 1),
    ]  # fmt: skip
    others = Touched(
        np.array([row[0] for row in rows], np.uint64),
        np.array([row[1] for row in rows], np.uint8),
        np.array([row[2] for row in rows], np.int32),
        np.zeros(len(rows), np.int64),
        np.array([4.0, 4.0]),
    )
    used = np.array([0b1111, 0b1111, 0b1111, 0b0011], np.uint8)
    users = sharers(used, others.on(LINES[:4]), 9)
    assert users.sectors.tolist() == [9.0, 5.0, 1.0, 5.0]
    assert users.line.tolist() == [9.0, 5.0, 1.0, 9.0]  # both SMs use some of line 3, which is stored once
    assert share_factor(users.line) == pytest.approx(4 / (1 / 9 + 1 / 5 + 1 + 1 / 9))
    near_and_far = replace(others, stands_for=np.array([1.0, 9.0]))
    users = sharers(used, near_and_far.on(LINES[:4]), 9)
    assert users.sectors.tolist() == [9.0, 2.0, 1.0, 2.0]
    assert users.line.tolist() == [9.0, 2.0, 1.0, 9.0]


def test_shares_of_lines_that_are_touched_at_random_are_the_same() -> None:
    """Each of 80 SMs touches a tenth of the lines: of six sampled ones, half of the lines see none."""
    sample = np.random.default_rng(1).binomial(6, 0.1, 20_000) / 6
    found = settled(sample, 6, np.zeros(len(sample), np.int64))
    assert found.mean() == pytest.approx(sample.mean())
    assert (1 - 1 / (1 + 74 * sample)).mean() < 0.6  # which is what was taken to be warm, line by line
    assert (1 - 1 / (1 + 74 * found)).mean() == pytest.approx(1 - 1 / 8.4, abs=0.01)


def test_lines_of_all_and_of_one_stay_apart() -> None:
    share = np.repeat([0.0, 1.0], [300, 100])
    assert settled(share, 6, np.zeros(400, np.int64)).tolist() == share.tolist()
    mixed = np.concatenate((share, np.random.default_rng(2).binomial(6, 0.1, 5_000) / 6))
    area = np.repeat([0, 1], [400, 5_000])  # of another buffer they learn nothing
    assert settled(mixed, 6, area)[:400].tolist() == share.tolist()
    assert settled(mixed, 6, area)[400:].std() < 0.02


def test_lines_that_differ_keep_as_much_of_their_own_share_as_is_no_chance() -> None:
    random = np.random.default_rng(3)
    true = random.beta(2, 6, 50_000)
    sample = random.binomial(6, true) / 6
    found = settled(sample, 6, np.zeros(len(sample), np.int64))
    assert ((found - true) ** 2).mean() < 0.6 * ((sample - true) ** 2).mean()


def test_areas_are_buffers() -> None:
    ranges = (Range("b", 1024, 1024, False), Range("a", 0, 1024, False))
    assert areas(LINES[[0, 7, 8, 15, 16]], ranges).tolist() == [1, 1, 2, 2, 2]
    assert areas(LINES[:2], ()).tolist() == [0, 0]


def test_sectors_used() -> None:
    used = sectors_used(np.array([1, 0, 1], np.int32), np.array([1, 2, 4], np.uint8), 3)
    assert used.tolist() == [2, 5, 0]


@pytest.mark.parametrize("k", [1.0, 2.0, 8.0, 80.0])
def test_one_of_k_users_fetches(k: float) -> None:
    lines = np.arange(100_000, dtype=np.uint64) * np.uint64(128)
    cold = 1.0 - fetched_by_others(lines, np.full(len(lines), k)).mean()
    assert cold == pytest.approx(1 / k, rel=0.06)


KERNEL = code(("ld.global.f32", [0], [1]), ("ld.global.f32", [2], [1]))


def program(blocks: list[int], others: list[int] | None, **keywords: object) -> Program:
    """Block b reads one line of its own, and line 0."""
    gpu = make_gpu()

    def trace(ids: list[int]) -> object:
        own = [([0, 1], [(1 << 20, UNIT, 0), ((1 << 21) + 128 * b, UNIT, 0)]) for b in ids]
        return make_trace(KERNEL, own, blocks=ids)  # type: ignore[arg-type]

    return lower_trace(
        KERNEL, trace(blocks), gpu, launch=make_launch(32, 64), active_sms=8,  # type: ignore[arg-type]
        neighbours=None if others is None else global_accesses(KERNEL, trace(others)), **keywords,  # type: ignore[arg-type]
    )  # fmt: skip


def test_neighbours_share_the_common_line() -> None:
    """Blocks 1, 9 run on SM 1 and 2, 10 on SM 2: both touch the common line, so all 8 SMs use it; k = 1 elsewhere."""
    found = program([0, 8, 16], [1, 2, 9, 10])
    assert len(found.line_address) == 4
    assert found.l2_share_factor == pytest.approx(4 / (3 + 1 / 8))
    assert found.line_warm[1:].tolist() == [0, 0, 0]
    assert program([0, 8, 16], None).line_warm.tolist() == [0, 0, 0, 0]


def test_the_sm_of_a_neighbour_can_be_given() -> None:
    """One sampled SM of two touches block 8's own line: k = 1 + 7/2."""
    found = program([0, 8], [8, 2], neighbour_sm=np.array([3, 5]))
    assert found.l2_share_factor == pytest.approx(3 / (1 / 8 + 1 + 1 / 4.5))


@pytest.mark.parametrize(("reads", "writers"), [(False, 2.0), (True, 1.0)])
def test_sectors_that_several_sms_write_are_written_back_once(reads: bool, writers: float) -> None:
    """Blocks 0 to 7 on as many SMs: each pair writes one sector. A sector that is read, too, may have other users."""
    read = ("ld.global.f32", [0], [1])
    kernel = code(*([read] if reads else []), ("st.global.f32", [1], [0]))

    def trace(ids: list[int]) -> object:
        half = [(1 << 20, [16 * b + 4 * (lane % 4) for lane in range(32)], 0) for b in ids]
        own = [([*range(1 + reads)], [each] * (1 + reads)) for each in half]
        return make_trace(kernel, own, blocks=ids)  # type: ignore[arg-type]

    found = lower_trace(
        kernel, trace([0]), make_gpu(), launch=make_launch(8, 64), active_sms=8,  # type: ignore[arg-type]
        neighbours=global_accesses(kernel, trace([*range(1, 8)])),
    )  # fmt: skip
    assert found.l2_writers == writers


def kept(capacity: float, moments: list[int]) -> list[int]:
    """Of two other SMs of four, which touch line k of 8 at `moments[k]`, the lines that count. This SM touches two new
    lines in each of four waves of 10 moments."""
    first = np.repeat(np.arange(4) * 10, 2)
    line = np.tile(np.arange(8, dtype=np.int32), 2)
    sm = np.repeat(np.array([0, 1], np.int32), 8)
    others = Touches(line, np.full(16, 15, np.uint8), sm, np.tile(np.array(moments), 2), np.full(2, 1.5))
    found = while_kept(np.full(8, 15, np.uint8), others, first, Waves(4, 10, 4), capacity, np.zeros(8, np.int64))
    assert found.line.tolist()[: len(found.line) // 2] == found.line.tolist()[len(found.line) // 2 :]
    return sorted(set(found.line.tolist()))


def test_lines_that_others_touched_long_ago_are_gone() -> None:
    """Nobody shares in a wave: eight new lines in each, so that 16 last for two waves."""
    early = [-10, 10, -15, -5, -1, 0, 11, 9]  # 10, 10, 25, 15, 21, 20, 19, 21 moments before
    assert kept(32, early) == list(range(8))  # all that is touched fits
    assert kept(16, early) == [0, 1, 3, 5, 6]
    assert kept(8, early) == [0, 1]
    assert kept(16, [10, 25, 30, 31, 40, 41, 51, 50]) == [
        0,
        2,
        4,
        7,
    ]  # not there yet


def test_shared_lines_last_longer() -> None:
    """Six of the lines are everybody's in the same wave: three and a half new ones in each, so 10 last for 28.6."""
    assert kept(16, [0, 0, 10, 10, 20, 20, 0, 0]) == list(range(8))
    assert kept(10, [0, 0, 10, 10, 20, 20, 0, 0]) == list(range(6))
