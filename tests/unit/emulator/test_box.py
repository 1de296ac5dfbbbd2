"""Boxes: what bulk copies touch of global memory, as patterns of a trace."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.workload.box import AXES, MASK, Box, are_boxes, are_sound, box_of, rows_of, span, together
from ppt_gpu.workload.tensormap import TensorMap


def touched(box):
    """The addresses of all bytes, each as often as it is touched."""
    found = []
    for place in product(*(range(count) for count, _ in box.axes)):
        start = box.start + sum(k * distance for k, (_, distance) in zip(place, box.axes, strict=True))
        found += range(start, start + box.row)
    return sorted(found)


@st.composite
def tensors(draw):
    rank = draw(st.integers(1, 3))
    extents = draw(st.tuples(*[st.integers(1, 12)] * rank))
    box = draw(st.tuples(*[st.integers(1, 8)] * rank))
    steps = draw(st.tuples(*[st.integers(0, 3)] * rank))
    pitch, strides = 2 * extents[0], []
    for extent in extents[1:]:
        strides.append(pitch + draw(st.sampled_from([0, 16])))
        pitch = strides[-1] * extent
    corner = draw(st.tuples(*[st.integers(-9, 14)] * rank))
    return TensorMap(4096, 6, extents, box, tuple(strides), steps), corner


@settings(max_examples=200, deadline=None)
@given(tensors())
def test_boxes_of_tensors_are_what_is_copied(case):
    tensor, corner = case
    address, inside, _ = tensor.places(corner)
    expected = sorted(a + byte for a in address[inside].tolist() for byte in range(2))
    box = tensor.box_at(corner)
    assert (touched(box) if box else []) == expected
    if box:
        assert box.bytes == len(expected)
        words = np.array([box.words()])
        assert rows_of(words)[0] * box.row == box.bytes and are_sound(words).all()
        low, high = span(words)
        assert (box.start + low[0], box.start + high[0] - 1) == (expected[0], expected[-1])


@st.composite
def whole_boxes(draw):
    """Boxes of rows of 16 B pieces, in the tensor or not."""
    rank = draw(st.integers(1, 3))
    box = (8 * draw(st.integers(1, 4)), *draw(st.tuples(*[st.integers(1, 5)] * (rank - 1))))
    extents = tuple(extent + draw(st.integers(0, 9)) for extent in box)
    steps = draw(st.tuples(*[st.integers(0, 2)] * rank))
    pitch, strides = -(-2 * extents[0] // 16) * 16, []
    for extent in extents[1:]:
        strides.append(pitch + draw(st.sampled_from([0, 8, 16])))
        pitch = strides[-1] * extent
    corner = draw(st.tuples(*[st.integers(-1, 4)] * rank))
    return TensorMap(4096, 6, extents, box, tuple(strides), steps), corner


@settings(max_examples=200, deadline=None)
@given(whole_boxes())
def test_pieces_are_where_their_elements_are(case):
    tensor, corner = case
    address, inside, _ = tensor.places(corner)
    start = tensor.start_of(corner)
    assert (start is not None) == inside.all()
    if tensor.pieces is not None and start is not None:
        elements = start + 16 * tensor.pieces[:, None] + 2 * np.arange(8)
        assert elements.ravel().tolist() == address.tolist()


def test_rows_that_touch_become_one():
    assert box_of(64, 2, [(32, 2), (1, 999), (8, 64), (4, 1024)]) == Box(64, 512, ((4, 1024),))
    assert box_of(64, 2, [(32, 2), (8, 128), (4, 1024)]) == Box(64, 64, ((32, 128),))


def test_lanes_together():
    assert together([]) is None
    rows = [Box(1000 + 256 * lane, 64) for lane in range(32)]
    assert together(rows) == Box(1000, 64, ((32, 256),))
    assert together([Box(64 * lane, 64) for lane in range(4)]) == Box(0, 256)
    assert together([rows[3], rows[0], rows[1]]) == Box(1000, 192)  # at no equal distances: as many bytes
    deep = Box(0, 16, tuple((2, 1 << 6 + axis) for axis in range(5)))
    assert len(together([deep, deep._replace(start=1 << 20)]).words()) == 32


@pytest.mark.parametrize("words", [[-4], [1 << 25], [16, -1, 4], [1 << 12, 1 << 12, 1, 2, 2], [4, 1, 1 << 41]])
def test_boxes_that_cannot_be(words):
    row = np.array([[0, *words, *[0] * (31 - len(words))]])
    assert are_boxes(row, np.array([MASK]))[0] and not are_sound(row)[0]
    beyond = np.array([[0, 4, *[0] * (2 * AXES), *[1] * (30 - 2 * AXES)]])
    assert not are_sound(beyond)[0]
