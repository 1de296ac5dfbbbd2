"""Run a program on all SMs of a GPU: check the input, choose the loop.

A whole chip: all blocks of a launch on all its SMs, which share the L2 and DRAM. See README.md, "The whole chip".
"""

from __future__ import annotations

import time
from threading import Barrier
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.records import addresses
from ppt_gpu.common.threads import COMPILING, allowed, together
from ppt_gpu.sm import reference as reference_loops
from ppt_gpu.sm.chip.l2_dram import bring_in
from ppt_gpu.sm.chip.loop import make_advance_sms
from ppt_gpu.sm.chip.machine import Chip, checked_window, chip_of, with_left
from ppt_gpu.sm.chip.memory import ALIGNED, LINK_OUT, ChipArrays, SmMemory
from ppt_gpu.sm.chip.round import CHIP_WORDS, END, LAG, LIMIT, NEXT, STATUS, WINDOW, close_round
from ppt_gpu.sm.chip.slices import Below, Shared
from ppt_gpu.sm.collectors.chip import StagedSms
from ppt_gpu.sm.collectors.state import StagedState
from ppt_gpu.sm.loop.loop import SPECIALISE_CHIP_FROM, pays
from ppt_gpu.sm.loop.memory import ATOMIC, COPIER, LSU, REQUESTS, RETURNS, C
from ppt_gpu.sm.loop.pack import Packed
from ppt_gpu.sm.loop.run_end import DONE, PAUSED, result_of, unfinished
from ppt_gpu.sm.loop.state import State
from ppt_gpu.sm.one_sm import MAX_CYCLES, check
from ppt_gpu.sm.program.highest_first import highest_first
from ppt_gpu.sm.program.machine import COUNTERS, FRACTION, NEVER
from ppt_gpu.sm.program.program import CODE_COLD, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu


class Sms(Protocol):
    """The SMs of a chip without their memory, of one kind: CoreSms, or StagedSms where they have collector units."""

    @property
    def state(self) -> State | StagedState:
        """That of one SM at the start."""

    def advance(self, run: ChipArrays, first: int, last: int) -> None:
        """Bring SMs `first` to `last` - 1 as far as they can go."""


def sms_of(program: Program, chip: Chip, resident: int) -> Sms:
    """Those of the chip."""
    if chip.sm.collectors:
        return StagedSms(program, chip, resident)
    return CoreSms(program, chip, resident)


class CoreSms:
    """SMs in the loop of `loop/loop.py`."""

    def __init__(self, program: Program, chip: Chip, resident: int) -> None:
        self.state = State(program, chip.sm, Packed(program, chip.sm), resident)
        fixed = pays(program, chip.sm, SPECIALISE_CHIP_FROM)
        self.loop_of = (chip.sm.schedulers, chip.sm.policy, chip.sm.width) if fixed else (0, 0, 0)

    def advance(self, run: ChipArrays, first: int, last: int) -> None:
        make_advance_sms(*self.loop_of)(first, last, run.shared, run.sms, len(run.accesses), len(run.tx))


