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
        header = mask | draw(st.integers(0, 2)) << 32 | kind << 40 | detail << 48
        words.append([header, draw(addresses)])
    return np.array(words, np.int64).reshape(-1, 2), np.array([away for _, away in listed], np.int64).reshape(-1, 32)


def _held(words, listed):
    """(the records as held ones, the patterns that they refer to)."""
    held, done, words = digest.new_patterns(1), 0, words.copy()
    numbers = np.full(max(len(listed), 1), -1, np.int32)
    while done < len(words):
        done = digest.hold_records(words, done, listed, numbers, held.offset, held.mask, held.table, held.used)
        if done < len(words):
            held = digest.grow_patterns(held)
    return words, held


def _decoded(words, listed, lanes, patterns):
    """(base, space, offsets, mask) of each record, the number of each pattern, and the patterns after it."""
    base, pattern, space = (np.zeros(len(words), kind) for kind in (np.uint64, np.int32, np.uint8))
    warp, start, end, order = np.array([1]), np.array([0]), np.array([len(words)]), np.array([0])
    counts = np.zeros(2, np.int64)
    numbers = np.full(max(len(listed), 1), -1, np.int32)
    part, record, done = 0, -1, 0
    while part < 1:
        part, record, done = digest.read_parts(
            words, warp, start, end, order, part, record, listed, lanes, numbers, counts,
            base, pattern, space, done, *patterns,
        )  # fmt: skip
        if part < 1:
            patterns = digest.grow_patterns(patterns)
    assert counts.tolist() == [0, len(words)]
    found = [
        (int(base[k]), int(space[k]), tuple(patterns.offset[pattern[k]].tolist()), int(patterns.mask[pattern[k]]))
        for k in range(len(words))
    ]
    return found, pattern.tolist(), patterns


@settings(max_examples=80, deadline=None)
@given(buffers(), st.integers(1, 4))
def test_decoding_agrees_with_the_plain_reference(case, capacity):
    """Records as they were made, and records that were held back."""
    words, listed = case
    plain = digest.plain_accesses(words, listed)
    later, held = _held(words, listed)
    kept = held.mask[: held.used[0]]
    for found, pattern, patterns in (
        _decoded(words, listed, np.zeros(1, np.int64), digest.new_patterns(capacity)),  # small: it has to grow
        _decoded(later, held.offset[: len(kept)], kept, digest.new_patterns(capacity)),
    ):
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


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=3), min_size=1, max_size=8))
def test_paths_are_stored_once(warps):
    """Each warp's segments come in parts, interleaved with those of the other warps."""
    parts = [(turn, warp, part) for warp, turns in enumerate(warps) for turn, part in enumerate(turns)]
    parts.sort(key=lambda p: p[0])
    path = np.array([s for _, _, part in parts for s in part], np.int32)
    warp = np.array([w for _, w, _ in parts], np.int64)
    ends = np.cumsum([len(part) for _, _, part in parts], dtype=np.int64)
    starts = ends - np.array([len(part) for _, _, part in parts], np.int64)
    known, start, code = np.zeros(len(path) + 64, np.int32), np.zeros(20, np.int64), np.zeros(20, np.int64)
    table, warp_path = np.zeros(64, np.int32), np.full(len(warps), -1, np.int32)
    count = digest_paths.cons_paths(
        path, digest_paths.warp_order(warp), warp, starts, ends, known, start, code, table, 0, warp_path
    )
    whole = [tuple(s for part in turns for s in part) for turns in warps]
    ran = [w for w, turns in enumerate(warps) if turns]
    assert count == len({whole[w] for w in ran})
    for w in ran:
        p = warp_path[w]
        assert tuple(known[start[p] : start[p + 1]].tolist()) == whole[w]
    assert list(dict.fromkeys(warp_path[ran].tolist())) == list(range(count))  # numbered by first appearance


def test_population_count():
    for value in (0, 1, 0x80000000, 0xFFFFFFFF, 0xA5A5A5A5, 0x00010001):
        assert digest_paths._population(value) == value.bit_count()


