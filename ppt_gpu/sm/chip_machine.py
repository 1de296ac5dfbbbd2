"""A whole chip as integers: its SMs, and below them slices of the L2 and channels of DRAM, chosen by address."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import PptError
from ppt_gpu.policies import POLICIES
from ppt_gpu.sm.camping import slice_of_lines
from ppt_gpu.sm.core_machine import ONE, TWO_LEVEL, Machine, constant_fill, even_sets, machine_of, write_factor
from ppt_gpu.sm.program import CODE_COLD, WARM, Program
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
#: how far ahead a crossbar's outputs are booked, cycles: who waits longer finds them free
AHEAD = 1 << 16
#: SMs are apart by up to so many cycles - 1 on their way to it, by a hash of their number
SKEW, SKEW_HASH, SKEW_SHIFT = 4, 2654435761, 7


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
    slice_of: NDArray[np.int32]  # [L]
    l2_set: NDArray[np.int32]  # [L]
    warm: NDArray[np.int64]  # lines that are in the L2 when the launch begins, by address: the last was used last
    first_slots: NDArray[np.int64]  # [sms] cycle at which the first slot of each takes its first block
    ramp: int  # cycles from the first block of a slot to that of the next
    horizon: int  # cycles from a request to its answer, at least: the longest window

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
    if one.policy == TWO_LEVEL:
        others = ", ".join(name for name in POLICIES if name != "two_level")
        raise PptError("level grid does not simulate the scheduler policy two_level", hint=f"expected {others}")
    slices, channels = gpu.l2.slices, gpu.dram.channels
    sets = max(1, one.l2_sets // slices)
    slice_of = slice_of_lines(program.line_address, gpu, program.line_bytes)
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
        slice_of=slice_of,
        l2_set=(slice_of * sets + even_sets(program, sets, slice_of)).astype(np.int32),
        warm=_warm(program),
        first_slots=_first_slots(gpu),
        ramp=round(gpu.start_ramp(gpu.sm.count)),
        horizon=PERFECT_WINDOW if one.perfect else max(1, min(one.l2_latency, one.dram_latency)),
    )


def _warm(program: Program) -> NDArray[np.int64]:
    warm = np.flatnonzero(program.line_warm == WARM)
    return warm[np.argsort(program.line_address[warm], kind="stable")].astype(np.int64)


def _first_slots(gpu: Gpu) -> NDArray[np.int64]:
    rate = gpu.host.blocks_per_cycle
    return np.array([int(sm / rate) if rate else 0 for sm in range(gpu.sm.count)], np.int64)


def _slice_cost(program: Program, gpu: Gpu) -> int:
    """1/65536 cycles of a sector in a slice: by its bandwidth, or else its share of the whole."""
    rate = gpu.l2.slice_bandwidth or gpu.l2.bandwidth / gpu.l2.slices
    return round(program.sector_bytes / rate * ONE)


def checked_window(window: int | None, chip: Chip) -> int:
    """The length of a window, cycles: as long as may be, or `window`. PptError when that is too long, or shorter with a
    crossbar, which takes what is asked in a window as a whole."""
    numbered = (1 << NUMBER_BITS - 4) * chip.sm.tx_cost // ONE
    longest = max(1, min(chip.horizon - chip.sm.memory_lag, LONGEST_WINDOW, numbered))
    if window is None:
        return longest
    if not 1 <= window <= longest:
        raise PptError(f"a window of {window} cycles", hint=f"1 to {longest}, the smallest latency below the SMs")
    if chip.crossbar and window < longest:
        raise PptError(
            f"a window of {window} cycles with interconnect.crossbar",
            hint=f"only {longest}: a shorter one gives another result",
        )
    return window
