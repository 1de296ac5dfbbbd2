"""The patterns of a run: found again by compiled code while their store grows, and put in the order of a trace."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.exec import pattern_store
from ppt_gpu.exec.jit_context import SLOTS, Slot
from ppt_gpu.exec.jit_patterns import listed_pattern
from ppt_gpu.exec.pattern_store import PatternStore, PatternWord, arrange


def warp_of(store):
    row = np.zeros(SLOTS, np.int64)
    row[Slot.PATTERNS], row[Slot.PATH_END] = store.block.ctypes.data, 1
    return row


def test_patterns_are_found_again_while_the_store_grows(monkeypatch):
    """Numbers are those of a dictionary, for patterns that repeat soon, later and never, and differ in mask only."""
    monkeypatch.setattr(pattern_store, "SLACK", 3)
    monkeypatch.setattr(pattern_store, "PATTERNS", 8)
    monkeypatch.setattr(pattern_store, "MANY", 16)
    monkeypatch.setattr(pattern_store, "TABLE", 16)
    rng, store, known = np.random.default_rng(5), PatternStore(), {}
    row, grew = warp_of(store), 0
    for _ in range(4000):
        distances = rng.integers(-3, 3, 32) << int(rng.integers(0, 40)) if rng.random() < 0.3 else np.arange(32)
        distances = distances * int(rng.integers(0, 9))
        mask = int(rng.choice([0xFFFFFFFF, 1, 0x80000000, 0x0FF0]))
        key = mask, tuple(distances.tolist())
        assert listed_pattern()(row.ctypes.data, mask, distances.ctypes.data) == known.setdefault(key, len(known))
        full = store.used >= store.block[PatternWord.FULL]
        assert full == (row[Slot.PATH_END] == 0)
        if full:
            store.make_room(5)
            row[Slot.PATH_END], grew = 1, grew + 1
            assert store.block[PatternWord.FULL] - store.used >= 5
    assert grew > 3 and store.used == len(known)
    order = np.arange(len(known), dtype=np.int32)
    rows, masks = store.chosen(order, order)
    assert [(mask, tuple(own)) for mask, own in zip(masks.tolist(), rows.tolist(), strict=True)] == list(known)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 20).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.integers(0, n))))
def test_patterns_are_arranged_in_place(case):
    """Any choice of patterns in any order."""
    order, count = case
    made, number = np.array(order[:count], np.int32), np.full(len(order), -1, np.int32)
    number[made] = np.arange(count)
    rows = np.arange(32 * (len(order) + 1)).reshape(-1, 32)
    masks = np.arange(len(order) + 1, dtype=np.uint32)
    expected = rows[made], masks[made]
    moved = arrange(rows, masks, made.copy(), number)
    assert np.array_equal(rows[:count], expected[0]) and np.array_equal(masks[:count], expected[1])
    assert moved == (made != np.arange(count)).sum()
