"""A whole chip as integers: its SMs, and below them slices of the L2 and channels of DRAM, chosen by address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm.accesses.sharing import chance
from ppt_gpu.sm.l2_sharing.camping import slice_of_lines
from ppt_gpu.sm.l2_sharing.l2_sets import known_sets
from ppt_gpu.sm.program.machine import ONE, Machine, constant_fill, even_sets, machine_of, write_factor
from ppt_gpu.sm.program.program import CODE_COLD, WARM, Program
from ppt_gpu.spec.gpu import Gpu

#: kinds of requests that leave an SM; WRITE_BACK: of a line that the L1 replaced, which nobody waits for; COPY: a read
#: by the copy engine
READ, ATOMIC, STORE, WRITE_BACK, COPY = range(5)
#: window, cycles, where nothing is asked of anything below the SMs
PERFECT_WINDOW = 1 << 12
#: a request of a window has a number of its SM, its highest bit for those of the copy engine, which come last at the
#: same time; and both stand in one word with its time, in 1/65536 cycles
NUMBER_BITS, SM_BITS = 20, 12
COPY_BIT = 1 << NUMBER_BITS - 1
LONGEST_WINDOW = 1 << 14
#: cycles from the first packet of an answer to its last, at most: of a sector each
PACKETS = 7


@dataclass(frozen=True)
class Chip:
    """`below` has the service times of one slice and of one channel, and all the sets of the L2."""

    sms: int
    sm: Machine
    below: Machine
    slices: int
    channels: int
    across_cost: int  # of a sector, on the way of all SMs together to the L2
    crossbar: bool  # instead, each SM sends a packet a cycle, and each slice takes one
    router: bool  # packets of several flits, and another crossbar back
    port: int  # flits that can wait in an SM before it; 0: any number
    answers: int  # sectors that wait for the way back beyond which a slice takes nothing; 0: any number
    queue: int  # sectors in the queue before a slice beyond which it takes nothing
    stops_after: int  # cycles until it does not
    slice_of: NDArray[np.int32]  # [L]
    l2_set: NDArray[np.int32]  # [L]
    warm: NDArray[np.int64]  # [N] lines that are in the L2 when the launch begins: the last was used last
    dirty: NDArray[np.int64]  # [N] masks of their sectors that have to be written back
    first_slots: NDArray[np.int64]  # [sms] cycle at which the first slot of each takes its first block
    ramp: int  # cycles from the first block of a slot to that of the next
    horizon: int  # cycles from a request to its answer, at least: the longest window
    turns: NDArray[np.int64]  # [sms] the scheduler that has the first turn when an SM's first block comes

    def channel(self, of_slice: int) -> int:
        """The channel of a slice."""
        return of_slice * self.channels // self.slices


def chip_of(
    program: Program,
    gpu: Gpu,
    *,
    policy: str | None = None,
    l1_bytes: int | None = None,
    code_at: int = CODE_COLD,
    constants_at: int = CODE_COLD,
) -> Chip:
    """`gpu` as level `grid` sees it. PptError when a value makes no sense."""
    one = machine_of(program, gpu, 1, policy, 0.0, l1_bytes, code_at, constants_at)
    one = replace(one, constant_fill=constant_fill(gpu, gpu.sm.count))
    slices, channels = gpu.l2.slices, gpu.dram.channels
    sets = max(1, one.l2_sets // slices)
    slice_of = slice_of_lines(program.line_address, gpu, program.line_bytes)
    warm, dirty = _found(program)
    return Chip(
        sms=gpu.sm.count,
        sm=one,
        below=replace(
            one,
            icnt_cost=0,
            atomic_busy=one.atomic_cost if slices > 1 else one.atomic_busy,  # one for all lines, or one a slice
            l1_sets=0,
            l2_sets=sets * slices,
            l2_cost=_slice_cost(program, gpu),
            l2_write_cost=gpu.l2.partitions * round(write_factor(program, gpu) * _slice_cost(program, gpu)),
            dram_cost=one.dram_cost * channels,
            dram_turn=one.dram_turn * channels,
        ),
        slices=slices,
        channels=channels,
        across_cost=one.l2_cost,
        crossbar=gpu.interconnect.crossbar and not one.perfect,
        router=gpu.interconnect.router,
        port=gpu.interconnect.port if gpu.interconnect.crossbar and not one.perfect else 0,
        answers=gpu.interconnect.answers,
        queue=gpu.interconnect.queue,
        stops_after=gpu.interconnect.stops_after,
        slice_of=slice_of,
        l2_set=(slice_of * sets + _sets(program, gpu, sets, slice_of)).astype(np.int32),
        warm=warm,
        dirty=dirty,
        first_slots=one.begins + _first_slots(gpu),
        ramp=round(gpu.start_ramp(gpu.sm.count)),
        horizon=PERFECT_WINDOW if one.perfect else max(1, min(one.l2_latency, one.dram_latency)),
        turns=_turns(gpu, one, constants_at),
    )


def with_left(program: Program) -> Program:
    """The program with the lines, too, that it does not name but that are in the L2 when it begins."""
    if not len(program.left_address):
        return program
    others = np.setdiff1d(program.left_address, program.line_address)
    return replace(
        program,
        line_address=np.concatenate((program.line_address, others)),
        line_warm=_longer(program.line_warm, len(others)),
        line_coming=_longer(program.line_coming, len(others)),
        line_kept=_longer(program.line_kept, len(others)),
    )


def _longer(of_lines: NDArray[Any], more: int) -> NDArray[Any]:
    """[L] with zeros for more lines; empty where it is."""
    return np.concatenate((of_lines, np.zeros(more if len(of_lines) else 0, of_lines.dtype)))


def _found(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Chip.warm and Chip.dirty."""
    if len(program.left_address):
        order = np.argsort(program.line_address, kind="stable")
        place = np.searchsorted(program.line_address, program.left_address, sorter=order)
        return order[place].astype(np.int64), program.left_written.astype(np.int64)
    warm = np.flatnonzero(program.line_warm == WARM)
    warm = warm[np.argsort(program.line_address[warm], kind="stable")].astype(np.int64)
    return warm, np.zeros(len(warm), np.int64)


