"""What leaves an L1 with pipelines in the compiled loop: to the L2 of an SM alone, or as a request of one of a chip."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.collectors.l1 import next_request
from ppt_gpu.sm.collectors.l1_answers import part, put_answer
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.tags import line_place, whole
from ppt_gpu.sm.program.machine import ONE
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_STORE


@called
def send(mem: Any, cycle: int) -> None:
    """The next request leaves, if there is one."""
    request = next_request(mem)
    if request == 0:
        return
    mem[request + s.R_LEFT] = cycle
    op, line = mem[request + s.R_OPERATIONS] & c.PLACE, mem[request + s.R_LINE]
    sector = mem[request + s.R_MASK]
    before = cycle - mem[part(mem) + s.LAG]
    time = before * ONE
    if line >= 0:
        line &= c.LINE_MASK
    if mem[c.P_PERFECT] != 0:
        done = before + _round_trip(mem)
    elif mem[request + s.R_KIND] == KIND_STORE:
        done = whole(l2_write(mem, time, line_place(mem, line) & c.PLACE, line, sector)) + _round_trip(mem)
    else:
        atomic = int64(mem[op + s.O_KIND] == KIND_ATOMIC)
        if atomic != 0:
            mem[c.OUTWARD] = max(mem[c.OUTWARD], time) + mem[c.P_ICNT]
            if mem[op + s.O_WAIT] < 0:
                updates = mem[op + s.O_UPDATES]
                mem[op + s.O_WAIT] = max(0, mem[c.ATOMIC] - time) + (updates - 1) * mem[c.P_ATOMIC]
                mem[c.ATOMIC] = max(mem[c.ATOMIC], time) + updates * mem[c.P_ATOMIC_BUSY]
        done = l2_read(mem, time, line, sector, max(mem[op + s.O_WAIT], 0), atomic)
    put_answer(mem, request, done)
