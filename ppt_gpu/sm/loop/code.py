"""Instruction fetch, and constants, in the compiled loop. As `reference.code` and `reference.constants`, on `mem`."""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.lsu import leave_queue
from ppt_gpu.sm.loop.memory import (
    CODE,
    CODE_FILL,
    CODE_KNOWN,
    CODE_LINE,
    CONSTANT_SERVER,
    CONSTANT_TABLE,
    CONSTANTS,
    DRAM,
    INWARD,
    L2_SERVER,
    LSU,
    P_CODE_DRAM,
    P_CODE_L2,
    P_CODE_SETS,
    P_CODE_WAYS,
    P_CONSTANT_BEHIND,
    P_CONSTANT_FILL,
    P_CONSTANT_LATE,
    P_CONSTANT_LATENCY,
    P_CONSTANT_MISS,
    P_CONSTANT_QUEUED,
    P_CONSTANT_SETS,
    P_CONSTANT_WAYS,
    PLACE,
)
from ppt_gpu.sm.loop.state import LINE_AT, LINE_OF
from ppt_gpu.sm.loop.tags import make_newest, way_of, whole
from ppt_gpu.sm.program.machine import ONE


@called
def line_there(mem: Words, operation: int, behind: int, queued: int, time: int) -> int:
    """Cycle from `time` on at which the line of the code is there in which the operation stands, or with `behind` 1 the
    instruction behind it. `queued`: answers that come in before that to this line, if it is not there."""
    sets, ways = mem[P_CODE_SETS], mem[P_CODE_WAYS]
    line = mem[(mem[CODE_LINE] & PLACE) + 2 * operation + behind] & PLACE
    first = (mem[CODE] & PLACE) + (line % sets) * ways * 2
    last = first + (ways - 1) * 2
    at = way_of(mem, first, last, line)
    if mem[at] == line + 1:
        fill = mem[at + 1]
    else:
        fill = line_fill(mem, line, time) + queued
        mem[CODE_FILL] = max(mem[CODE_FILL], fill)
    make_newest(mem, at, last, line, fill)
    return max(time, fill)


@called
def line_fill(mem: Words, line: int, time: int) -> int:
    """Cycle at which a line of the code is there that is asked for at `time`."""
    server = time * ONE
    wait, latency = max(0, mem[L2_SERVER] - server, mem[INWARD] - server), mem[P_CODE_L2]
    known = (mem[CODE_KNOWN] & PLACE) + line
    if mem[known] == 0:
        mem[known] = 1
        wait, latency = max(wait, mem[DRAM] - server), mem[P_CODE_DRAM]
    return whole(server + wait) + latency


@merged
def constant_there(mem: Words, start: int) -> int:
    """Cycle at which a constant is there that is read in cycle `start`."""
    if mem[P_CONSTANT_LATE] != 0:
        if mem[CONSTANTS] == 0:
            mem[CONSTANTS] = start + mem[P_CONSTANT_LATE] - 2
        return start + mem[P_CONSTANT_LATENCY] + (mem[P_CONSTANT_LATE] if start < mem[CONSTANTS] else int64(0))
    if mem[CONSTANTS] == 0:
        mem[CONSTANTS] = start + mem[P_CONSTANT_MISS]
    return max(start + mem[P_CONSTANT_LATENCY], mem[CONSTANTS])


@called
def constant(mem: Words, cycle: int) -> tuple[int, int]:
    """A constant read issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    start, place = cycle, int64(0)
    if mem[P_CONSTANT_QUEUED] != 0:
        begin = max(cycle * ONE, mem[LSU])
        mem[LSU] = begin + ONE
        place = leave_queue(mem, whole(mem[LSU]))
        start = whole(begin)
        mem[CODE_FILL] = max(mem[CODE_FILL], cycle + 1)
    return constant_there(mem, start), place


@called
def read_constant(mem: Words, sync: Words, warp: int, cycle: int, latency: int) -> int:
    """The next read of `warp`, in `cycle`, `latency` cycles for a hit: cycle of its result."""
    there, cursor = cycle, sync[LINE_AT] + warp
    while True:
        word = sync[sync[LINE_OF] + sync[cursor]]
        sync[cursor] += 1
        there = max(there, _constant_line(mem, word >> 1, cycle))
        if word & 1 != 0:
            return there + latency


@called
def _constant_line(mem: Words, line: int, cycle: int) -> int:
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