def test_patterns_are_numbered_by_first_appearance():
    pattern, first = np.array([3, 1, 3, 0, 1], np.int32), np.zeros(4, np.int32)
    assert digest.number_patterns(pattern, 4, first) == 3
    assert pattern.tolist() == [0, 1, 0, 2, 1] and first[:3].tolist() == [3, 1, 0]


@settings(max_examples=80, deadline=None)
@given(buffers(), st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=8), st.integers(1, 4))
def test_warps_that_do_the_same(case, warps, capacity):
    """Parts whose headers are those of the same part of the warp before have bases of their own."""
    words, listed = case
    pieces = np.array_split(words, 6)
    parts = [(warp, pieces[piece]) for warp, own in enumerate(warps) for piece in own]
    records = np.concatenate([piece for _, piece in parts] or [words[:0]])
    records[:, 1] = np.arange(len(records))
    end = np.cumsum([len(piece) for _, piece in parts], dtype=np.int64)
    start = end - np.array([len(piece) for _, piece in parts], np.int64)
    warp, order = np.array([w for w, _ in parts], np.int64), np.arange(len(parts))
    base, pattern, space = (np.zeros(len(records), kind) for kind in (np.uint64, np.int32, np.uint8))
    counts, numbers = np.zeros(len(warps), np.int64), np.full(max(len(listed), 1), -1, np.int32)
    patterns, part, record, done = digest.new_patterns(capacity), 0, -1, 0
    while part < len(order):
        part, record, done = digest.read_parts(
            records, warp, start, end, order, part, record, listed, np.zeros(1, np.int64), numbers, counts,
            base, pattern, space, done, *patterns,
        )  # fmt: skip
        if part < len(order):
            patterns = digest.grow_patterns(patterns)
    found = [
        (int(base[k]), int(space[k]), tuple(patterns.offset[pattern[k]].tolist()), int(patterns.mask[pattern[k]]))
        for k in range(len(records))
    ]
    assert done == len(records) and found == digest.plain_accesses(records, listed)
    assert counts.tolist() == [sum(len(pieces[piece]) for piece in own) for own in warps]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30), st.integers(1, 3))
def test_turns_that_do_the_same(turns, row_warps):
    """turns: warp, and which of a few sequences of segments it runs."""
    full, some = 0xFFFFFFFF, 0b1011
    sequences = [[], [(0, full), (1, full)], [(0, full), (1, some)], [(2, full)] * 3]
    pairs = np.array([pair for _, which in turns for pair in sequences[which]], np.uint32).reshape(-1, 2)
    end = np.cumsum([len(sequences[which]) for _, which in turns], dtype=np.int64)
    columns = np.zeros((6, len(turns)), np.int64)
    columns[digest_paths.TURN_WARP] = [warp for warp, _ in turns]
    columns[digest_paths.TURN_PATH] = end - [len(sequences[which]) for _, which in turns]
    columns[digest_paths.TURN_PATH_END] = end
    columns[digest_paths.TURN_GUARDED] = np.arange(len(turns))
    plain, path = np.array([3, 5, 7]), np.zeros(len(pairs), np.int32)
    count, threads, warp_threads = np.zeros(3, np.int64), np.zeros((6, 3), np.int64), np.zeros(6, np.int64)
    done = digest_paths.read_paths(pairs, columns, plain, path, 0, count, threads, row_warps, warp_threads)
    expected_threads, expected_warp = np.zeros((6, 3), np.int64), np.zeros(6, np.int64)
    for k, (warp, which) in enumerate(turns):
        expected_warp[warp] += k
        for segment, mask in sequences[which]:
            expected_threads[warp // row_warps, segment] += mask.bit_count()
            expected_warp[warp] += mask.bit_count() * plain[segment]
    assert done == len(pairs) and path.tolist() == pairs[:, 0].tolist()
    assert count.tolist() == [int((pairs[:, 0] == s).sum()) for s in range(3)]
    assert np.array_equal(threads, expected_threads) and np.array_equal(warp_threads, expected_warp)
