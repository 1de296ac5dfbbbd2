"""Lines that several SMs ask for at once: one fetches them, all wait."""

from __future__ import annotations

import numpy as np
import pytest
from lower_fixtures import UNIT, code, make_gpu, make_launch, make_trace

from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.sm.accesses.sharing import Touched, Users, sharers
from ppt_gpu.sm.l2_sharing.access_epochs import Course
from ppt_gpu.sm.l2_sharing.in_flight import NEVER, by_others, first_moments
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.program.program import COLD, WARM, Program

LOAD = "ld.global.f32"
#: a load, another one beside it, a use of both, a load, its use
KERNEL = code((LOAD, [0], [1]), (LOAD, [2], [1]), ("add.f32", [3], [0, 2]), (LOAD, [4], [1]), ("add.f32", [3], [3, 4]))
TABLE = (1 << 20) + 256  # by its hash, it is for others to fetch
SMS = 8


def program(place: int, others_place: int, *, waves: int = 1, others_wave: int = 0, resident: int = 1) -> Program:
    """Block b reads lines of its own, and as its access number `place` one line that all read, of 8 SMs. The other SMs
    read it as their number `others_place`, in wave `others_wave`; this one in the last of `waves`."""

    def trace(blocks: list[int], place: int, wave: int) -> object:
        def warp(block: int) -> tuple[list[int], list]:
            bases = [(1 << 21) + 128 * (4 * block + number) for number in range(3)]
            if block // SMS // resident == wave:
                bases[place] = TABLE
            return list(range(5)), [(base, UNIT, 0) for base in bases]

        return make_trace(KERNEL, [warp(block) for block in blocks], blocks=blocks)

    turns = [SMS * turn for turn in range(waves * resident)]
    others = trace([turn + sm for sm in range(1, SMS) for turn in turns], others_place, others_wave)
    return lower_trace(
        KERNEL, trace(turns, place, waves - 1), make_gpu(), launch=make_launch(32, 64), active_sms=SMS,  # type: ignore[arg-type]
        neighbours=global_accesses(KERNEL, others), resident=resident,  # type: ignore[arg-type]
    )  # fmt: skip


#: what is there of a line that another SM is fetching
COMING = "coming"


def table(found: Program) -> int | str:
    """What this SM finds of the common line; of its own ones it fetches all."""
    common = found.line_address == TABLE
    used = int(np.bitwise_or.reduce(found.tx_sectors[common[found.tx_line]]))
    assert common.sum() == 1 and not (found.line_warm[~common][:, None] & used).any()
    there, coming = int(found.line_warm[common][0]) & used, int(found.line_coming[common][0]) & used
    assert there in (0, used) and coming in (0, there)
    return COMING if coming else WARM if there else COLD


@pytest.mark.parametrize(("place", "others_place"), [(0, 0), (0, 1), (1, 0), (2, 2)])
def test_lines_asked_for_before_a_wait_are_on_their_way_together(place: int, others_place: int) -> None:
    assert table(program(place, others_place)) == COMING


@pytest.mark.parametrize("place", [0, 1])
def test_who_comes_before_all_others_fetches(place: int) -> None:
    assert table(program(place, 2)) == COLD


@pytest.mark.parametrize("others_place", [0, 1])
def test_a_line_that_others_have_waited_for_is_there(others_place: int) -> None:
    assert table(program(2, others_place)) == WARM


def test_a_line_of_an_earlier_wave_is_there() -> None:
    assert table(program(0, 2, waves=2, others_wave=0)) == WARM
    assert table(program(2, 0, waves=2, others_wave=1)) == WARM
    assert table(program(0, 2, waves=2, others_wave=1)) == COLD
    assert table(program(2, 2, waves=1, resident=2)) == COMING


def test_moments_of_blocks_are_those_of_the_same_instructions() -> None:
    """Two blocks, the one of turn 1 first: it comes to 0 and 2 twice, to 5 never; the one of turn 0 once to 0 and 5."""
    pc, depth = np.array([0, 2, 2, 0, 0, 5], np.int32), np.array([0, 1, 2, 3, 0, 9], np.int32)
    course = Course.of(np.array([1, 0]), np.array([4, 2]), pc, depth, 1)

    def moments(turn: int, *pc: int) -> list[int]:
        return course.moments(np.array([turn]), np.array([0, len(pc)]), np.array(pc, np.int32)).tolist()

    assert moments(0, 0, 5) == [0, 9]
    assert moments(0, 2, 5, 2) == [1, 9, 2]  # as in the block of the other turn
    assert moments(1, 2, 0, 2, 0) == [10 + 1, 10 + 0, 10 + 2, 10 + 3]
    assert moments(1, 0, 0, 0, 0) == [10 + 0, 10 + 0, 10 + 3, 10 + 3]  # the same part of the way
    assert moments(2, 3, 4, 9) == [20 + 1, 20 + 2, 20 + 9]  # joined with the instruction before
    both = course.moments(np.array([0, 1]), np.array([0, 1, 2]), np.array([5, 5], np.int32))
    assert both.tolist() == [9, 10 + 9]
    nothing = Course.of(np.array([0]), np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.int32), 1)
    assert nothing.moments(np.array([0, 1]), np.array([0, 1, 2]), np.array([3, 4], np.int32)).tolist() == [0, 1]


