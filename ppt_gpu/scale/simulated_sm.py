"""One launch on one SM: call it with block ids and it runs them functionally, lowers the trace and simulates the SM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ppt_gpu.errors import PptError
from ppt_gpu.exec.layout import layout
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.traces import LaunchTraces
from ppt_gpu.exec.workload import Launch
from ppt_gpu.ptx.liveness import estimate_registers
from ppt_gpu.scale.footprint import dirty_share
from ppt_gpu.scale.grid import GridSpread, neighbour_blocks, spread_grid
from ppt_gpu.scale.occupancy import Occupancy, occupancy
from ppt_gpu.scale.survey import Survey, survey_grid, uniform_survey
from ppt_gpu.sm.lower import lower_tasklist, lower_trace
from ppt_gpu.sm.program import Program
from ppt_gpu.sm.result import SmResult
from ppt_gpu.sm.simulate import simulate
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList
from ppt_gpu.tasklist.model import grid_axes

#: thread instructions spent on learning which lines other SMs share; long blocks are sampled on fewer SMs
SHARING_BUDGET = 300_000_000
#: SMs sampled for that when blocks are short
SHARING_SAMPLES = 8
#: a grid of at most so many thread instructions is run whole, so that the next launch finds its results
ADVANCE_BUDGET = 4_000_000_000


class SimulatedSm:
    """What both kinds share: the block's needs, how many fit, how the grid spreads, and the last simulation."""

    program: Program  # of the last call

    def __init__(self, launch: Launch, gpu: Gpu, policy: str | None, registers: int, shared: int) -> None:
        self.launch, self.gpu, self.policy = launch, gpu, policy
        self.registers, self.shared = registers, shared
        self.registers_estimated = False
        self.source_notes: tuple[str, ...] = ()  # how the kernel came to be, for the report
        self.occupancy: Occupancy = occupancy(gpu, launch.threads_per_block, registers, shared)
        self.spread: GridSpread = spread_grid(launch.blocks, self.occupancy.blocks_per_sm, gpu.sm.count)
        self.warnings: list[str] = []
        self.notes: list[str] = []  # how the simulation was fed, for the report

    def lower(self, blocks: list[int]) -> Program:
        raise NotImplementedError

    def survey(self, wanted: str | int = "sample") -> Survey:
        """What some blocks, chosen as `survey_grid` says, tell of the grid."""
        raise NotImplementedError

    def neighbours(self, blocks: list[int], instructions_per_block: float) -> list[tuple[int, int]]:
        """(block, offset of its SM) of blocks that other SMs run at the same time, as far as the budget goes.

        instructions_per_block: thread instructions.
        """
        if self.spread.active_sms < 2 or self.gpu.perfect_memory:
            return []
        affordable = int(SHARING_BUDGET / max(instructions_per_block * len(blocks), 1.0))
        samples = max(1, min(SHARING_SAMPLES, affordable, self.spread.active_sms - 1))
        others = neighbour_blocks(self.spread, blocks, samples)
        if others:
            self.notes.append(f"sharing of lines between SMs was learnt from {samples} other SMs")
        return others

    def __call__(self, blocks: list[int]) -> SmResult:
        """Simulate `blocks` on one SM, in this order, with the resident blocks of the launch."""
        return self.slots(blocks)(self.spread.resident)

    def slots(self, blocks: list[int]) -> Callable[[int], SmResult]:
        """The simulation of `blocks` on one SM, in this order, as a function of how many it holds at once."""
        self.warnings, self.notes = [], []
        self.program = self.lower(blocks)
        return partial(self._simulate, self.program, len(blocks))

    def _simulate(self, program: Program, blocks: int, resident: int) -> SmResult:
        return simulate(
            program,
            self.gpu,
            resident_blocks=resident,
            active_sms=self.spread.active_sms,
            policy=self.policy,
            l2_dirty=dirty_share(program, self.gpu, self.launch.blocks / blocks),
            l1_bytes=self.occupancy.l1_bytes,
        )


