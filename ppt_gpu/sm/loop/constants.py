"""The SM's cache of constants that registers choose, in the compiled loop. As `reference.constants`, on `mem`."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.compiled import called
from ppt_gpu.sm.loop.memory import (
    CONSTANT_SERVER,
    CONSTANT_TABLE,
    P_CONSTANT_BEHIND,
    P_CONSTANT_FILL,
    P_CONSTANT_SETS,
    P_CONSTANT_WAYS,
    PLACE,
)
from ppt_gpu.sm.loop.state import LINE_AT, LINE_OF
from ppt_gpu.sm.loop.tags import make_newest, way_of, whole
from ppt_gpu.sm.program.machine import ONE


@called
def read_constant(mem: Any, sync: Any, warp: int, cycle: int, latency: int) -> int:
    """The next read of `warp`, in `cycle`, `latency` cycles for a hit: cycle of its result."""
    there, cursor = cycle, sync[LINE_AT] + warp
    while True:
        word = sync[sync[LINE_OF] + sync[cursor]]
        sync[cursor] += 1
        there = max(there, _line(mem, word >> 1, cycle))
        if word & 1 != 0:
            return there + latency


@called
def _line(mem: Any, line: int, cycle: int) -> int:
    """Cycle at which a line is in the cache that is asked for in `cycle`."""
    ways = mem[P_CONSTANT_WAYS]
    first = (mem[CONSTANT_TABLE] & PLACE) + (line % mem[P_CONSTANT_SETS]) * ways * 2
    last = first + (ways - 1) * 2
    at = way_of(mem, first, last, line)
    if mem[at] == line + 1:
        fill = mem[at + 1]
    else:
        begin = max(cycle * ONE, mem[CONSTANT_SERVER])
        mem[CONSTANT_SERVER] = begin + mem[P_CONSTANT_FILL]
        fill = whole(begin) + mem[P_CONSTANT_BEHIND]
    make_newest(mem, at, last, line, fill)
    return fill
