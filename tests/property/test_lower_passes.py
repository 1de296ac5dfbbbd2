"""The compiled passes of the lowering agree with the plain ones, and keep what hardware keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.lower import (
    dependencies,
    reference_box,
    reference_passes,
    reference_schedule,
    reference_transactions,
)

from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.accesses.banks import BankRule, bank_passes
from ppt_gpu.sm.accesses.coalesce import RULES, coalesce, transactions
from ppt_gpu.sm.accesses.scoreboard import (
    GROUP_COPY,
    GROUP_EXPECT,
    GROUP_USE,
    GROUP_WAIT_OLDEST,
    StaticCode,
    schedule,
)
from ppt_gpu.workload.box import MASK as BOX_MASK
from ppt_gpu.workload.box import Box

SIZES = st.sampled_from([1, 2, 4, 8, 16, 32])
MASKS = st.one_of(st.just(0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))
BANKS = st.sampled_from(
    [
        BankRule(32, 4, 128, False),
        BankRule(32, 4, 128, False, paired=True),
        BankRule(32, 4, 128, False, paired=True, cycles=2),
        BankRule(32, 4, 128, False, paired=True, cycles=2, each=True),
        BankRule(32, 8, 256, False),
        BankRule(32, 4, 256, False),
        BankRule(16, 4, 64, True),
        BankRule(32, 4, 128, False, first_word=True),
    ]
)


@st.composite
def lane_offsets(draw: st.DrawFn, size: int) -> np.ndarray:
    """32 naturally aligned offsets: a stride, a permutation of one, a few values, or anything."""
    kind = draw(st.sampled_from(["stride", "shuffled", "few", "free"]))
    if kind in ("stride", "shuffled"):
        lanes = draw(st.permutations(range(32))) if kind == "shuffled" else range(32)
        return np.array(lanes, np.int64) * draw(st.integers(-40, 40)) * size
    top = 3 if kind == "few" else 2000
    return np.array(draw(st.lists(st.integers(-top, top), min_size=32, max_size=32)), np.int64) * size


@st.composite
def accesses(draw: st.DrawFn) -> tuple[np.ndarray, int, int, int]:
    """(offsets, mask, base, bytes per lane)."""
    size = draw(SIZES)
    offsets, mask = np.asarray(draw(lane_offsets(size)), np.int64), draw(MASKS)
    offsets[[not mask >> lane & 1 for lane in range(32)]] = 0
    return offsets, mask, draw(st.integers(0, 255)) // size * size, size


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    axes = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(-300, 300)), max_size=3))
    return Box(draw(st.integers(0, 2000)), draw(st.integers(1, 300)), tuple(axes))


@given(
    st.lists(st.one_of(boxes(), accesses()), min_size=1, max_size=5),
    st.sampled_from(sorted(RULES)),
    st.sampled_from([64, 128, 256]),
)
@settings(max_examples=200, deadline=None)
def test_boxes_among_lanes(found: list, rule: str, line: int) -> None:
    """Accesses of lanes are what they are alone; a box touches its bytes, row by row."""
    rows, expected = [], []
    for each in found:
        if isinstance(each, Box):
            rows.append((each.words(), BOX_MASK, each.start, 1))
            expected.append(reference_box(each, line, 32))
        else:
            offsets, mask, base, size = each
            rows.append((offsets, mask, base, size))
            expected.append(transactions(rule, offsets, mask, base, size, line, 32, False))
    offsets, masks, base, size = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    order, whole = np.arange(len(rows)), np.zeros(len(rows), np.bool_)
    start, lines, sectors = coalesce(RULES[rule], offsets, masks, order, base, size, whole, line, 32)
    got = [list(zip(lines[a:b].tolist(), sectors[a:b].tolist(), strict=True)) for a, b in pairwise(start)]
    assert got == expected


def active(offsets: np.ndarray, mask: int, base: int) -> list[tuple[int, int]]:
    return [(lane, base + int(offsets[lane])) for lane in range(32) if mask >> lane & 1]


@given(accesses(), st.sampled_from(sorted(RULES)), st.sampled_from([64, 128, 256]), st.booleans())
@settings(max_examples=250, deadline=None)
def test_coalescing_agrees(access: tuple, rule: str, line: int, whole: bool) -> None:
    offsets, mask, base, size = access
    whole = whole and rule in ("line", "segment")
    found = transactions(rule, offsets, mask, base, size, line, 32, whole)
    assert found == reference_transactions(rule, active(offsets, mask, base), size, line, 32, whole)


@given(accesses(), st.sampled_from(sorted(RULES)), st.integers(-1000, 1000))
@settings(max_examples=200, deadline=None)
def test_coalescing_repeats_with_the_line(access: tuple, rule: str, lines: int) -> None:
    """Moving all addresses by whole lines moves the transactions: what memoising by base modulo line rests on."""
    offsets, mask, base, size = access
    here = transactions(rule, offsets, mask, base, size, 128, 32, False)
    there = transactions(rule, offsets, mask, base + 128 * lines, size, 128, 32, False)
    assert [(number + lines, sectors) for number, sectors in here] == there


@given(accesses(), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_lane_order_does_not_matter(access: tuple, random: object) -> None:
    """Rule "sector" at any size, rule "line" while one request serves the whole warp."""
    offsets, mask, base, size = access
    order = list(range(32))
    random.shuffle(order)  # type: ignore[attr-defined]
    mask2 = sum((mask >> old & 1) << new for new, old in enumerate(order))
    for rule in ("sector", "line") if size <= 4 else ("sector",):
        one = transactions(rule, offsets, mask, base, size, 128, 32, False)
        two = transactions(rule, offsets[order], mask2, base, size, 128, 32, False)
        assert sorted(one) == sorted(two)


@given(accesses())
@settings(max_examples=200, deadline=None)
def test_every_rule_moves_every_byte(access: tuple) -> None:
    offsets, mask, base, size = access
    for rule in RULES:
        moved: Counter[int] = Counter()
        for number, sectors in transactions(rule, offsets, mask, base, size, 128, 32, False):
            assert sectors
            moved.update(number * 4 + s for s in range(4) if sectors >> s & 1)
        for _, address in active(offsets, mask, base):
            assert all(byte // 32 in moved for byte in range(address, address + size))


@given(accesses(), BANKS, st.booleans())
@settings(max_examples=600, deadline=None)
def test_banks_agree(access: tuple, rule: BankRule, atomic: bool) -> None:
    offsets, mask, base, size = access
    lanes = active(offsets, mask, base)
    passes = bank_passes(rule, offsets, mask, base, size, atomic)
    assert passes == reference_passes(rule, lanes, size, atomic)
    assert passes == bank_passes(rule, offsets, mask, base + 5 * rule.row, size, atomic)
    assert bank_passes(rule, offsets, mask, base, size, True) >= bank_passes(rule, offsets, mask, base, size, False)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9).map(lambda i: i * 128), max_size=300))
@settings(max_examples=100, deadline=None)
def test_dense_ids(values: list[int]) -> None:
    ids, distinct = dense_ids(np.array(values, np.uint64))
    assert distinct[ids].tolist() == values
    assert distinct.tolist() == list(dict.fromkeys(values))


def test_dense_ids_grow() -> None:
    values = (np.arange(20000, dtype=np.uint64) * np.uint64(128)) % np.uint64(128 * 7001)
    ids, distinct = dense_ids(values)
    assert len(distinct) == 7001
    assert np.array_equal(distinct[ids], values)


@st.composite
def codes(draw: st.DrawFn) -> StaticCode:
    """Random static code with a few registers, chains of 0 to 3 operations of every sort, and guards."""
    registers = draw(st.integers(1, 8))
    count = draw(st.integers(1, 8))
    some = st.lists(st.integers(0, registers - 1), max_size=3)
    reads, writes = [draw(some) for _ in range(count)], [draw(some) for _ in range(count)]
    chain = [draw(st.integers(0, 3)) for _ in range(count)]
    sorts = [draw(st.sampled_from("ffffvvnF")) for _ in range(sum(chain))]  # fixed, variable, no value, fence
    return StaticCode(
        registers=registers,
        read_start=np.cumsum([0, *map(len, reads)], dtype=np.int32),
        reads=np.array([r for row in reads for r in row], np.int32),
        write_start=np.cumsum([0, *map(len, writes)], dtype=np.int32),
        writes=np.array([r for row in writes for r in row], np.int32),
        guarded=np.array([draw(st.booleans()) for _ in range(count)], np.bool_),
        chain_start=np.cumsum([0, *chain], dtype=np.int32),
        op_fixed=np.array([draw(st.integers(0, 12)) if s in "fF" else -1 for s in sorts], np.int32),
        op_value=np.array([s != "n" for s in sorts], np.bool_),
        op_fence=np.array([s == "F" for s in sorts], np.bool_),
        groups=np.array([draw(GROUPS) for _ in range(count)], np.int32) if draw(st.booleans()) else None,
        checks_writes=draw(st.booleans()),
    )


#: nothing, copies, commits, waits for all, for all groups, for all but one or two; bytes expected, waits for the
#: oldest, uses
GROUPS = st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5, 6, -1, -2, -2, -3])


@st.composite
def programs(draw: st.DrawFn) -> tuple[StaticCode, np.ndarray, np.ndarray]:
    code = draw(codes())
    path = st.lists(st.integers(0, len(code.guarded) - 1), max_size=40)
    paths = draw(st.lists(path, min_size=1, max_size=3))
    start = np.cumsum([0, *map(len, paths)], dtype=np.int64)
    return code, start, np.array([pc for p in paths for pc in p], np.int32)


@given(programs(), st.sampled_from([1, 2]), st.sampled_from([1, 2, 5, 64]))
@settings(max_examples=400, deadline=None)
def test_schedule_agrees(program: tuple, width: int, slots: int) -> None:
    code, start, pcs = program
    fast, slow = schedule(code, start, pcs, width, slots), reference_schedule(code, start, pcs, width, slots)
    for name in ("path_start", "entry_op", "entry_wait", "entry_slot"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


@given(programs(), st.sampled_from([1, 2, 5, 64]))
@settings(max_examples=200, deadline=None)
def test_waits_name_slots_written_before(program: tuple, slots: int) -> None:
    """Every slot waited for was announced and not yet waited for; none is announced twice in between."""
    plan = schedule(*program, 1, slots)
    for begin, end in zip(plan.path_start[:-1], plan.path_start[1:], strict=True):
        held: set[int] = set()
        for i in range(begin, end):
            waits = {s for s in range(64) if int(plan.entry_wait[i]) >> s & 1}
            assert waits <= held
            held -= waits
            if plan.entry_slot[i] >= 0:
                assert plan.entry_slot[i] not in held
                held.add(int(plan.entry_slot[i]))
        assert not held


def issue_times(width: int, latency: list[int], ready: Callable[[int, list[int]], int]) -> list[int]:
    """In-order issue of one warp, `width` entries a cycle; ready(i, completions of the entries before i)."""
    times: list[int] = []
    done: list[int] = []
    for i in range(len(latency)):
        at = ready(i, done)
        if times:
            at = max(at, times[-1], times[-width] + 1 if len(times) >= width else 0)
        times.append(at)
        done.append(at + latency[i])
    return times


def by_slot(waits: list[int], slots: list[int]) -> Callable[[int, list[int]], int]:
    """When entry i may issue: the latest completion announced in the slots that it waits for."""
    announced = [0] * 64

    def ready(i: int, done: list[int]) -> int:
        if i > 0 and slots[i - 1] >= 0:
            announced[slots[i - 1]] = done[i - 1]
        return max((announced[s] for s in range(64) if waits[i] >> s & 1), default=0)

    return ready


@given(programs(), st.sampled_from([1, 2]), st.sampled_from([2, 64]), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_slots_lose_no_dependency(program: tuple, width: int, slots: int, random: object) -> None:
    """Issue times with slots are those with every dependency; with few slots they are never earlier."""
    code, start, pcs = program
    plan = schedule(code, start, pcs, width, slots)
    for p in range(len(start) - 1):
        entries = dependencies(code, pcs[start[p] : start[p + 1]].tolist())
        latency = [
            int(code.op_fixed[op]) if code.op_fixed[op] >= 0 else random.randint(0, 50)  # type: ignore[attr-defined]
            for op, _ in entries
        ]
        exact = issue_times(width, latency, lambda i, done, e=entries: max((done[d] for d in e[i][1]), default=0))
        own = slice(plan.path_start[p], plan.path_start[p + 1])
        slotted = issue_times(width, latency, by_slot(plan.entry_wait[own].tolist(), plan.entry_slot[own].tolist()))
        if slots == 64:
            assert slotted == exact
        else:
            assert all(a >= b for a, b in zip(slotted, exact, strict=True))


COPY, EXPECT, WAIT, USE = range(4)


@pytest.mark.parametrize(
    ("path", "waits"),
    [
        ([EXPECT, COPY, EXPECT, COPY, WAIT, USE, WAIT, USE], {4: [1], 6: [3]}),  # each stage when it is needed
        ([WAIT, EXPECT, COPY, WAIT, EXPECT, COPY, WAIT], {}),  # a warp that copies for others waits for room
        ([USE, WAIT, EXPECT, COPY, WAIT, EXPECT, COPY], {}),  # what it did before it copied is no use of the copies
        ([WAIT, EXPECT, COPY, WAIT, USE], {3: [2]}),
    ],
)
def test_waits_for_bulk_copies(path: list[int], waits: dict[int, list[int]]) -> None:
    kinds = [GROUP_COPY, GROUP_EXPECT, GROUP_WAIT_OLDEST, GROUP_USE]
    nothing = np.zeros(5, np.int32)
    code = StaticCode(
        registers=1,
        read_start=nothing,
        reads=nothing[:0],
        write_start=nothing,
        writes=nothing[:0],
        guarded=np.zeros(4, np.bool_),
        chain_start=np.arange(5, dtype=np.int32),
        op_fixed=np.array([-1, 1, 1, 1], np.int32),
        op_value=np.array([True, False, False, False]),
        op_fence=np.zeros(4, np.bool_),
        groups=np.array(kinds, np.int32),
    )
    found = {entry: sorted(sources) for entry, (_, sources) in enumerate(dependencies(code, path)) if sources}
    assert found == waits
    plan = schedule(code, np.array([0, len(path)]), np.array(path, np.int32))
    assert [entry for entry, mask in enumerate(plan.entry_wait.tolist()) if mask] == list(waits)


def test_slot_limit_is_reached() -> None:
    """70 loads that nobody has read yet: the 65th takes the slot of the first and waits for it."""
    n = 70
    code = StaticCode(
        registers=n,
        read_start=np.array([0] * (n + 1) + [n], np.int32),
        reads=np.arange(n, dtype=np.int32),
        write_start=np.array([*range(n + 1), n], np.int32),
        writes=np.arange(n, dtype=np.int32),
        guarded=np.zeros(n + 1, np.bool_),
        chain_start=np.arange(n + 2, dtype=np.int32),
        op_fixed=np.full(n + 1, -1, np.int32),
        op_value=np.ones(n + 1, np.bool_),
        op_fence=np.zeros(n + 1, np.bool_),
    )
    plan = schedule(code, np.array([0, n + 1]), np.arange(n + 1, dtype=np.int32))
    assert plan.entry_slot[:64].tolist() == list(range(64))
    assert plan.entry_wait[64:70].tolist() == [1 << s for s in range(6)]
    assert plan.entry_slot[64:70].tolist() == list(range(6))
    assert int(plan.entry_wait[70]) == 2**64 - 1
