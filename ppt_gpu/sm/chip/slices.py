"""The slices of the L2 and the DRAM channels of a chip, and a request at them in the compiled loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called
from ppt_gpu.common.records import Record, Words, viewer
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.crossbar import RECORD_WORDS, RECORDS, crossbars
from ppt_gpu.sm.chip.machine import ATOMIC, COPY, READ, Chip
from ppt_gpu.sm.chip.staged_l1_state import AT_ONCE
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
from ppt_gpu.sm.loop.tags import line_place
from ppt_gpu.sm.program.machine import ONE
from ppt_gpu.sm.program.program import Program


class Shared(Record):
    """The requests of all SMs in a window, and what answers them."""

    mems: Words  # [sms, stride] of the SMs
    below: Words  # the memory system with the L2
    slices: Words  # as Below.words
    channels: Words
    of_sm: Words  # as Below.of_sm
    count: Words  # room: [window + 1]
    keys: Words  # room: [requests of all SMs]
    order: Words
    stride: int
    sms: int
    number: int  # of slices
    window: int  # cycles


shared_at: Callable[[Words], Shared] = viewer(Shared)


@called
def at_slice(
    chip: Shared, requests: Words, at: int, sm: int, this: int, time: int, start: int, wait: int, there: int
) -> None:
    """The request at place `at` of `requests` is answered by slice `this`, to which it comes at `time`; the operation
    of an atomic at `start`. wait: for others on the way of a read, at least; there: when a store is there, at least."""
    line, sectors, kind = requests[at + q.R_LINE], requests[at + q.R_SECTORS], requests[at + q.R_KIND]
    below, channel = chip.below, chip.slices[(chip.number + 2 + this) * 2]
    below[c.L2_SERVER] = chip.slices[this * 2]
    below[c.DRAM] = chip.channels[channel]
    if kind in (READ, COPY, ATOMIC):
        if kind == ATOMIC:
            updates, busy = requests[at + q.R_UPDATES], this * 2 + 1
            if updates > 0:
                chip.of_sm[sm * 2] = max(0, chip.slices[busy] - start) + (updates - 1) * below[c.P_ATOMIC]
                chip.slices[busy] = max(chip.slices[busy], start) + updates * below[c.P_ATOMIC_BUSY]
            wait = max(wait, chip.of_sm[sm * 2])
        requests[at + q.R_ANSWER] = l2_read(below, time, line, sectors, wait, int64(kind == ATOMIC))
    else:
        accepted = l2_write(below, time, line_place(below, line), line, sectors)
        requests[at + q.R_ANSWER] = max(accepted, there)
    chip.slices[this * 2] = below[c.L2_SERVER]
    chip.channels[channel] = below[c.DRAM]


class Below:
    """What all SMs share: `memory`, of which loop.l2_dram_share uses the L2, and the times of slices and channels."""

    def __init__(self, program: Program, chip: Chip) -> None:
        self.memory = c.MemoryArrays(program, chip.below, chip.l2_set)
        sets_at = int(self.memory.mem[c.LINES])
        lines = self.memory.mem[sets_at : sets_at + len(program.line_address) * c.LINE_WORDS]
        lines.reshape(-1, c.LINE_WORDS)[:, q.SLICE] = chip.slice_of
        #: [2 * slices + 2, 2] time of the L2 and of same-address updates; then how many requests had no address, and
        #: the time of the way to the L2; then what a sector costs on the link into an SM, and there; then, of each
        #: slice, its channel; then where q.WAY_THERE and the others begin
        own = (2 * chip.slices + 2) * 2
        ways = dict(zip((q.WAY_THERE, q.WAY_BACK, q.WAY_AHEAD), crossbars(chip), strict=False))
        begins = own + 4
        in_flight = begins + sum(map(len, ways.values()))
        room = RECORDS + chip.sms * (AT_ONCE + 2) * RECORD_WORDS if chip.crossbar else 0
        self.words = np.zeros(in_flight + room, np.int64)  # what is never written takes no memory
        self.words[own + q.IN_FLIGHT] = in_flight
        for way, words in ways.items():
            self.words[own + way] = begins
            self.words[begins : begins + len(words)] = words
            begins += len(words)
        self.slices = self.words[:own].reshape(-1, 2)
        self.slices[chip.slices + 1] = chip.sm.icnt_cost, q.BY_CROSSBAR if chip.crossbar else chip.across_cost
        self.slices[chip.slices + 2 :, 0] = [chip.channel(number) for number in range(chip.slices)]
        self.channels = np.zeros(chip.channels, np.int64)
        self.number = chip.slices
        #: [sms, 2] wait of an SM's last atomic for updates of the same address; time of the link into it
        self.of_sm = np.zeros((chip.sms, 2), np.int64)

    def idle(self) -> int:
        """The cycle from which no server is busy."""
        return -(
            -max(
                int(self.slices[: self.number].max(initial=0)),
                int(self.slices[self.number, 1]),
                int(self.channels.max(initial=0)),
                int(self.of_sm[:, q.LINK].max(initial=0)),
            )
            // ONE
        )
