"""The heap of malloc in kernels: first fit behind the last block given out, then from the start.

Everything is in the heap's own bytes, so that it lives as long as device memory does. The first 16 bytes hold where
the next search begins. Each block begins with 16 bytes: its size with this header, and 1 when it is in use. A heap of
zeros is one free block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError

HEADER = 16  # B; blocks are multiples of it, as malloc's pointers must be


def allocate(heap: NDArray[np.uint8], base: int, size: int) -> int:
    """A pointer to `size` bytes that nobody else has, 0 when there is no room. `base` is the heap's address."""
    words = heap.view(np.int64)
    if size < 0 or size > len(heap):
        return 0
    wanted = HEADER + -(-max(size, 1) // HEADER) * HEADER
    start = int(words[0]) or HEADER
    at = _search(words, start, len(heap), wanted)
    if at < 0:
        at = _search(words, HEADER, len(heap), wanted)
    if at < 0:
        return 0
    room = _size(words, at)
    if room - wanted >= 2 * HEADER:
        words[(at + wanted) // 8] = room - wanted
        words[(at + wanted) // 8 + 1] = 0
    else:
        wanted = room
    words[at // 8], words[at // 8 + 1] = wanted, 1
    words[0] = at + wanted if at + wanted < len(heap) else HEADER
    return base + at + HEADER


def release(heap: NDArray[np.uint8], base: int, pointer: int) -> None:
    """Give a block back. PptError for what is no block in use; a null pointer is fine."""
    if not pointer:
        return
    words = heap.view(np.int64)
    at = pointer - base - HEADER
    if at < HEADER or at % HEADER or at + HEADER > len(heap) or words[at // 8 + 1] != 1 or words[at // 8] <= 0:
        raise PptError(f"free of {pointer:#x}, which malloc did not give or which is free already")
    words[at // 8 + 1] = 0


def _size(words: NDArray[np.int64], at: int) -> int:
    """The bytes of the block at an offset; 0 stands for all the rest. PptError when the kernel overwrote it."""
    rest = 8 * len(words) - at
    size = int(words[at // 8]) or rest
    if size < HEADER or size > rest or size % HEADER or words[at // 8 + 1] not in (0, 1):
        raise PptError("the kernel wrote behind a block of malloc: the heap is damaged")
    return size


def _search(words: NDArray[np.int64], at: int, end: int, wanted: int) -> int:
    """The offset of the first free block from `at` on that is large enough; joins free neighbours on its way."""
    while at < end:
        size = _size(words, at)
        if not words[at // 8 + 1]:
            following = at + size
            while following < end and not words[following // 8 + 1]:
                size += _size(words, following)
                following = at + size
            words[at // 8] = size
            if size >= wanted:
                return at
        at += size
    return -1
