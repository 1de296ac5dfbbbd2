"""All accesses of a trace from those that were recorded: the others lie at known distances.

`ppt_gpu.emulator.analysis.access_groups` finds these distances while code is written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.memory.warp_context import FULL_MASK
from ppt_gpu.emulator.trace.record_words import SPACE_BITS

_SPACE = (1 << SPACE_BITS) - 1


@entry
def expand_groups(
    warp_path: NDArray[np.int32],  # [W]
    path_start: NDArray[np.int64],  # [P+1]
    path_segment: NDArray[np.int32],  # segments of the paths
    start: NDArray[np.int64],  # of `analysis.access_groups.Groups`, as the next three
    records: NDArray[np.int64],
    leader: NDArray[np.int64],
    distance: NDArray[np.int64],
    recorded: NDArray[np.int64],  # [W, 2] where the records of each warp begin and end
    record_base: NDArray[np.int64],
    record_header: NDArray[np.uint32],
    masks: NDArray[np.int64],  # of `digest_patterns.Stored`
    number: NDArray[np.int32],  # of each pattern in the trace, by its line; empty: lines are their numbers
    base: NDArray[np.int64],  # [A] room for all accesses
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
) -> int:
    """Write the accesses of all warps. Returns the number of warps whose records are those that their paths make."""
    at = np.uint64(0)
    for w in range(len(warp_path)):
        r = recorded[w, 0]
        p = warp_path[w]
        for k in range(path_start[p], path_start[p + 1]):
            s = path_segment[np.uint64(k)]
            for j in range(start[s], start[s + 1]):
                q = np.uint64(r + leader[np.uint64(j)])
                line = np.uint64(record_header[q] >> SPACE_BITS)
                away = distance[np.uint64(j)]
                if away != 0 and masks[line] & FULL_MASK == 0:  # an access without lanes is nowhere
                    away = 0
                base[at] = record_base[q] + away
                pattern[at] = number[line] if len(number) > 0 else np.int64(line)
                space[at] = record_header[q] & _SPACE
                at += np.uint64(1)
            r += records[s]
        if r != recorded[w, 1]:
            return w
    return len(warp_path)


@entry
def expand_space(
    wanted: int,
    warp_path: NDArray[np.int32],  # as of `expand_groups`, up to `masks`
    path_start: NDArray[np.int64],
    path_segment: NDArray[np.int32],
    start: NDArray[np.int64],
    records: NDArray[np.int64],
    leader: NDArray[np.int64],
    distance: NDArray[np.int64],
    recorded: NDArray[np.int64],
    record_base: NDArray[np.int64],
    record_header: NDArray[np.uint32],
    masks: NDArray[np.int64],
    memory_start: NDArray[np.int64],  # [P+1] where the memory instructions of each path begin
    memory_pc: NDArray[np.int32],
    ends: NDArray[np.int64],  # [W] accesses up to the end of each warp
    pc: NDArray[np.int32],  # room for all accesses, as the next two
    base: NDArray[np.int64],
    header: NDArray[np.uint32],
) -> int:
    """Write the accesses of all warps to one space, with the headers of their records. Returns as `expand_groups`."""
    at = np.uint64(0)
    for w in range(len(warp_path)):
        r = recorded[w, 0]
        p = warp_path[w]
        m = memory_start[p]
        for k in range(path_start[p], path_start[p + 1]):
            s = path_segment[np.uint64(k)]
            for j in range(start[s], start[s + 1]):
                q = np.uint64(r + leader[np.uint64(j)])
                if record_header[q] & _SPACE == wanted:
                    away = distance[np.uint64(j)]
                    if away != 0 and masks[np.uint64(record_header[q] >> SPACE_BITS)] & FULL_MASK == 0:
                        away = 0
                    pc[at] = memory_pc[np.uint64(m)]
                    base[at] = record_base[q] + away
                    header[at] = record_header[q]
                    at += np.uint64(1)
                m += 1
            r += records[s]
        if r != recorded[w, 1] or m != memory_start[p + 1]:
            return w
        ends[w] = at
    return len(warp_path)
