"""The trace digest: decoding against its plain reference, patterns and paths stored once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.exec import digest, digest_paths
from ppt_gpu.exec.jit_access import RECORD_LISTED, RECORD_NONE, RECORD_ROW, RECORD_SAME

masks = st.integers(1, 2**32 - 1)
addresses = st.integers(0, 2**40)
distances = st.lists(st.integers(-(2**20), 2**20), min_size=32, max_size=32)


@st.composite
def buffers(draw):
    """(access records, listed patterns) as compiled code writes them."""
    listed, words = [], []
    for mask, away in draw(st.lists(st.tuples(masks, distances), max_size=6)):
        listed.append((mask, [d if mask >> lane & 1 else 0 for lane, d in enumerate(away)]))
    kinds = [RECORD_NONE, RECORD_SAME, RECORD_ROW] + ([RECORD_LISTED] if listed else [])
    for _ in range(draw(st.integers(0, 30))):
        kind = draw(st.sampled_from(kinds))
        mask, detail = draw(masks), 0
        if kind == RECORD_NONE:
            mask = 0
        elif kind == RECORD_ROW:
            detail = draw(st.integers(0, 4))
        elif kind == RECORD_LISTED:
            detail = draw(st.integers(0, len(listed) - 1))
            mask = listed[detail][0]
        words.append([mask | draw(st.integers(0, 2)) << 32 | kind << 40 | detail << 48, draw(addresses)])
    headers, bases = np.array(words, np.int64).reshape(-1, 2).T.copy()
    return headers, bases, np.array([away for _, away in listed], np.int64).reshape(-1, 32)


def _held(headers, listed, end):
    """(the headers, those before `end` as held ones, the patterns that they refer to)."""
    held, done, headers = digest.new_patterns(1), 0, headers.copy()
    numbers = np.full(max(len(listed), 1), -1, np.int32)
    while done < end:
        done = digest.hold_records(headers, done, end, listed, numbers, held.offset, held.mask, held.table, held.used)
        if done < end:
            held = digest.grow_patterns(held)
    return headers, held


def _decoded(headers, bases, starts, ends, listed, held, patterns):
    """(base, space, offsets, mask) of each access of the parts, the numbers of the patterns, the patterns after it."""
    total = int((ends - starts).sum())
    base, pattern, space = (np.zeros(total, kind) for kind in (np.int64, np.int32, np.uint8))
    used = int(held.used[0])
    numbers, held_numbers = (np.full(max(count, 1), -1, np.int32) for count in (len(listed), used))
    part, record, done = 0, -1, 0
    while part < len(starts):
        part, record, done = digest.read_accesses(
            headers, bases, starts, ends, part, record, listed, numbers, held.offset[:used], held.mask[:used],
            held_numbers, base, pattern, space, done, *patterns,
        )  # fmt: skip
        if part < len(starts):
            patterns = digest.grow_patterns(patterns)
    assert done == total
    found = [
        (int(base[k]), int(space[k]), tuple(patterns.offset[pattern[k]].tolist()), int(patterns.mask[pattern[k]]))
        for k in range(total)
    ]
    return found, pattern.tolist(), patterns


@settings(max_examples=80, deadline=None)
@given(buffers(), st.integers(1, 4), st.floats(0, 1))
def test_decoding_agrees_with_the_plain_reference(case, capacity, share):
    """Records as they were made, and records the first of which were held back."""
    headers, bases, listed = case
    plain = digest.plain_accesses(headers, bases, listed)
    whole = np.array([0]), np.array([len(headers)])
    for end in (0, int(share * len(headers))):
        later, held = _held(headers, listed, end)
        patterns = digest.new_patterns(capacity)  # small: it has to grow
        found, pattern, patterns = _decoded(later, bases, *whole, listed, held, patterns)
        assert found == plain
        used = int(patterns.used[0])
        keys = {(*patterns.offset[p].tolist(), int(patterns.mask[p])) for p in range(used)}
        assert len(keys) == used  # each once
        assert list(dict.fromkeys(pattern)) == list(range(used))  # numbered by first appearance


def test_patterns_that_are_forgotten_are_found_anew():
    patterns = digest.new_patterns(2)
    listed, lanes, found = np.arange(64).reshape(2, 32), np.array([7, 7]), np.zeros(2, np.int32)
    for rows in (listed, listed[::-1].copy()):
        digest.clear_patterns(patterns)
        assert digest.read_patterns(rows, lanes, 0, *patterns[:4], found) == 2
        assert found.tolist() == [0, 1] and (patterns.offset[:2] == rows).all()


def test_population_count():
    for value in (0, 1, 0x80000000, 0xFFFFFFFF, 0xA5A5A5A5, 0x00010001):
        assert digest_paths._population(value) == value.bit_count()


def test_patterns_are_numbered_by_first_appearance():
    pattern, first = np.array([3, 1, 3, 0, 1], np.int32), np.zeros(4, np.int32)
    assert digest.number_patterns(pattern, 4, first) == 3
    assert pattern.tolist() == [0, 1, 0, 2, 1] and first[:3].tolist() == [3, 1, 0]


@settings(max_examples=80, deadline=None)
@given(buffers(), st.lists(st.integers(0, 5), max_size=8), st.integers(1, 4))
def test_warps_that_do_the_same(case, parts, capacity):
    """Parts whose headers are those of the part before have bases of their own."""
    headers, _, listed = case
    pieces = np.array_split(headers, 6)
    records = np.concatenate([pieces[piece] for piece in parts] or [headers[:0]])
    end = np.cumsum([len(pieces[piece]) for piece in parts], dtype=np.int64)
    start = end - np.array([len(pieces[piece]) for piece in parts], np.int64)
    own = np.arange(len(records))
    patterns, none = digest.new_patterns(capacity), digest.new_patterns(1)
    found, pattern, patterns = _decoded(records, own, start, end, listed, none, patterns)
    assert found == digest.plain_accesses(records, own, listed)
    assert list(dict.fromkeys(pattern)) == list(range(int(patterns.used[0])))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=20), st.integers(1, 3), st.integers(0, 20))
def test_paths_are_stored_once_and_counted(warps, row_warps, cut):
    """warps: which of a few sequences of segments each runs, taken over in two goes; some repeat what others did."""
    full, some = 0xFFFFFFFF, 0b1011
    sequences = [[], [(0, full), (1, full)], [(0, full), (1, some)], [(2, full)] * 3]
    records = [[record for which in own for record in sequences[which]] for own in warps]
    words = np.array([pair for own in records for pair in own], np.uint32).reshape(-1, 2).view(np.int64).ravel()
    end = np.cumsum([len(own) for own in records], dtype=np.int64)
    start, guarded = end - np.array([len(own) for own in records], np.int64), np.arange(len(warps))
    plain, rows = np.array([3, 5, 7]), len(warps) // row_warps + 1
    count, threads, warp_threads = np.zeros(3, np.int64), np.zeros((rows, 3), np.int64), np.zeros(len(warps), np.int64)
    known, known_start, code = np.zeros(len(words) + 1, np.int32), np.zeros(40, np.int64), np.zeros(40, np.int64)
    table, warp_path, paths = np.zeros(64, np.int32), np.full(len(warps), -1, np.int32), 0
    for part in (slice(0, cut), slice(cut, None)):
        paths = digest_paths.read_paths(
            words, start[part], end[part], guarded[part], plain, min(part.start, len(warps)), row_warps, count,
            threads, warp_threads, warp_path, known, known_start, code, table, paths,
        )  # fmt: skip
    whole = [tuple(segment for segment, _ in own) for own in records]
    assert paths == len(set(whole))
    for w, p in enumerate(warp_path.tolist()):
        assert tuple(known[known_start[p] : known_start[p + 1]].tolist()) == whole[w]
    assert list(dict.fromkeys(warp_path.tolist())) == list(range(paths))  # numbered by first appearance
    expected_threads, expected_warp = np.zeros((rows, 3), np.int64), guarded.copy()
    for w, own in enumerate(records):
        for segment, mask in own:
            expected_threads[w // row_warps, segment] += mask.bit_count()
            expected_warp[w] += mask.bit_count() * plain[segment]
    assert count.tolist() == [sum(own.count(s) for own in whole) for s in range(3)]
    assert np.array_equal(threads, expected_threads) and np.array_equal(warp_threads, expected_warp)
