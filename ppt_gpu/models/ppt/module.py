"""The PPT GPU module as published (paper 003): one workload cycle by cycle, then the grid.

`ppt.loop` is the cycle-level part, `ppt.memory` has global memory under load, `ppt.extrapolation` the overlap of
successive workloads. Addresses do not matter: every access of global memory is one, and there are no caches.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.bounds.least_latency import next_entry_holds
from ppt_gpu.models.base.floors import raised
from ppt_gpu.models.base.model import Estimate, Model, Options, answer
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Steps
from ppt_gpu.models.ppt.extrapolation import extrapolate_workload
from ppt_gpu.models.ppt.loop import BARRIER, COMPUTE, LOAD, STORE, PptRun, PptSm, PptTasks, ppt_run
from ppt_gpu.models.ppt.memory import LoadedMemory, loaded_memory, pending_latency
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_STORE, holds_warps
from ppt_gpu.spec.gpu import Gpu

#: accesses that may be pending where a model does not limit them
_UNLIMITED = 1 << 30
WARP = 32


class PptModule(Model):
    """2015: latency and refusal by the number of pending accesses; no caches."""

    name = "ppt"
    title = "PPT GPU module"
    source = "Chapuis, Eidenbenz, Santhi: GPU performance prediction through parallel discrete event simulation"

    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        steps = Steps()
        notes: list[str] = []
        memory, start = self.memory(inputs, steps, notes)
        tasks = workload_tasks(inputs)
        run = ppt_run(tasks, ppt_sm(inputs.gpu, memory, start))
        blocks = len(tasks.block_warp) - 1
        steps.given("max_block", blocks, "blocks of a workload, on one SM", unit="blocks")
        steps.given("issued", run.issued, "tasks of the workload")
        cycles = self.grid(run, inputs, blocks, steps, options.literal)
        if not options.literal:
            least = raised(inputs, cycles, steps)
            cycles = least.cycles
            notes += least.notes
        return answer(self, inputs, cycles, _limiter(tasks, inputs.gpu, run), steps.all, notes=tuple(notes))

    def memory(self, inputs: ModelInputs, steps: Steps, notes: list[str]) -> tuple[LoadedMemory, int]:
        """Global memory, and the cycle in which the first tasks issue: after the load of the blocks' parameters."""
        if inputs.gpu.perfect_memory:
            return constant(inputs.gpu.l1.latency), 0
        memory, published = loaded_memory(inputs.gpu)
        if not published:
            notes.append("memory under load is inferred: PPT published it for m2090, k40, k6000 and pascal_ppt")
        steps.given("ram0", memory.unloaded, "unloaded latency", unit="cycles")
        steps.given("ram1", memory.loaded, "loaded latency", unit="cycles")
        steps.given("cap0", memory.free, "pending accesses that do no harm")
        steps.given("cap1", memory.most, "pending accesses from which on others are refused")
        equation = "{ram0} + max(blocks - {cap0}, 0) / {cap1} ({ram1} - {ram0})"
        start = pending_latency(min(inputs.resident_blocks, len(inputs.blocks)), memory)
        return memory, int(steps("start", equation, start, unit="cycles"))

    def grid(self, run: PptRun, inputs: ModelInputs, blocks: int, steps: Steps, literal: bool) -> float:
        """Cycles of the launch, from those of a workload."""
        end = float(run.block_end.max())
        mean = float(run.block_end.mean())
        count = max(-(-round(inputs.grid_blocks) // blocks), 1)
        terms = extrapolate_workload(end, mean, count, inputs.active_sms, run.last - end, literal=literal)
        steps.given("C", end, "end of the workload", unit="cycles")
        steps.given("E", mean, "mean end of its blocks", unit="cycles")
        steps.given("L", count, "workloads")
        steps.given("S", inputs.active_sms, "SMs")
        steps("overlap", "1 - {E} / {C}", terms.overlap)
        equation = "(min({S}, {L}) {C} + max({L} - {S}, 0) {C} (1 - {overlap})) / {L}"
        steps("w_mean", equation, terms.mean_workload, unit="cycles")
        steps.given("trailing", run.last - end, "stores that are pending at the end", unit="cycles")
        return steps(
            "T",
            "floor({L} / {S}) {w_mean} + ({E} if {S} does not divide {L}) + {trailing}",
            terms.cycles,
            unit="cycles",
        )


def workload_tasks(inputs: ModelInputs) -> PptTasks:
    """The first resident blocks of the simulated ones as a workload of PPT."""
    program = inputs.program
    blocks = max(min(inputs.resident_blocks, len(program.block_warp) - 1), 1)
    warps = int(program.block_warp[blocks])
    kind = np.full(len(program.op_name), COMPUTE, np.int64)
    kind[holds_warps(program)] = BARRIER
    kind[np.isin(program.op_kind, (KIND_LOAD, KIND_ATOMIC))] = LOAD
    kind[program.op_kind == KIND_STORE] = STORE
    return PptTasks(
        path_start=program.path_start,
        entry_op=program.entry_op,
        entry_wait=program.entry_wait,
        entry_slot=program.entry_slot,
        warp_path=program.warp_path[:warps],
        block_warp=program.block_warp[: blocks + 1],
        kind=kind,
        latency=program.op_latency.astype(np.int64),
        hold=next_entry_holds(program),
        unit=program.op_pipe.astype(np.int64),
    )


def ppt_sm(gpu: Gpu, memory: LoadedMemory, start: int) -> PptSm:
    """One SM: as many units of a class as warps fit into its lanes, and each load/store lane a unit."""
    load_store = gpu.isa.op("load.global").pipe
    lanes = [gpu.pipes[name].lanes for name in pipe_order(gpu)]
    units = [
        count if name == load_store else max(count // WARP, 1)
        for name, count in zip(pipe_order(gpu), lanes, strict=True)
    ]
    return PptSm(gpu.sm.schedulers, gpu.sm.issue_width, np.array(units, np.int64), memory, start)


def constant(latency: float) -> LoadedMemory:
    """A memory whose latency does not depend on what is pending, and that refuses nothing."""
    cycles = max(round(latency), 1)
    return LoadedMemory(cycles, cycles, _UNLIMITED, _UNLIMITED)


def _limiter(tasks: PptTasks, gpu: Gpu, run: PptRun) -> str:
    """Issue, or a class of units, where that was busy for more than half of the workload; otherwise waiting."""
    cycles = float(run.last)
    if run.issued / (gpu.sm.schedulers * gpu.sm.issue_width) > cycles / 2:
        return "instruction issue"
    return "global memory" if np.isin(tasks.kind, (LOAD, STORE)).any() else "the latency of arithmetic"
