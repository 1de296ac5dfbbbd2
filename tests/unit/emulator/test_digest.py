"""The trace digest: records taken over, patterns and paths stored once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.memory.warp_context import SLOTS
from ppt_gpu.emulator.trace import digest, digest_paths
from ppt_gpu.emulator.trace.trace_buffers import TraceBuffers


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda warps: st.lists(
            st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=warps, max_size=warps), min_size=1
        )
    ),
    st.integers(0, 9),
)
def test_what_blocks_left_is_taken_in_the_order_of_the_trace(blocks, at):
    """blocks: of each warp path records, accesses and guarded threads; warps write one block behind the other."""
    counts = np.array(blocks, np.int64)
    total = counts.sum(axis=0)
    rows = np.zeros((counts.shape[1], SLOTS), np.int64)
    buffers = TraceBuffers(rows, int(total[:, 0].max()), int(total[:, 1].max()), 1)
    buffers.header.reshape(-1)[:] = np.arange(buffers.header.size)
    buffers.base.reshape(-1)[:] = np.arange(buffers.base.size) << 36
    sums = np.cumsum(counts, axis=0)
    ends = buffers.cursors() + sums * [8, 4, 0]
    ends[:, :, 2] = counts[:, :, 2]
    assert buffers.records(ends[-1]) == total[:, 1].sum()
    header, base = np.zeros(at + total[:, 1].sum(), np.uint32), np.zeros(at + total[:, 1].sum(), np.int64)
    places = np.zeros(counts.shape[0] * counts.shape[1], np.int64)
    path, guarded = buffers.take(ends, header, base, at, places)
    first = buffers.starts + sums - counts
    expected = [
        first[block, w, 1] + k for block, own in enumerate(blocks) for w, (_, n, _) in enumerate(own) for k in range(n)
    ]
    assert header[at:].tolist() == expected and base[at:].tolist() == [k << 36 for k in expected]
    assert places.tolist() == (at + np.cumsum(counts[:, :, 1].ravel())).tolist()
    assert path[0].tolist() == first[:, :, 0].ravel().tolist() and (path[1] - path[0] == counts[:, :, 0].ravel()).all()
    assert guarded.tolist() == counts[:, :, 2].ravel().tolist()
    assert buffers.now().tolist() == buffers.starts.tolist()  # they are left as they were


def test_patterns_that_are_joined():
    patterns = digest.new_patterns(3)
    listed, found = np.arange(64).reshape(2, 32), np.zeros(4, np.int32)
    assert digest.read_patterns(listed[[1, 0, 1, 1]], np.array([7, 7, 7, 6]), 0, *patterns, found) == 4
    assert found.tolist() == [0, 1, 0, 2] and (patterns.offset[:3] == listed[[1, 0, 1]]).all()
    assert patterns.mask[:3].tolist() == [7, 7, 6]


@entry
def lanes(mask):
    return digest_paths._lanes(mask)


def test_population_count():
    for value in (0, 1, 0x80000000, 0xFFFFFFFF, 0xA5A5A5A5, 0x00010001):
        assert lanes(value) == lanes(value - (1 << 32)) == value.bit_count()


def test_patterns_are_numbered_by_first_appearance():
    pattern, first = np.array([3, 1, 3, 0, 1], np.int32), np.zeros(4, np.int32)
    assert digest.number_patterns(pattern, 4, first) == 3
    assert pattern.tolist() == [0, 1, 0, 2, 1] and first[:3].tolist() == [3, 1, 0]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=20), st.integers(1, 3), st.integers(0, 20))
def test_paths_are_stored_once_and_counted(warps, row_warps, cut):
    """warps: which of a few sequences of segments each runs, taken over in two goes; some repeat what others did."""
    full, some = 0xFFFFFFFF, 0b1011
    sequences = [[], [(0, full), (1, full)], [(0, full), (1, some)], [(2, full)] * 3, [(2, some)] * 3]
    records = [[record for which in own for record in sequences[which]] for own in warps]
    words = np.array([pair for own in records for pair in own], np.uint32).reshape(-1, 2).view(np.int64).ravel()
    end = np.cumsum([len(own) for own in records], dtype=np.int64)
    start, guarded = end - np.array([len(own) for own in records], np.int64), np.arange(len(warps))
    plain, rows = np.array([3, 5, 7]), len(warps) // row_warps + 1
    threads, warp_threads = np.zeros((rows, 3), np.int64), np.zeros(len(warps), np.int64)
    known, known_start, code = np.zeros((2, 0), np.int32), np.zeros(40, np.int64), np.zeros(0, np.int64)
    table, warp_path, paths = np.zeros(64, np.int32), np.full(len(warps), -1, np.int32), 0
    for part in (slice(0, cut), slice(cut, None)):
        done = -1
        while done < len(start[part]):
            before, (paths, done) = done, digest_paths.read_paths(
                words, start[part], end[part], guarded[part], plain, min(part.start, len(warps)), row_warps,
                threads, warp_threads, warp_path, *known, known_start, code, table, paths, max(done, 0),
            )  # fmt: skip
            assert done >= before
            full = paths == len(code)  # there is room for one path more, or for one segment
            code = np.concatenate([code, np.zeros(int(full), np.int64)])
            known = np.pad(known, ((0, 0), (0, int(not full))))
    whole = [tuple(segment for segment, _ in own) for own in records]
    assert paths == len(set(whole))
    for w, p in enumerate(warp_path.tolist()):
        assert tuple(known[0, known_start[p] : known_start[p + 1]].tolist()) == whole[w]
    assert list(dict.fromkeys(warp_path.tolist())) == list(range(paths))  # numbered by first appearance
    expected_threads, expected_warp = np.zeros((rows, 3), np.int64), guarded.copy()
    for w, own in enumerate(records):
        for segment, mask in own:
            expected_threads[w // row_warps, segment] += mask.bit_count()
            expected_warp[w] += mask.bit_count() * plain[segment]
    assert np.array_equal(threads, expected_threads) and np.array_equal(warp_threads, expected_warp)