class ChipState:
    """All arrays of a run."""

    def __init__(self, program: Program, chip: Chip, resident: int, window: int, max_cycles: int) -> None:
        self.program, self.chip = program, chip
        self.sms = sms_of(program, chip, resident)
        self.one = one = self.sms.state
        inside = SmMemory(program, chip, window, one.places, resident)
        self.below = below = Below(program, chip)
        bring_in(below.memory.mem, chip.warm, chip.dirty)
        self.cores = for_each(chip.sms, one.core)
        self.mems = for_each(chip.sms, inside.mem)
        tables = one.tables(self.cores)
        self.blocks, self.tracks = tables["blocks"], tables["track"]
        if "now" in tables:  # SMs in which the schedulers take turns
            tables["now"]["first_turn"] += chip.turns[:, None]
        self.shared = np.zeros(CHIP_WORDS, np.int64)
        self.shared[[END, WINDOW, LIMIT, STATUS, LAG]] = window, window, max_cycles, PAUSED, chip.sm.memory_lag
        self.count = np.zeros(window + 1, np.int64)
        self.keys = np.empty(chip.sms * inside.requests, np.int64)
        self.order = np.empty(chip.sms * inside.requests, np.int64)
        self.requests = addresses(Shared, {
            "mems": self.mems.reshape(-1), "below": below.memory.mem, "slices": below.words,
            "channels": below.channels, "of_sm": below.of_sm.reshape(-1), "count": self.count, "keys": self.keys,
            "order": self.order, "stride": self.mems.shape[1], "sms": chip.sms, "number": below.number,
            "window": window,
        })  # fmt: skip
        asked = below.memory.access, inside.tx
        self.arrays = ChipArrays(self.shared, *asked, one.sm(self.cores, *asked, self.mems))
        self._first_blocks()

    def _first_blocks(self) -> None:
        """The first blocks go to the SMs in turn, until all slots are full; or to the slots as these become free."""
        (sms, resident), total = self.blocks.shape, len(self.program.block_warp) - 1
        given = np.arange(sms * resident).reshape(resident, sms).T
        self.blocks["given"] = np.where(given < total, given, -1)
        self.blocks["launch_at"] = np.where(given < total, self.chip.sm.begins, NEVER)
        self.shared[NEXT] = min(given.size, total)
        if self.chip.ramp:
            self.blocks["given"], self.shared[NEXT] = -1, 0
            self.blocks["launch_at"] = self.chip.first_slots[:, None] + np.arange(resident) * self.chip.ramp

    def close(self) -> None:
        """End a round; STATUS is PAUSED then to go on, else why not."""
        close_round(
            self.requests, self.blocks, self.tracks, self.shared, len(self.one.block_start), self.chip.sm.block_launch
        )

    def progress(self) -> Progress:
        """Of the blocks that have ended."""
        ends = self.one.block_end
        return Progress("blocks simulated", len(ends), counted=lambda: int(np.count_nonzero(ends)))

    def idle(self) -> int:
        """The cycle from which no server inside the SMs is busy."""
        inside = self.mems[:, [LSU, COPIER, ATOMIC, REQUESTS, RETURNS, LINK_OUT]].max()
        return -(-int(inside) >> FRACTION)

    def result(self, seconds: float) -> SmResult:
        """The result of all SMs together."""
        last = int(self.one.block_end.max(initial=0))
        if self.shared[STATUS] != DONE or last > self.shared[LIMIT]:
            raise unfinished(int(self.shared[STATUS]), int(self.shared[LIMIT]))
        counters, idle = self.mems[:, C : C + len(COUNTERS)].sum(axis=0), self.idle()
        return result_of(
            self.program,
            self.chip.sm,
            cycles=max(last, idle, self.below.idle()),
            block_start=self.one.block_start,
            block_end=self.one.block_end,
            op_stall=self.one.charged(self.cores.sum(axis=0)),
            idle=int(self.tracks["idle"].sum()),
            counters=counters + self.below.memory.counters(),
            seconds=seconds,
        )


def for_each(sms: int, one: NDArray[np.int64]) -> NDArray[np.int64]:
    """[sms, words] `one` for each SM, from where a line of the host's caches begins."""
    room = np.zeros(sms * len(one) + ALIGNED, np.int64)
    first = -(room.ctypes.data // room.itemsize) % ALIGNED
    found = room[first : first + sms * len(one)].reshape(sms, -1)
    used = len(one) - int(np.argmax(one[::-1] != 0)) if one.any() else 0  # what is never written takes no memory
    found[:, :used] = one[:used]
    return found


def run_chip(program: Program, chip: Chip, resident: int, max_cycles: int, window: int) -> SmResult:
    """Simulate `program` on all SMs; the same as `reference.chip.run_chip_reference`, fast.

    The SMs are shared out among as many threads as are allowed. They meet after each round, and one of them ends it.
    """
    state = ChipState(program, chip, resident, window, max_cycles)
    threads = min(allowed(), chip.sms)
    shares = iter([(chip.sms * part // threads, chip.sms * (part + 1) // threads) for part in range(threads)])
    meeting = Barrier(threads, state.close)

    def work() -> None:
        first, last = next(shares)
        try:
            while state.shared[STATUS] == PAUSED:
                state.sms.advance(state.arrays, first, last)
                meeting.wait()
        except BaseException:
            meeting.abort()  # nobody waits for this thread
            raise

    with COMPILING:
        state.sms.advance(state.arrays, 0, 0)
    began = time.process_time()
    with state.progress():
        together(work, threads)
    return state.result(time.process_time() - began)


def simulate_chip(
    program: Program,
    gpu: Gpu,
    *,
    resident_blocks: int,
    policy: str | None = None,
    max_cycles: int = MAX_CYCLES,
    l1_bytes: int | None = None,
    code_at: int = CODE_COLD,
    constants_at: int = CODE_COLD,
    window: int | None = None,
    reference: bool = False,
) -> SmResult:
    """All SMs of `gpu` run the blocks of `program`, of which each holds `resident_blocks`; counts of all SMs together.

    See sm/README.md, "The whole chip". `window`: cycles of a window, by default as long as may be. It does not change
    the result, but with `interconnect.port`; the number of threads never does. The rest as for `simulate`. PptError
    when program and GPU do not fit together or the window is too long, BudgetError after `max_cycles` cycles.
    """
    program = with_left(program)
    chip = chip_of(
        program, gpu, policy=policy, l1_bytes=l1_bytes, code_at=code_at, constants_at=constants_at
    )  # fmt: skip
    check(program, chip.sm, resident_blocks)
    if gpu.memory.highest_first:
        program = highest_first(program)
    length = checked_window(window, chip)
    if reference:
        return reference_loops.run_chip_reference(program, chip, resident_blocks, max_cycles, length)
    if chip.sm.collectors and len(program.event_start):
        raise PptError("programs with events are simulated without collector units")
    return run_chip(program, chip, resident_blocks, max_cycles, length)
