"""A request at its slice of the L2, in the compiled loop, and at the DRAM channel of that."""

from __future__ import annotations

from typing import Any

from ppt_gpu.compiled import called
from ppt_gpu.sm import chip_memory as q
from ppt_gpu.sm import core_memory as c
from ppt_gpu.sm.chip_machine import ATOMIC, COPY, READ
from ppt_gpu.sm.core_bits import int64
from ppt_gpu.sm.core_chip import l2_read, l2_write
from ppt_gpu.sm.core_tags import line_place


@called
def at_slice(
    mems: Any, at: int, sm: int, this: int, time: int, start: int, wait: int, there: int, below: Any, slices: Any,
    channels: Any, number: int, of_sm: Any,
) -> None:  # fmt: skip
    """The request at place `at` of `mems` is answered by slice `this`, to which it comes at `time`; the operation of
    an atomic at `start`. wait: for others on the way of a read, at least; there: when a store is there, at least."""
    line, sectors, kind = mems[at + q.R_LINE], mems[at + q.R_SECTORS], mems[at + q.R_KIND]
    channel = slices[(number + 2 + this) * 2]
    below[c.L2_SERVER] = slices[this * 2]
    below[c.DRAM] = channels[channel]
    if kind in (READ, COPY, ATOMIC):
        if kind == ATOMIC:
            updates, busy = mems[at + q.R_UPDATES], this * 2 + 1
            if updates > 0:
                of_sm[sm * 2] = max(0, slices[busy] - start) + (updates - 1) * below[c.P_ATOMIC]
                slices[busy] = max(slices[busy], start) + updates * below[c.P_ATOMIC_BUSY]
            wait = max(wait, of_sm[sm * 2])
        mems[at + q.R_ANSWER] = l2_read(below, time, line, sectors, wait, int64(kind == ATOMIC))
    else:
        accepted = l2_write(below, time, line_place(below, line), line, sectors)
        mems[at + q.R_ANSWER] = max(accepted, there)
    slices[this * 2] = below[c.L2_SERVER]
    channels[channel] = below[c.DRAM]
