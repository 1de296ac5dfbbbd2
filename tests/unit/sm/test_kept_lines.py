"""Which lines others keep in the L2, against an LRU list that all SMs use."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from ppt_gpu.sm.accesses.sharing import Touches, Users, Waves
from ppt_gpu.sm.l2_sharing.l2_che_model import kept_lines, uses

SMS, TABLE, MOMENTS = 16, 256, 400


def touches(line: np.ndarray, sm: np.ndarray, moment: np.ndarray, sms: int, each: float) -> Touches:
    order = np.argsort(sm, kind="stable")
    sectors = np.ones(len(line), np.uint8)
    return Touches(line[order].astype(np.int32), sectors, sm[order].astype(np.int32), moment[order], np.full(sms, each))


def gathers(in_step: bool) -> np.ndarray:
    """[SMs, moments] lines of a table that each SM comes to; in step all to the same ones."""
    random = np.random.default_rng(1).integers(0, TABLE, (1 if in_step else SMS, MOMENTS))
    return np.broadcast_to(random, (SMS, MOMENTS))


def truth(table: np.ndarray, capacity: int) -> float:
    """The share of SM 0's uses of the table that find it, first ones apart; with each goes one of a stream."""
    lru: OrderedDict[tuple[str, int, int], None] = OrderedDict()
    found, seen = [], set()
    for moment in range(MOMENTS):
        for sm in range(SMS):
            line = int(table[sm, moment])
            for name in (("table", 0, line), ("stream", sm, moment)):
                here = name in lru
                if sm == 0 and name[0] == "table":
                    if line in seen:
                        found.append(here)
                    seen.add(line)
                lru[name] = None
                lru.move_to_end(name)
                if len(lru) > capacity:
                    lru.popitem(last=False)
    return float(np.mean(found))


def predicted(table: np.ndarray, capacity: int, sampled: int) -> float:
    """The share of the table's lines that are kept; lines of the stream follow those of the table."""
    moment = np.arange(MOMENTS)
    own = touches(np.concatenate((table[0], TABLE + moment)), np.zeros(2 * MOMENTS, int), np.tile(moment, 2), 1, 1.0)
    lines = TABLE + MOMENTS
    others = touches(
        table[1 : sampled + 1].ravel(), np.repeat(np.arange(sampled), MOMENTS), np.tile(moment, sampled), sampled,
        (SMS - 1) / sampled,
    )  # fmt: skip
    count = np.where(np.arange(lines) < TABLE, float(SMS), 1.0)
    users = Users(count, count, np.zeros(lines))
    kept = kept_lines(np.arange(lines, dtype=np.uint64) * 128, users, own, others, Waves(1, MOMENTS, SMS), capacity)
    assert not kept[TABLE:].any()
    return float(kept[:TABLE].mean())


@pytest.mark.parametrize("capacity", [150, 300, 600, 1200])
@pytest.mark.parametrize("sampled", [SMS - 1, 4])
def test_a_table_that_all_gather_from_at_their_own_times_stays(capacity: int, sampled: int) -> None:
    assert predicted(gathers(False), capacity, sampled) == pytest.approx(truth(gathers(False), capacity), abs=0.15)


def test_what_all_come_to_at_the_same_moment_none_keeps_for_the_next() -> None:
    assert predicted(gathers(True), 600, SMS - 1) == 0.0


def test_a_share_that_holds_all_needs_no_others() -> None:
    assert predicted(gathers(False), 10_000, SMS - 1) == 0.0


def test_uses_count_moments_of_this_sm_and_uses_of_others_at_other_ones() -> None:
    own = touches(np.array([0, 0, 0, 1]), np.zeros(4, int), np.array([5, 5, 7, 5]), 1, 1.0)
    others = touches(np.array([0, 0, 0, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1]), np.array([5, 6, 6, 6, 5, 1]), 2, 3.0)
    mine, theirs = uses(own, others, 3)
    assert mine.tolist() == [2, 1, 0] and theirs.tolist() == [6, 0, 3]
