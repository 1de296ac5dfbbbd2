"""Cache records in `mem`: chains of nodes in replacement order, lines that find their nodes. See loop.memory."""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.memory import (
    DIRTY,
    FILL,
    FILLING,
    HOLDS,
    LINE_WORDS,
    LINES,
    MERGED,
    NEWEST,
    NEXT,
    PLACE,
    PREV,
    VALID,
    VICTIM,
)
from ppt_gpu.sm.program.machine import FRACTION, ONE

#: a word of the hash table has line + 1 above the node's place, of so many bits, or is 0
PLACE_BITS = 28


@merged
def line_place(mem: Words, line: int) -> int:
    """Place of the record of line number `line`; 0 for a FORCED_* one."""
    return mem[LINES] + line * LINE_WORDS if line >= 0 else int64(0)


@merged
def way_of(mem: Words, first: int, last: int, line: int) -> int:
    """Of a small set, whose ways stand from `first` to `last`, the least recent first, each with line + 1 and the cycle
    at which it is there: the way of the line, or that which it gets."""
    at = first
    for way in range(first, last + 2, 2):
        if mem[way] == line + 1:
            at = way
    return at


@merged
def make_newest(mem: Words, at: int, last: int, line: int, fill: int) -> None:
    """The line of way `at` of a small set is its newest, and there in cycle `fill`."""
    for way in range(at, last, 2):
        mem[way] = mem[way + 2]
        mem[way + 1] = mem[way + 3]
    mem[last] = line + 1
    mem[last + 1] = fill


@merged
def unlink(mem: Words, at: int, node: int) -> None:
    before, after = mem[node + PREV] & PLACE, mem[node + NEXT] & PLACE
    if before:
        mem[before + NEXT] = after
    else:
        mem[at + VICTIM] = after
    if after:
        mem[after + PREV] = before
    else:
        mem[at + NEWEST] = before


@merged
def renew(mem: Words, at: int, node: int) -> None:
    """Make `node` the newest of the set at `at`."""
    if mem[at + NEWEST] != node:
        unlink(mem, at, node)
        newest = mem[at + NEWEST] & PLACE
        mem[newest + NEXT] = node
        mem[node + PREV] = newest
        mem[node + NEXT] = 0
        mem[at + NEWEST] = node


@called
def drop(mem: Words, at: int, node: int) -> None:
    """Empty `node` and make it the next victim of its set."""
    mem[node + HOLDS] = 0
    if mem[at + VICTIM] != node:
        unlink(mem, at, node)
        victim = mem[at + VICTIM] & PLACE
        mem[victim + PREV] = node
        mem[node + NEXT] = victim
        mem[node + PREV] = 0
        mem[at + VICTIM] = node


@merged
def claim(mem: Words, which: int, at: int, node: int, place: int) -> None:
    """Give `node`, the victim of its set, to the line at `place`, as its L1_NODE or L2_NODE (`which`)."""
    old = mem[node + HOLDS] & PLACE
    if old:
        mem[old + which] = 0
    mem[place + which] = node
    mem[node + HOLDS] = place
    mem[node + VALID] = 0
    mem[node + DIRTY] = 0
    mem[node + FILL] = 0
    mem[node + FILLING] = 0
    mem[node + MERGED] = 0
    renew(mem, at, node)


@merged
def request(mem: Words, node: int, now: int, done: int, sectors: int) -> None:
    """`sectors` are on their way and arrive at `done`."""
    if mem[node + FILL] > now:
        mem[node + FILLING] |= sectors
    else:
        mem[node + FILLING] = sectors
    mem[node + FILL] = max(mem[node + FILL], done)
    mem[node + VALID] |= sectors


@merged
def whole(time: int) -> int:
    """Server time to the next whole cycle."""
    return (time + (ONE - 1)) >> FRACTION


@merged
def tag(line: int, mask: int) -> int:
    """Where in a hash table of `mask` + 1 words a line begins to be looked for: an L1 finds its lines by one where not
    every line of the program has a record for it. (Multiplied by 2^64 over the golden ratio.)"""
    return ((line * int64(-7046029254386353131)) >> 32) & mask


@called
def find(mem: Words, tags: int, mask: int, line: int) -> int:
    """The node of a line, 0: none. The hash table begins at `tags`."""
    place = tag(line, mask)
    word = mem[tags + place]
    while word != 0 and word >> PLACE_BITS != line + 1:
        place = (place + 1) & mask
        word = mem[tags + place]
    return word & ((int64(1) << PLACE_BITS) - 1)


@called
def forget(mem: Words, tags: int, mask: int, line: int) -> None:
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
def remember(mem: Words, tags: int, mask: int, line: int, node: int) -> None:
    """Put a line that is not there into the table."""
    place = tag(line, mask)
    while mem[tags + place] != 0:
        place = (place + 1) & mask
    mem[tags + place] = ((line + 1) << PLACE_BITS) | node