def test_users_that_were_not_sampled_are_as_early_as_those_that_were() -> None:
    """Of the 4 sampled SMs, 16 % each are earlier. No two at the same line: 1 - 6 * 0.16 of the lines see none of 6.
    This SM fetches its part of all lines, of those at which none of the sampled was earlier."""
    lines = np.arange(20_000, dtype=np.uint64) * np.uint64(128)
    moments = np.where(np.random.default_rng(1).random((4, len(lines))) < 0.16, 0, 2)
    sm = np.repeat(np.arange(4, dtype=np.int32), len(lines))
    others = Touched(np.tile(lines, 4), np.full(len(sm), 15, np.uint8), sm, moments.ravel(), np.full(4, 79 / 4))
    used, area = np.full(len(lines), 15, np.uint8), np.zeros(len(lines), np.int64)

    def late(first: int, users: float) -> float:
        of_lines = np.full(len(lines), users)
        who = Users(of_lines, of_lines, of_lines - 1.0)
        found = by_others(lines, who, np.full((len(lines), 4), first), used, others.on(lines), area)
        assert set(found.fetched.tolist()) <= {0, 15} and set(found.coming.tolist()) <= {0, 15}
        assert (found.fetched == 0).mean() == pytest.approx(1 / users, abs=0.01)
        earlier = (moments.min(axis=0) == 0) & (first > 0)
        assert (found.fetched[earlier] > 0).all()
        return float((found.coming > 0).mean())

    none_known = 0.84**4
    assert late(1, 5.0) == pytest.approx(none_known - 1 / 5, abs=0.01)  # all are sampled
    assert late(1, 7.0) == pytest.approx((none_known - 1 / 7) * (1 - 6 * 0.16) / (1 - 4 * 0.16), abs=0.01)
    assert late(1, 80.0) == 0.0
    assert late(0, 80.0) == pytest.approx(79 / 80, abs=0.01)  # the others come to no line before that
    found = first_moments(others.on(np.append(lines, np.uint64(1 << 40))), len(lines) + 1)
    assert (found[:-1] == moments.min(axis=0)[:, None]).all() and (found[-1] == NEVER).all()


def test_of_those_that_come_first_together_each_fetches_a_share() -> None:
    """All users are known: two others at the same moment as this SM, one of them at half of the line; one later."""
    lines = np.arange(20_000, dtype=np.uint64) * np.uint64(128)
    sm = np.repeat(np.arange(3, dtype=np.int32), len(lines))
    sectors = np.repeat(np.array([15, 3, 15], np.uint8), len(lines))
    moment = np.repeat([4, 4, 5], len(lines))
    others = Touched(np.tile(lines, 3), sectors, sm, moment, np.ones(3)).on(lines)
    used, area = np.full(len(lines), 15, np.uint8), np.zeros(len(lines), np.int64)
    who = sharers(used, others, 80)
    for first, by_three, by_two, coming in ((3, 0.0, 0.0, False), (4, 2 / 3, 1 / 2, True), (5, 1.0, 1.0, False)):
        found = by_others(lines, who, np.full((len(lines), 4), first), used, others, area)
        assert (found.fetched & 1 > 0).mean() == pytest.approx(by_three, abs=0.01)
        assert (found.fetched & 8 > 0).mean() == pytest.approx(by_two, abs=0.01)
        assert found.coming.tolist() == (found.fetched if coming else np.zeros_like(found.fetched)).tolist()


def test_later_sectors_of_a_line_are_there_when_others_came_to_them_before() -> None:
    """This SM comes to the first sector of each line with the others, to the second one after them."""
    lines = np.arange(1000, dtype=np.uint64) * np.uint64(128)
    sm = np.repeat(np.arange(4, dtype=np.int32), len(lines))
    others = Touched(
        np.tile(lines, 4), np.full(len(sm), 3, np.uint8), sm, np.zeros(len(sm), np.int64), np.full(4, 20.0)
    )
    first = np.tile([0, 1], (len(lines), 1))
    used, area = np.full(len(lines), 3, np.uint8), np.zeros(len(lines), np.int64)
    found = by_others(lines, Users(*np.full((3, len(lines)), 80.0)), first, used, others.on(lines), area)
    assert (found.fetched & 2 > 0).all() and (found.coming == found.fetched & 1).all()
    assert (found.fetched & 1 > 0).mean() == pytest.approx(1 - 2 / 80, abs=0.01)  # the share of both sectors
