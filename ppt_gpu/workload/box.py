"""Boxes: the bytes that a bulk copy reads or writes in global memory, and how a trace holds them as a pattern.

A box is a row of bytes that lie side by side, repeated along up to `AXES` axes. Its pattern has the mask 1: word 0 is
the base, 0; word 1 the bytes of a row, never 0, which tells it from the pattern of one lane; then the number of
repetitions and the distance in bytes of each axis, innermost first, 0 behind the last axis. Where an mbarrier is told,
two more words say which (its address in shared memory + 1) and how many bytes. A copy that moves nothing of global
memory, as its box lies outside of the tensor, but tells an mbarrier, has these two words only, and the mask 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MASK = 1
AXES = 6  # five of a tensor, and the lanes of a warp
ROW, FIRST_AXIS = 1, 2  # words
WORDS = FIRST_AXIS + 2 * AXES
SIGNAL, SIGNALLED = WORDS, WORDS + 1
LARGEST = 1 << 24  # B: what 32 lanes copy at most fits


class Box(NamedTuple):
    start: int  # address
    row: int  # B
    axes: tuple[tuple[int, int], ...] = ()  # (repetitions, distance in B), innermost first
    signal: tuple[int, int] = (-1, 0)  # address of the mbarrier that is told, -1: none; B

    @property
    def bytes(self) -> int:
        return self.row * int(np.prod([count for count, _ in self.axes], dtype=np.int64))

    @property
    def mask(self) -> int:
        """That of its pattern."""
        return MASK if self.row else 0

    def words(self) -> tuple[int, ...]:
        """The 32 words of its pattern."""
        flat = [word for axis in self.axes for word in axis]
        place, size = self.signal
        told = (place + 1, size if place >= 0 else 0)
        return (0, self.row, *flat, *(0,) * (WORDS - FIRST_AXIS - len(flat)), *told, *(0,) * (32 - SIGNALLED - 1))


def box_of(start: int, row: int, axes: Sequence[tuple[int, int]]) -> Box:
    """The box with as few axes as describe it: rows that touch become one."""
    kept: list[tuple[int, int]] = []
    for count, distance in axes:
        if count == 1:
            continue
        if not kept and distance == row:
            row *= count
        elif kept and distance == kept[-1][0] * kept[-1][1]:
            kept[-1] = (kept[-1][0] * count, kept[-1][1])
        else:
            kept.append((count, distance))
    return Box(start, row, tuple(kept))


def together(boxes: Sequence[Box]) -> Box | None:
    """The copies of a warp's lanes as one box; None without any.

    Lanes that copy boxes of one form at equal distances are one more axis. Others are taken to copy as many bytes
    side by side from the lowest address on. All are taken to tell the mbarrier of the first.
    """
    if not boxes:
        return None
    signal = (boxes[0].signal[0], sum(box.signal[1] for box in boxes))
    boxes = [box for box in boxes if box.row]
    if not boxes:
        return Box(0, 0, (), signal)
    first = boxes[0]
    away = {second.start - box.start for box, second in pairwise(boxes)}
    alike = all(box[1:3] == first[1:3] for box in boxes)
    if len(boxes) == 1 or (alike and len(away) == 1):
        return box_of(*first[:2], [*first.axes, (len(boxes), away.pop() if away else 0)])._replace(signal=signal)
    return Box(min(box.start for box in boxes), sum(box.bytes for box in boxes), (), signal)


def are_boxes(offset: NDArray[np.int64], mask: NDArray) -> NDArray[np.bool_]:
    """[N] which patterns are boxes."""
    return (mask == MASK) & (offset[:, ROW] != 0)


def are_empty_boxes(offset: NDArray[np.int64], mask: NDArray) -> NDArray[np.bool_]:
    """[N] which patterns are copies that move nothing, but tell an mbarrier."""
    told = offset[:, SIGNAL : SIGNALLED + 1]
    others = np.delete(offset, (SIGNAL, SIGNALLED), axis=1).any(axis=1)
    return (mask == 0) & ~others & ((told > 0) & (told <= 1 << 32)).all(axis=1)


def rows_of(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """[N] number of rows of each box. words [N, 32]."""
    counts = words[:, FIRST_AXIS:WORDS:2]
    return np.where(counts > 0, counts, 1).prod(axis=1)


def are_sound(words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[N] can each box be one that `Box.words` made? Then every sum over it fits 64 bits. words [N, 32]."""
    counts, distances = words[:, FIRST_AXIS:WORDS:2], words[:, FIRST_AXIS + 1 : WORDS : 2]
    small = (words[:, ROW] > 0) & (words[:, ROW] <= LARGEST) & ((counts >= 0) & (counts <= LARGEST)).all(axis=1)
    product = np.where(counts > 0, counts, 1).astype(float).prod(axis=1) * words[:, ROW]
    told = ((words[:, SIGNAL : SIGNALLED + 1] >= 0) & (words[:, SIGNAL : SIGNALLED + 1] <= 1 << 32)).all(axis=1)
    rest = words[:, SIGNALLED + 1 :].any(axis=1)
    return small & told & (product <= LARGEST) & ~rest & (np.abs(distances) < 1 << 40).all(axis=1)


def span(words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[N] each: the lowest byte of a box, from its base, and the byte behind the highest. words [N, 32]."""
    reach = (words[:, FIRST_AXIS:WORDS:2] - 1).clip(0) * words[:, FIRST_AXIS + 1 : WORDS : 2]
    return reach.clip(None, 0).sum(axis=1), reach.clip(0).sum(axis=1) + words[:, ROW]
