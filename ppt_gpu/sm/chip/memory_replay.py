"""A run of a whole chip with another L2 or DRAM: the same run, where these answer what they were asked as before.

What happens inside the SMs depends on what is below them by its answers only. So the requests of a recorded run
(chip.record) are put to the other one, window by window; while the answers are the same, the run would have gone the
same way. It costs a fraction of the run where memory is seldom used, as by kernels that compute.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64, pointer
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.l2_dram import make_bring_in, serve_window
from ppt_gpu.sm.chip.machine import Chip
from ppt_gpu.sm.chip.slices import Below
from ppt_gpu.sm.loop.raw import DONE, Asked, Raw
from ppt_gpu.sm.program.machine import FRACTION
from ppt_gpu.sm.program.program import Program

#: fields of a Machine that nothing inside an SM of a chip reads
BELOW = frozenset((
    "dirty", "dram_cost", "dram_group", "dram_latency", "dram_turn", "dram_work", "dram_loaded", "dram_ahead",
    "dram_left", "l2_sets", "l2_ways", "l2_fifo", "l2_back", "l2_allocate", "l2_cost", "l2_write_cost", "l2_near",
    "l2_far",
))  # fmt: skip


@dataclass(frozen=True)
class RecordedChip:
    """What a run of a chip yielded, but for what is counted below its SMs."""

    block_start: NDArray[np.int64]  # [B]
    block_end: NDArray[np.int64]  # [B]
    warp_cycles: NDArray[np.int64]  # [reasons]
    op_stall: NDArray[np.int64]  # [O, reasons]
    asked: Asked


def chip_run_name(chip: Chip, resident: int, window: int) -> str:
    """Equal for runs of one program that go the same way as long as L2 and DRAM answer the same."""
    seen = [getattr(chip.sm, field.name) for field in fields(chip.sm) if field.name not in BELOW]
    starts = (chip.sms, chip.first_slots.tolist(), chip.ramp, chip.horizon)
    return digest("chip", *seen, starts, resident, window)[:32]


def recorded_chip(raw: Raw) -> RecordedChip | None:
    """The run, if everything that its SMs asked for was written down."""
    if raw.status != DONE or raw.asked is None:
        return None
    return RecordedChip(raw.block_start, raw.block_end, raw.warp_cycles, raw.op_stall, raw.asked)


def run_chip_again(program: Program, chip: Chip, run: RecordedChip, window: int) -> Raw | None:
    """What `run_chip` yields on `chip`, which has the `chip_run_name` of the recorded run; None: it goes another
    way."""
    began = time.thread_time()
    below, asked, most = Below(program, chip), run.asked.requests, q.requests_in(chip.sm, window)
    make_bring_in()(below.memory.mem, chip.warm, chip.dirty)
    stride = q.FIXED + (most << q.REQ_SHIFT)
    mems = np.zeros(chip.sms * stride, np.int64)
    mems.reshape(chip.sms, stride)[:, q.REQS] = q.FIXED
    room = np.empty((2, chip.sms * most), np.int64)
    same = make_chip_again()(
        asked.sm, asked.time, asked.line, asked.sectors, asked.kind, asked.wait, asked.start, asked.updates,
        asked.answer, mems, stride, chip.sms, below.memory.mem, below.slices.reshape(-1), below.channels, below.number,
        below.of_sm.reshape(-1), np.zeros(window + 1, np.int64), room[0], room[1],
    )  # fmt: skip
    if not same:
        return None
    cycles = max(int(run.block_end.max(initial=0)), run.asked.idle, below.idle())
    return Raw(
        DONE, cycles, run.block_start, run.block_end, run.warp_cycles, run.op_stall,
        run.asked.counters + below.memory.counters(), time.thread_time() - began,
    )  # fmt: skip


@cache
def make_chip_again() -> Any:
    """_again, compiled."""

    def again(
        sm: Any, time: Any, line: Any, sectors: Any, kind: Any, wait: Any, start: Any, updates: Any, answer: Any,
        mems: Any, stride: int, sms: int, below: Any, slices: Any, channels: Any, number: int, of_sm: Any, count: Any,
        keys: Any, order: Any,
    ) -> bool:  # fmt: skip
        return _again(
            sm, time, line, sectors, kind, wait, start, updates, answer, mems, stride, sms, below, slices, channels,
            number, of_sm, count, keys, order,
        )  # fmt: skip

    return entry(again)


@called
def _place(mems: Any, base: int) -> int:
    """Where the next request of the SM whose table begins at `base` goes; it has one more then."""
    request = base + q.FIXED + (mems[base + q.N_REQS] << q.REQ_SHIFT)
    mems[base + q.N_REQS] += 1
    return request


@called
def _again(
    sm: Any, time: Any, line: Any, sectors: Any, kind: Any, wait: Any, start: Any, updates: Any, answer: Any,
    mems: Any, stride: int, sms: int, below: Any, slices: Any, channels: Any, number: int, of_sm: Any, count: Any,
    keys: Any, order: Any,
) -> bool:  # fmt: skip
    """Whether what is below answers as before."""
    mems, window, total = pointer(mems), int64(len(count) - 1), len(time)
    at = 0
    while at < total:
        begin, first = (time[at] >> FRACTION) // window * window, at
        for one in range(sms):
            mems[one * stride + q.N_REQS] = 0
        while at < total and time[at] >> FRACTION < begin + window:
            request = _place(mems, sm[at] * stride)
            mems[request + q.R_TIME] = time[at]
            mems[request + q.R_LINE] = line[at]
            mems[request + q.R_SECTORS] = sectors[at]
            mems[request + q.R_KIND] = kind[at]
            mems[request + q.R_WAIT] = wait[at]
            mems[request + q.R_START] = start[at]
            mems[request + q.R_UPDATES] = updates[at]
            at += 1
        serve_window(
            mems, stride, sms, pointer(below), pointer(slices), pointer(channels), number, pointer(of_sm), begin,
            window, pointer(count), pointer(keys), pointer(order),
        )  # fmt: skip
        for one in range(sms):
            mems[one * stride + q.N_REQS] = 0
        for index in range(first, at):
            if mems[_place(mems, sm[index] * stride) + q.R_ANSWER] != answer[index]:
                return False
    return True