class TraceSm(SimulatedSm):
    """A PTX kernel, executed functionally: `traces` are those of the launch."""

    def __init__(self, traces: LaunchTraces, gpu: Gpu, policy: str | None) -> None:
        self.traces, self.module, self.kernel = traces, traces.module, traces.kernel
        module, launch = traces.module, traces.launch
        registers = launch.registers or estimate_registers(self.kernel)
        static = launch.static_shared
        if static is None:
            static = layout(module, self.kernel).static_shared
        super().__init__(launch, gpu, policy, registers, static + launch.dynamic_shared)
        self.registers_estimated = launch.registers is None
        self.trace: Trace | None = None  # of the last call

    def lower(self, blocks: list[int]) -> Program:
        trace = self.run_blocks(blocks)
        self.trace = trace
        self.warnings += trace.warnings
        if trace.printed:
            count = len(trace.printed.splitlines())
            self.notes.append(f"the simulated blocks printed {count} line{'s' * (count > 1)}")
        others = self.neighbours(blocks, trace.thread_instructions / len(blocks))
        return lower_trace(
            self.kernel,
            trace,
            self.gpu,
            launch=self.launch,
            active_sms=self.spread.active_sms,
            neighbours=self.traces.touched([block for block, _ in others]) if others else None,
            neighbour_sm=np.array([offset for _, offset in others], np.int64),
        )

    def survey(self, wanted: str | int = "sample") -> Survey:
        return survey_grid(self.traces.features, self.launch, wanted)

    def run_blocks(self, blocks: Sequence[int]) -> Trace:
        """The trace of these blocks, each run on what the launch finds and what the blocks before it left."""
        return self.traces.run(blocks)

    def advance(self, runs: int = 1) -> tuple[str, ...]:
        """Leave in memory what `runs` runs of the whole grid leave, for later launches. Returns warnings.

        A grid beyond ADVANCE_BUDGET runs only the simulated blocks.
        """
        assert self.trace is not None
        self.traces.release()
        blocks: Sequence[int] = range(self.launch.blocks)
        warnings: tuple[str, ...] = ()
        if self.trace.thread_instructions / len(self.trace.blocks) * len(blocks) > ADVANCE_BUDGET:
            blocks = [int(block) for block in self.trace.blocks]
            warnings = ("the grid is too large to run whole: later launches see the simulated blocks' results",)
        for _ in range(runs):
            self.traces.advance(blocks)
        return warnings


class TaskListSm(SimulatedSm):
    """A task list: every warp runs the same tasks on addresses, or hit rates, that the list gives."""

    def __init__(self, flat: FlatTaskList, launch: Launch, gpu: Gpu, policy: str | None) -> None:
        tasklist = flat.tasklist
        if launch.threads_per_block != tasklist.block_size:
            raise PptError(
                f"the launch has blocks of {launch.threads_per_block} threads, the task list {tasklist.block_size}",
                path=tasklist.path or None,
            )
        super().__init__(launch, gpu, policy, tasklist.registers, tasklist.shared + launch.dynamic_shared)
        self.flat = flat
        self.axes = grid_axes(tasklist.body)

    def survey(self, wanted: str | int = "sample") -> Survey:
        """All blocks are the same."""
        return uniform_survey(self.launch.blocks, self.occupancy.warps_per_block, len(self.flat.path))

    def lower(self, blocks: list[int]) -> Program:
        for own, stated, name in zip(self.launch.grid[: self.axes], self.flat.tasklist.grid, "xyz", strict=False):
            if own == 1 < stated:
                self.warnings.append(f"one block along {name}, where the task list has steps and {stated} blocks")
        threads = float(len(self.flat.path) * self.occupancy.warps_per_block * self.gpu.sm.warp_size)
        others = self.neighbours(blocks, threads) if self.flat.has_global_addresses else []
        return lower_tasklist(
            self.flat,
            self.gpu,
            warps_per_block=self.occupancy.warps_per_block,
            blocks=blocks,
            active_sms=self.spread.active_sms,
            grid=self.launch.grid,
            neighbours=[block for block, _ in others],
            neighbour_sm=[offset for _, offset in others],
        )
