"""One launch on one SM: call it with block ids and it runs them functionally, lowers the trace and simulates the SM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from ppt_gpu import machine as compiler
from ppt_gpu import sm as simulator
from ppt_gpu.bounds.work import Work, work_of
from ppt_gpu.common.progress import Progress
from ppt_gpu.emulator.cache.traces import LaunchTraces
from ppt_gpu.emulator.launch.layout import layout
from ppt_gpu.emulator.trace.block_features import BlockFeatures, features_of
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.machine.registers import compiled_registers
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Module
from ppt_gpu.scale.blocks.distribution import GridSpread, spread_grid
from ppt_gpu.scale.blocks.neighbours import FAR_SMS, Neighbour, adjacent_sms, met_blocks, neighbour_blocks
from ppt_gpu.scale.blocks.survey import Survey, survey_grid
from ppt_gpu.scale.cache.block_timing import TIMING, BlockTiming, Feed, timing_name
from ppt_gpu.scale.cache.launch_store import LaunchStore, kept_or_made
from ppt_gpu.scale.cache.lowered_blocks import LOWERED, program_name
from ppt_gpu.scale.history.footprint import dirty_share
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.occupancy.occupancy import Occupancy, occupancy
from ppt_gpu.sm.l2_sharing.camping import may_camp
from ppt_gpu.sm.program.program import CODE_COLD, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu, Isa
from ppt_gpu.workload.workload import Launch

if TYPE_CHECKING:
    from ppt_gpu.emulator.trace.trace import Trace
    from ppt_gpu.machine.code import MachineCode
    from ppt_gpu.sm.l2_sharing.left_lines import LeftLines


#: thread instructions spent on learning which lines other SMs share; long blocks are sampled on fewer SMs
SHARING_BUDGET = 1_000_000_000
#: as many that all other SMs are sampled, where the blocks of a single wave differ
SHARING_THOROUGH = 100_000_000
#: SMs sampled for that when blocks are short; more where blocks have neighbours along three axes
SHARING_SAMPLES = 8
#: and where few blocks are simulated: as many SMs as have so many of them, up to as many as are given here
SHARING_BLOCKS, SHARING_MOST = 320, 40
#: a grid of at most so many thread instructions is run whole, so that the next launch finds its results
ADVANCE_BUDGET = 4_000_000_000
_NO_EVENTS = (
    "warps wait for no mbarrier: only for what they copied themselves (a GPU with collector units); named barriers are "
    "the block's"
)


class Conditions(TypedDict):
    """Arguments that `simulate` and `machine_of` share."""

    active_sms: int
    policy: str | None
    l2_dirty: float
    l1_bytes: int
    code_at: int
    constants_at: int
    out_of_step: bool
    share: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedSm:
    """A launch and one SM that runs blocks of it, and what both find. `replace` gives them something else."""

    launch: Launch
    gpu: Gpu
    policy: str | None  # of the warp scheduler; None: the GPU's
    registers: int  # of a thread
    shared: int  # bytes of a block
    room: int  # registers of a thread that the compiler of its machine code may fill: more loads in flight
    occupancy: Occupancy
    spread: GridSpread
    place: int = 0  # which SM of the chip: one of those that run the most blocks
    registers_estimated: bool = False
    source_notes: tuple[str, ...] = ()  # how the kernel came to be, for the report
    kept: LaunchStore | None = None  # where lowered blocks and simulations are kept
    l2_lines: LeftLines | None = None  # that earlier launches left in the L2
    code_at: int = CODE_COLD  # where the launch finds its instructions
    constants_at: int = CODE_COLD  # and its constants
    whole: bool = False  # all SMs are simulated: nothing is learnt from samples of the others
    one_wave: bool = False  # of blocks that differ, all resident at once
    out_of_step: bool = False  # it starts as it is found later in a long launch
    share: float | None = None  # of L2 and DRAM, the simulated SM's; None: as much as the others have
    approximate: bool = False  # loops that go alike may be skipped
    clock_seen: float = 0.0  # the SM's clock, where the kernel tells times in seconds

    def lower(self, blocks: list[int]) -> tuple[Program, Feed]:
        """The blocks as one SM runs them, one after another."""
        raise NotImplementedError

    def survey(self, wanted: str | int = "sample") -> Survey:
        """What some blocks, chosen as `survey_grid` says, tell of the grid."""
        raise NotImplementedError

    def neighbours(
        self, blocks: list[int], instructions_per_block: float, bases: Callable[[int], NDArray[np.int64]]
    ) -> tuple[list[Neighbour], tuple[str, ...]]:
        """Blocks that other SMs run meanwhile, as far as the budget goes, and notes.

        instructions_per_block: thread instructions; bases: as for `met_blocks`.
        """
        if self.spread.active_sms < 2 or self.gpu.perfect_memory or self.whole:
            return [], ()
        affordable = int(SHARING_BUDGET / max(instructions_per_block * len(blocks), 1.0))
        met: list[int] = []
        if self.launch.grid[1:] == (1, 1):
            met = met_blocks(bases, blocks, self.launch.blocks)
        adjacent = adjacent_sms(self.spread, self.launch.grid, met)
        few = min(SHARING_BLOCKS // len(blocks), SHARING_MOST)
        wanted = max(SHARING_SAMPLES, few, len(adjacent) + FAR_SMS)
        if may_camp(self.gpu):
            wanted = self.spread.active_sms
        if self.one_wave:
            wanted = max(wanted, affordable * SHARING_THOROUGH // SHARING_BUDGET)
        samples = max(1, min(wanted, affordable, self.spread.active_sms - 1))
        others = neighbour_blocks(self.spread, blocks, self.launch.grid, samples, met)
        # blocks that represent a grid of different ones come from several SMs, and stand beside each other here
        own = set(blocks)
        others = [other for other in others if other.block not in own]
        return others, (f"sharing of lines between SMs was learnt from {samples} other SMs",) if others else ()

    def __call__(self, blocks: list[int]) -> BlockTiming:
        """Simulate `blocks` on one SM, in this order, with the resident blocks of the launch."""
        return self.slots(blocks).timing(self.spread.resident)

    def slots(self, blocks: list[int]) -> Slots:
        """The simulation of `blocks` on one SM, in this order, as a function of how many it holds at once."""
        return Slots(self, blocks)

    def conditions(self, program: Program, blocks: int) -> Conditions:
        """Under what the simulation of `program`, `blocks` blocks of the launch, runs beside GPU and slots."""
        return {
            "active_sms": self.spread.active_sms,
            "policy": self.policy,
            "l2_dirty": dirty_share(program, self.gpu, self.launch.blocks / blocks, self.spread.active_sms),
            "l1_bytes": self.occupancy.l1_bytes,
            "code_at": self.code_at,
            "constants_at": self.constants_at,
            "out_of_step": self.out_of_step,
            "share": self.share,
        }

    @property
    def left(self) -> str:
        """The digest of what earlier launches left in the L2."""
        return "" if self.l2_lines is None else self.l2_lines.digest

    @property
    def whole_name(self) -> str:
        """The name under which the simulation of all blocks on all SMs is kept."""
        policy, l1_bytes = self.policy or self.gpu.sm.policy, self.occupancy.l1_bytes
        chip = ("all SMs", self.gpu.sm.count, self.gpu.dram.channels)
        finds = (*chip, self.code_at, self.constants_at, self.left, self.room, self.clock_seen)
        return timing_name(self.gpu, policy, l1_bytes, self.spread, [], self.spread.resident, finds)

    def timing_name(self, blocks: list[int], resident: int) -> str:
        """The name under which the simulation of `blocks` in so many slots is kept."""
        policy, l1_bytes = self.policy or self.gpu.sm.policy, self.occupancy.l1_bytes
        finds = (
            self.code_at, self.constants_at, self.left, self.room, self.one_wave, self.out_of_step, self.share,
            self.clock_seen, self.approximate,
        )  # fmt: skip
        return timing_name(self.gpu, policy, l1_bytes, self.spread, blocks, resident, finds)


class Slots:
    """Blocks on `sm`, lowered when something is to be simulated: `slots.timing(4)` simulates them in 4 slots.

    May be called in several threads at once.
    """

    def __init__(self, sm: SimulatedSm, blocks: list[int]) -> None:
        self.sm, self.blocks = sm, blocks
        self._lowering = Lock()

    def result(self, resident: int) -> SmResult:
        return self.timing(resident).result

    def timing(self, resident: int) -> BlockTiming:
        """Kept, or simulated and kept."""
        name = partial(self.sm.timing_name, self.blocks, resident)
        return kept_or_made(self.sm.kept, TIMING, name, lambda: self._simulate(resident))

    def feed(self, resident: int) -> Feed:
        """What the simulation in so many slots is fed with, before it is made."""
        kept = self._kept(resident)
        return kept.feed if kept is not None else self.lowered()[1]

    def _kept(self, resident: int) -> BlockTiming | None:
        if self.sm.kept is None:
            return None
        return self.sm.kept.get(TIMING, self.sm.timing_name(self.blocks, resident))

    def lowered(self) -> tuple[Program, Feed, Work]:
        """Kept, or lowered and kept."""
        with self._lowering:
            return self._program

    @cached_property
    def _program(self) -> tuple[Program, Feed, Work]:
        name, make = lambda: self._program_name, lambda: self.sm.lower(self.blocks)
        program, feed = kept_or_made(self.sm.kept, LOWERED, name, make)
        return program, feed, work_of(program, self.sm.gpu)

    @cached_property
    def _program_name(self) -> str:
        sm = self.sm
        return program_name(sm.gpu, sm.spread, self.blocks, sm.room, sm.left, sm.whole, sm.one_wave, sm.clock_seen)

    def _simulate(self, resident: int) -> BlockTiming:
        sm, (program, feed, work) = self.sm, self.lowered()
        with Progress("simulating one SM"):
            conditions = sm.conditions(program, len(self.blocks))
            result = simulator.simulate(
                program, sm.gpu, resident_blocks=resident, approximate=sm.approximate, **conditions
            )
        return BlockTiming(result, work, feed)


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceSm(SimulatedSm):
    """A PTX kernel, executed functionally."""

    traces: LaunchTraces  # of the launch
    module: Module
    kernel: LinkedKernel
    machine: Callable[[], MachineCode | None]  # what the GPU runs, where that is not PTX itself

    @classmethod
    def of(cls, traces: LaunchTraces, gpu: Gpu, policy: str | None, keep: bool = True) -> TraceSm:
        """The launch of `traces`. With `keep`, simulations are kept where the traces are, and taken from there."""
        launch, isa = traces.launch, gpu.isa
        machine_code = partial(_machine_code, traces)
        needs = compiled_registers(traces.kernel, isa, launch.registers, partial(machine_code, isa))
        static = launch.static_shared
        if static is None:
            static = layout(traces.module, traces.kernel).static_shared
        shared = static + launch.dynamic_shared
        fit = occupancy(gpu, launch.threads_per_block, needs.count, shared)
        tells_time = any(instruction.base == "nanosleep" for instruction in traces.kernel.instructions)
        store = traces.store if keep else None
        return cls(
            launch=launch,
            gpu=gpu,
            policy=policy,
            registers=needs.count,
            shared=shared,
            room=needs.room,
            occupancy=fit,
            spread=spread_grid(launch.blocks, fit.blocks_per_sm, gpu.sm.count),
            registers_estimated=not launch.registers,
            kept=None if store is None else LaunchStore(store, traces.kept.group),
            clock_seen=gpu.sm.clock if tells_time else 0.0,
            traces=traces,
            module=traces.module,
            kernel=traces.kernel,
            machine=cache(lambda: machine_code(isa, needs.room) if isa.scheduled else None),
        )

    def lower(self, blocks: list[int]) -> tuple[Program, Feed]:
        return self.lower_run(self.traces.run(blocks), blocks)

    def lower_run(self, trace: Trace, blocks: list[int], *, as_ptx: bool = False) -> tuple[Program, Feed]:
        """`lower`, with the trace of these blocks: as machine code, where that is what runs.

        as_ptx: instruction by instruction of the PTX all the same.
        """
        heap = Heap.of(trace.ranges, self.gpu)
        trace = heap.trace(trace)
        own = cache(lambda: global_accesses(self.kernel, trace))

        def bases(position: int) -> NDArray[np.int64]:
            begin, end = own().start[position : position + 2]
            one_warp = -(-(end - begin) // self.occupancy.warps_per_block)
            return own().base[begin : begin + one_warp].astype(np.int64)

        others, notes = self.neighbours(blocks, trace.thread_instructions / len(blocks), bases)
        if trace.printed:
            count = len(trace.printed.splitlines())
            notes = (f"the simulated blocks printed {count} line{'s' * (count > 1)}", *notes)
        if self.traces.sharing:
            notes = (self.traces.sharing, *notes)
        machine = None if as_ptx else self.machine()
        program = simulator.lower_trace(
            self.kernel if machine is None else machine.kernel,
            trace if machine is None else compiler.as_machine_code(trace, machine),
            self.gpu,
            launch=self.launch,
            active_sms=self.spread.active_sms,
            neighbours=heap.accesses(self.traces.touched([other.block for other in others])) if others else None,
            neighbour_sm=np.array([other.offset for other in others], np.int64),
            neighbour_stands_for=np.array([other.stands_for for other in others]),
            left=self.l2_lines,
            alone=not self.whole,
            resident=self.spread.resident,
            turn_of=lambda ids: self.spread.turns(ids, self.place),
            own=own() if others else None,
            local_frame=self.traces.local_frame,
        )
        if self.gpu.collectors.units:
            program = replace(program, code_first=self.module.instructions_before(self.kernel.name))
        more = (self.traces.waiting(trace.warnings), program.unheard)
        warnings = (*trace.warnings, *(text for text in more if text))
        if self.gpu.collectors.units and simulator.meets(self.kernel, trace):
            notes = (*notes, _NO_EVENTS)
        return program, Feed(warnings, notes, trace.printed, trace.pc_threads, features_of(trace))

    def survey(self, wanted: str | int = "sample") -> Survey:
        every = wanted == "sample" and self.traces.runs_whole  # they are known
        return survey_grid(self.traces.features, self.launch, "all" if every else wanted)

    def advance(self, simulated: BlockFeatures, runs: int = 1) -> tuple[str, ...]:
        """Leave in memory what `runs` runs of the whole grid leave, for later launches. Returns warnings.

        `simulated`: what the simulated blocks do. A grid beyond ADVANCE_BUDGET runs only these.
        """
        self.traces.release()
        blocks: Sequence[int] = range(self.launch.blocks)
        warnings: tuple[str, ...] = ()
        if int(simulated.thread_instructions.sum()) / len(simulated) * len(blocks) > ADVANCE_BUDGET:
            blocks = simulated.blocks.tolist()
            warnings = ("the grid is too large to run whole: later launches see the simulated blocks' results",)
        for _ in range(runs):
            self.traces.advance(blocks)
        return warnings


def _machine_code(traces: LaunchTraces, isa: Isa, registers: int) -> MachineCode:
    if traces.store is None:
        return compiler.machine_code(traces.kernel, registers, isa)
    return compiler.kept_machine_code(traces.kernel, traces.module, registers, isa, traces.store)
