"""Instruction fetch and the first constant read in the compiled loop. As `reference_code`, on `mem`."""

from __future__ import annotations

from typing import Any

from numba import njit

from ppt_gpu.sm.core_machine import ONE
from ppt_gpu.sm.core_memory import (
    CODE,
    CODE_FILL,
    CODE_KNOWN,
    CODE_LINE,
    CONSTANTS,
    DRAM,
    INWARD,
    L2_SERVER,
    P_CODE_DRAM,
    P_CODE_L2,
    P_CODE_SETS,
    P_CODE_WAYS,
    P_CONSTANT_MISS,
    PLACE,
)
from ppt_gpu.sm.core_tags import whole


@njit(_nrt=False)
def fetch(mem: Any, operation: int, time: int) -> int:
    """Cycle from `time` on at which the instruction line of `operation` is there."""
    sets, ways = mem[P_CODE_SETS], mem[P_CODE_WAYS]
    if sets == 0:
        return time
    line = mem[(mem[CODE_LINE] & PLACE) + operation] & PLACE
    first = (mem[CODE] & PLACE) + (line % sets) * ways * 2
    last = first + (ways - 1) * 2
    at = first  # where the line is, else the way that it gets
    for way in range(first, last + 2, 2):
        if mem[way] == line + 1:
            at = way
    if mem[at] == line + 1:
        fill = mem[at + 1]
    else:
        server = time * ONE
        wait, latency = max(0, mem[L2_SERVER] - server, mem[INWARD] - server), mem[P_CODE_L2]
        known = (mem[CODE_KNOWN] & PLACE) + line
        if mem[known] == 0:
            mem[known] = 1
            wait, latency = max(wait, mem[DRAM] - server), mem[P_CODE_DRAM]
        fill = whole(server + wait) + latency
        mem[CODE_FILL] = max(mem[CODE_FILL], fill)
    for way in range(at, last, 2):
        mem[way] = mem[way + 2]
        mem[way + 1] = mem[way + 3]
    mem[last] = line + 1
    mem[last + 1] = fill
    return max(time, fill)


@njit(_nrt=False)
def constant(mem: Any, cycle: int, done: int) -> int:
    """Cycle at which a constant is there that is read in `cycle` and, in the constant cache, takes until `done`."""
    if mem[CONSTANTS] == 0:
        mem[CONSTANTS] = cycle + mem[P_CONSTANT_MISS]
    return max(done, mem[CONSTANTS])