def _sets(program: Program, gpu: Gpu, sets: int, slice_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """[L] the set of each line in its slice: by address where it is known how slices and sets follow from it."""
    known = known_sets(gpu, program.line_bytes, sets)
    return even_sets(program, sets, slice_of) if known is None else known.in_slice(program.line_address)


def _turns(gpu: Gpu, one: Machine, constants_at: int) -> NDArray[np.int64]:
    """Chip.turns: schedulers take turns in cycles in which their SM has work, so all SMs are in step in the first
    launch, and each goes on where it was in a later one. Where that is depends on how long each has worked, to the
    cycle: any of them is as likely."""
    if constants_at == CODE_COLD or not one.collectors:
        return np.zeros(gpu.sm.count, np.int64)
    return (chance(np.arange(gpu.sm.count, dtype=np.uint64)) * one.schedulers).astype(np.int64)


def _first_slots(gpu: Gpu) -> NDArray[np.int64]:
    rate = gpu.host.blocks_per_cycle
    return np.array([int(sm / rate) if rate else 0 for sm in range(gpu.sm.count)], np.int64)


def _slice_cost(program: Program, gpu: Gpu) -> int:
    """1/65536 cycles of a sector in a slice: by its bandwidth, or else its share of the whole."""
    rate = gpu.l2.slice_bandwidth or gpu.l2.bandwidth / gpu.l2.slices
    return round(program.sector_bytes / rate * ONE)


def checked_window(window: int | None, chip: Chip) -> int:
    """The length of a window, cycles: as long as may be, or `window`. PptError when that is too long, or shorter where
    SMs learn after each window how full their ports are."""
    numbered = (1 << NUMBER_BITS - 4) * chip.sm.tx_cost // ONE
    horizon = chip.horizon - chip.sm.memory_lag - (PACKETS if chip.crossbar else 0)
    longest = max(1, min(horizon, LONGEST_WINDOW, numbered))
    if window is None:
        return longest
    if not 1 <= window <= longest:
        raise PptError(f"a window of {window} cycles", hint=f"1 to {longest}, the smallest latency below the SMs")
    if chip.port and window < longest:
        raise PptError(
            f"a window of {window} cycles with interconnect.port",
            hint=f"only {longest}: a shorter one gives another result",
        )
    return window
