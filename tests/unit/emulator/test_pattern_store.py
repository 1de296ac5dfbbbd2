"""The patterns of a run: stored by compiled code while their store grows, and put once each in the order of a trace."""

import numpy as np

from ppt_gpu.emulator.jit.patterns import listed_pattern
from ppt_gpu.emulator.memory.warp_context import SLOTS, Slot
from ppt_gpu.emulator.trace import pattern_store
from ppt_gpu.emulator.trace.digest_patterns import Stored
from ppt_gpu.emulator.trace.pattern_store import ENTRIES, PatternStore, PatternWord
from ppt_gpu.emulator.trace.record_words import SPACE_BITS


def warp_of(store):
    row = np.zeros(SLOTS, np.int64)
    row[Slot.PATTERNS], row[Slot.PATH_END] = store.block.ctypes.data, 1
    return row


def random_pattern(rng):
    """(mask, distances): of 16, 32 or 64 bits, up to their ends, repeated soon or never; some differ in one bit."""
    bits = int(rng.choice([3, 16, 17, 32, 33, 64]))
    distances = rng.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 32, endpoint=True)
    if rng.random() < 0.7:
        distances = np.arange(32) * (1 << int(rng.integers(0, 58)))
        distances[int(rng.integers(32))] += int(rng.integers(0, 2))
    return int(rng.choice([0xFFFFFFFF, 1, 0x80000000, 0x0FF0, 0])), distances.astype(np.int64)


def test_patterns_are_stored_while_the_store_grows_and_numbered_as_a_dictionary_does(monkeypatch):
    monkeypatch.setattr(pattern_store, "SLACK", 12)
    monkeypatch.setattr(pattern_store, "LINES", 32)
    monkeypatch.setattr(pattern_store, "MANY", 64)
    rng, store, grew = np.random.default_rng(5), PatternStore(), 0
    row, listed, numbers = warp_of(store), [], []
    for _ in range(3000):
        mask, distances = listed[-int(rng.integers(1, 90))] if len(listed) > 90 else random_pattern(rng)
        if rng.random() < 0.6:
            mask, distances = random_pattern(rng)
        listed.append((mask, distances))
        numbers.append(listed_pattern()(row.ctypes.data, mask, distances.ctypes.data))
        assert listed_pattern()(row.ctypes.data, mask, distances.ctypes.data) == numbers[-1]
        full = store.used >= store.block[PatternWord.FULL]
        assert full == (row[Slot.PATH_END] == 0)
        if full:
            store.make_room(20)
            row[Slot.PATH_END], grew = 1, grew + 1
            assert store.block[PatternWord.FULL] - store.used >= 20
    assert grew > 3 and store.count == len(set(numbers))
    order = rng.permutation(len(listed))
    spans = np.array([[0, 1200], [1800, 3000]])
    check_numbered(Stored(store.rows, store.masks, store.count), listed, numbers, order, spans)
    check_numbered(Stored(store.rows, store.masks, store.count), listed, numbers, order, spans[:0])


def check_numbered(stored, listed, numbers, order, spans):
    """Records of these patterns in any order, and of them those in some spans."""
    headers = np.array([numbers[k] << SPACE_BITS | k & 3 for k in order], np.uint32)
    number, offset, mask = stored.numbered(headers, spans)
    known: dict[tuple, int] = {}
    for k in [k for first, end in spans for k in order[first:end]]:
        pattern = (listed[k][0], *listed[k][1].tolist())
        assert number[numbers[k]] == known.setdefault(pattern, len(known))
    assert [(m, *row) for m, row in zip(mask.tolist(), offset.tolist(), strict=True)] == list(known)


def test_rows_are_as_narrow_as_distances_allow():
    store = PatternStore()
    row = warp_of(store)
    for bits, lines in ((16, 2), (17, 4), (32, 4), (33, 8), (64, 8)):
        for distance in ((1 << (bits - 1)) - 1, -(1 << (bits - 1))):
            before, distances = store.used, np.full(32, distance, np.int64)
            assert listed_pattern()(row.ctypes.data, 7, distances.ctypes.data) == before
            assert store.used - before == lines


def test_what_the_table_forgot_is_stored_again_and_numbered_once():
    store, count = PatternStore(), 4 * ENTRIES
    store.make_room(2 * count)
    row = warp_of(store)
    distances = np.arange(32)[None] * np.arange(count)[:, None]
    twice = [listed_pattern()(row.ctypes.data, 1, d.ctypes.data) for d in np.concatenate([distances, distances])]
    assert count < store.count <= 2 * count and len(set(twice[:count])) == count
    headers = np.array(twice, np.uint32) << np.uint32(SPACE_BITS)
    number, offset, _ = Stored(store.rows, store.masks, store.count).numbered(headers, np.array([[0, 2 * count]]))
    assert np.array_equal(offset, distances)
    assert number[twice].tolist() == 2 * list(range(count))
