"""A window of one SM's cycles, recorded: what every warp did, what was issued where, and what memory moved.

Recorded by the plain reference, which gives the same cycles as the compiled loop, bit for bit: so what is recorded is
what happened in the simulation of these blocks, and watching it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.sm.program.machine import COUNTERS, ONE, Machine
from ppt_gpu.sm.program.program import RECORDED, Program
from ppt_gpu.sm.reference.l1 import sm_of
from ppt_gpu.sm.reference.sm import Sm, Warp

#: cycles that may be simulated one by one for a recording
MOST_CYCLES = 1_000_000
#: counters sampled in each cycle, and the server that moves them
SAMPLED = ("l1_accesses", "l2_read_bytes", "l2_write_bytes", "dram_read_bytes", "dram_write_bytes", "shared_passes")
SERVERS = ("l2", "dram")


@dataclass(frozen=True)
class Window:
    """Cycles `first` to `first + cycles` of the simulation of one SM."""

    first: int = 0
    cycles: int = 2000

    def __post_init__(self) -> None:
        if self.first < 0 or self.cycles < 1 or self.first + self.cycles > MOST_CYCLES:
            raise PptError(
                f"a window of {self.cycles} cycles from cycle {self.first} on",
                hint=f"it has at least 1 cycle and ends at cycle {MOST_CYCLES:,} or before",
            )


@dataclass(frozen=True)
class Recording:
    """N spans of warps, M issues; cycles are those of the simulated SM, whose first block starts at 0."""

    first: int
    end: int  # the cycle after the last one recorded
    finished: bool  # the simulated blocks ended in the window
    schedulers: int
    spans: NDArray[np.int64]  # [N, 6] warp slot, block by launch order, warp of the block, first cycle, cycles, reason
    issues: NDArray[np.int64]  # [M, 6] cycle, scheduler, unit of the pipe, warp slot, operation, cycle of the result
    samples: NDArray[np.int64]  # [end - first, len(SAMPLED)] what each cycle added
    busy: NDArray[np.bool_]  # [end - first, len(SERVERS)] the server has work queued after the cycle
    op_name: tuple[str, ...]  # [O]
    op_pc: tuple[int, ...]  # [O] source instruction
    op_pipe: tuple[int, ...]  # [O]
    op_ii: tuple[int, ...]  # [O] cycles that the operation occupies its unit
    op_memory: tuple[bool, ...]  # [O] goes through the memory system
    pipe_shared: tuple[bool, ...]  # [pipes] the units stand in the SM, not in each scheduler
    blocks: tuple[int, ...] = ()  # ids in the grid of the simulated blocks, in launch order


class _Recorder:
    """Watches an SM and keeps what happens from cycle `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.open: dict[int, tuple[int, int, int, int]] = {}  # slot -> block, warp number, first cycle, reason
        self.spans: list[tuple[int, int, int, int, int, int]] = []
        self.issues: list[tuple[int, int, int, int, int, int]] = []
        self.samples: list[list[int]] = []
        self.busy: list[tuple[bool, bool]] = []
        self.before: list[int] = [0] * len(COUNTERS)
        self.slot_of: dict[int, int] = {}  # warp number -> slot

    def issued(self, cycle: int, scheduler: int, unit: int, warp: Warp, op: int, done: int) -> None:
        if cycle >= self.first:
            self.issues.append((cycle, scheduler, unit, warp.number, op, done))

    def accounted(self, cycle: int, sm: Sm, reasons: Mapping[int, tuple[int, int]]) -> None:
        counters = list(sm.memory.counters)
        if cycle >= self.first:
            self._spans(cycle, sm, reasons)
            self.samples.append([now - then for now, then in zip(counters, self.before, strict=True)])
            after = (cycle + 1) * ONE
            self.busy.append((sm.memory.l2_server > after, sm.memory.dram > after))
        self.before = counters

    def _spans(self, cycle: int, sm: Sm, reasons: Mapping[int, tuple[int, int]]) -> None:
        for slot in [slot for slot in self.open if slot not in reasons]:
            self._close(slot, cycle)
        for slot, (_, why) in reasons.items():
            warp = sm.slots[slot]
            assert warp is not None
            held = self.open.get(slot)
            if held is None or held[1] != warp.number or held[3] != why:
                if held is not None:
                    self._close(slot, cycle)
                self.open[slot] = (warp.block, warp.number, cycle, why)
                self.slot_of[warp.number] = slot

    def _close(self, slot: int, cycle: int) -> None:
        block, number, first, why = self.open.pop(slot)
        self.spans.append((slot, block, number, first, cycle - first, why))

    def close(self, cycle: int) -> None:
        for slot in sorted(self.open):
            self._close(slot, cycle)


def record(
    program: Program, machine: Machine, resident: int, window: Window, blocks: tuple[int, ...] = ()
) -> Recording:
    """The window of the simulation of `program` in `resident` slots; shorter where the blocks end before.

    `blocks`: what to call the program's blocks, their ids in the grid. PptError where they end before it begins.
    """
    recorder = _Recorder(window.first)
    sm = sm_of(program, machine, resident, recorder)
    cycle = 0
    with Progress("cycles recorded", window.first + window.cycles) as progress:
        while cycle < window.first + window.cycles:
            sm.begin(cycle)
            if sm.finished:
                break
            sm.step(cycle)
            cycle += 1
            progress.to(cycle)
    if cycle <= window.first:
        raise PptError(
            f"there is no cycle {window.first}", hint=f"the simulated blocks have ended after {cycle} cycles"
        )
    recorder.close(cycle)
    spans = sorted((slot, block, number - int(program.block_warp[block]), first, cycles, why)
                   for slot, block, number, first, cycles, why in recorder.spans)  # fmt: skip
    issues = [(at, scheduler, unit, recorder.slot_of[number], op, done)
              for at, scheduler, unit, number, op, done in recorder.issues]  # fmt: skip
    sampled = [COUNTERS.index(name) for name in SAMPLED]
    return Recording(
        first=window.first,
        end=cycle,
        finished=sm.finished,
        schedulers=machine.schedulers,
        spans=np.array(spans, np.int64).reshape(-1, 6),
        issues=np.array(issues, np.int64).reshape(-1, 6),
        samples=np.array(recorder.samples, np.int64).reshape(cycle - window.first, -1)[:, sampled],
        busy=np.array(recorder.busy, np.bool_).reshape(-1, len(SERVERS)),
        op_name=program.op_name,
        op_pc=tuple(program.op_pc.tolist()),
        op_pipe=tuple(program.op_pipe.tolist()),
        op_ii=tuple(program.op_ii.tolist()),
        op_memory=tuple(np.isin(program.op_kind, RECORDED).tolist()),
        pipe_shared=machine.pipe_shared,
        blocks=blocks,
    )
