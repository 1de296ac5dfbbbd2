"""Sectors of which a store writes a part: the L2 has to put the bytes between those that it has, and takes longer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.accesses.access import Variants, access_keys
from ppt_gpu.sm.accesses.coalesce import WARP
from ppt_gpu.sm.accesses.shapes import GLOBAL, key_parts

BYTES = 32  # of a sector; in others nothing is known of parts


def written_in_part(
    sector: int,
    variants: Variants,
    variant: NDArray[np.int32],
    pattern: NDArray[np.int32],
    base: NDArray[np.int64],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> float:
    """Share of the sectors written by stores to global memory of which the warp's store does not write all bytes.

    variant, pattern, base [M], offsets [N, 32] and masks [N] as `accesses.access.lower_accesses` has them.
    """
    stores = np.append(~variants.load & ~variants.atomic & (variants.space == GLOBAL), False)  # the last: -1, nothing
    chosen = np.flatnonzero(stores[variant])
    if sector != BYTES or not len(chosen):
        return 0.0
    period = np.full(len(variants.size), BYTES, np.int64)
    ids, keys = dense_ids(access_keys(variant[chosen], pattern[chosen], base[chosen], period).view(np.uint64))
    kind, pattern_of, begin = key_parts(keys)
    times, size = np.bincount(ids), variants.size[kind].astype(np.int64)
    written, parts = np.zeros((2, len(times)), np.int64)
    _count_parts(pattern_of, begin, size, offsets, masks.astype(np.int64), written, parts)
    return float((parts * times).sum() / max(1, (written * times).sum()))


@entry
def _count_parts(
    pattern: np.ndarray, begin: np.ndarray, size: np.ndarray, offsets: np.ndarray, masks: np.ndarray,
    written: np.ndarray, parts: np.ndarray,
) -> None:  # fmt: skip
    """written, parts [U]: sectors that each of the stores writes, and of these in part. begin: place in a sector."""
    for i in range(len(pattern)):
        mask, offset = masks[pattern[i]], offsets[pattern[i]]
        bytes_of_lane = (1 << size[i]) - 1
        for lane in range(WARP):
            sector = (begin[i] + offset[lane]) // BYTES
            earlier = mask >> lane & 1 == 0
            for other in range(lane):
                earlier |= mask >> other & 1 == 1 and (begin[i] + offset[other]) // BYTES == sector
            if earlier:
                continue
            found = 0
            for other in range(lane, WARP):
                at = begin[i] + offset[other]
                if mask >> other & 1 and at // BYTES == sector:
                    found |= bytes_of_lane << at % BYTES
            written[i] += 1
            if found & 0xFFFFFFFF != 0xFFFFFFFF:
                parts[i] += 1
