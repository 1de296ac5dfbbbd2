"""The buffers of a kernel trace: what the host copied, and other stretches of global memory that the kernel uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sass.accesses import GLOBAL
from ppt_gpu.workload.workload import Range

#: B without an access that tell two buffers apart: cudaMalloc aligns to 256 B, and large buffers to pages of 2 MiB
APART = 1 << 16


def with_accessed(
    ranges: tuple[Range, ...],
    base: NDArray[np.uint64],
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
    sizes: NDArray[np.int64],
) -> tuple[Range, ...]:
    """`ranges` by address, and a buffer for each further stretch of global memory that the accesses touch.

    sizes: bytes that a lane of each access moves.
    """
    chosen = (space == GLOBAL) & (masks[pattern] != 0) if len(masks) else np.zeros(0, np.bool_)
    first = (
        base[chosen].astype(np.int64) + offsets.min(axis=1)[pattern[chosen]] if len(masks) else np.zeros(0, np.int64)
    )
    last = base[chosen].astype(np.int64) + offsets.max(axis=1)[pattern[chosen]] if len(masks) else first
    last = last + sizes[chosen]
    found = sorted(ranges, key=lambda area: area.start)
    for area in found:
        outside = (first < area.start) | (first >= area.start + area.bytes)
        first, last = first[outside], last[outside]
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order]) if len(order) else last
    cuts = np.flatnonzero(first[1:] - last[:-1] > APART) + 1
    for number, part in enumerate(np.split(np.arange(len(first)), cuts)):
        if len(part):
            start = int(first[part[0]]) // 256 * 256
            found.append(Range(f"memory{number}", start, int(last[part[-1]]) - start, False))
    return tuple(found)
