"""A small hash table in `mem` by which an L1 finds its lines, where not every line of the program has a record for it.

A word has line + 1, above the node's place, or is 0. The table begins at `tags`, `mask`: its words - 1.
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged

PLACE_BITS = 28


@merged
def tag(line: int, mask: int) -> int:
    """Where in the table a line begins to be looked for. (Multiplied by 2^64 over the golden ratio.)"""
    return ((line * int64(-7046029254386353131)) >> 32) & mask


@called
def find(mem: Any, tags: int, mask: int, line: int) -> int:
    """The node of a line, 0: none."""
    place = tag(line, mask)
    word = mem[tags + place]
    while word != 0 and word >> PLACE_BITS != line + 1:
        place = (place + 1) & mask
        word = mem[tags + place]
    return word & ((int64(1) << PLACE_BITS) - 1)


@called
def forget(mem: Any, tags: int, mask: int, line: int) -> None:
    """Take a line out of the table; others that its place had kept from theirs move up."""
    hole = tag(line, mask)
    while mem[tags + hole] >> PLACE_BITS != line + 1:
        hole = (hole + 1) & mask
    place = (hole + 1) & mask
    word = mem[tags + place]
    while word != 0:
        if (place - tag((word >> PLACE_BITS) - 1, mask)) & mask >= (place - hole) & mask:
            mem[tags + hole] = word
            hole = place
        place = (place + 1) & mask
        word = mem[tags + place]
    mem[tags + hole] = 0


@called
def remember(mem: Any, tags: int, mask: int, line: int, node: int) -> None:
    """Put a line that is not there into the table."""
    place = tag(line, mask)
    while mem[tags + place] != 0:
        place = (place + 1) & mask
    mem[tags + place] = ((line + 1) << PLACE_BITS) | node
