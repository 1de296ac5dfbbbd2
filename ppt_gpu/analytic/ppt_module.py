"""The PPT GPU module as published, and PPT-GPU 2019 and 2021: one workload cycle by cycle, then the grid.

They share the cycle-level part (`ppt_loop`) and differ in global memory (`ppt_memory`) and in how a workload becomes
the grid: by the overlap of successive workloads (`ppt_extrapolation`), or in 2021 by the number of workloads. Addresses
matter to none of them; 2019 and 2021 take hit rates, here from SDCM (`cache_models`), which 2021 was published with.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.analytic.cache_models import sdcm_rates
from ppt_gpu.analytic.floors import raised
from ppt_gpu.analytic.least_latency import entry_ops, next_entry_holds
from ppt_gpu.analytic.model import Estimate, Model, Options, answer
from ppt_gpu.analytic.model_inputs import ModelInputs
from ppt_gpu.analytic.ppt_extrapolation import extrapolate_workload
from ppt_gpu.analytic.ppt_loop import BARRIER, COMPUTE, LOAD, STORE, PptRun, PptSm, PptTasks, ppt_run
from ppt_gpu.analytic.ppt_memory import (
    AccessTimes,
    LoadedMemory,
    Traffic,
    access_time,
    loaded_memory,
    mean_access_time,
    pending_latency,
)
from ppt_gpu.analytic.steps import Steps
from ppt_gpu.sm.lower_ops import pipe_order
from ppt_gpu.sm.program import KIND_ATOMIC, KIND_BARRIER, KIND_LOAD, KIND_STORE
from ppt_gpu.spec.gpu import Gpu

#: accesses that may be pending where a model does not limit them
_UNLIMITED = 1 << 30
#: memory channels, which GPU files do not say
CHANNELS = 8
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
            return _constant(inputs.gpu.l1.latency), 0
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


class PptGpu2019(PptModule):
    """2019: every access of global memory takes the mean access time."""

    name = "ppt_gpu_2019"
    title = "PPT-GPU 2019"
    source = "Arafa, Badawy, Chennupati, Santhi, Eidenbenz: PPT-GPU (CAL 2019)"

    def memory(self, inputs: ModelInputs, steps: Steps, notes: list[str]) -> tuple[LoadedMemory, int]:
        gpu = inputs.gpu
        if gpu.perfect_memory:
            return _constant(gpu.l1.latency), 0
        hits = _sdcm(inputs)[1]
        steps.given("P_hit", hits, "hit rate of the L2, by SDCM")
        steps.given("L2", gpu.l2.latency, "latency of an L2 hit", unit="cycles")
        steps.given("L2_DRAM", max(gpu.dram.latency - gpu.l2.latency, 0), "more where the L2 misses", unit="cycles")
        time = mean_access_time(hits, gpu.l2.latency, max(gpu.dram.latency - gpu.l2.latency, 0))
        return _constant(steps("AMT", "{P_hit} {L2} + (1 - {P_hit}) ({L2} + {L2_DRAM})", time, unit="cycles")), 0


class PptGpu2021(PptModule):
    """2021: the mean access time of the kernel's transactions; workloads one after another."""

    name = "ppt_gpu_2021"
    title = "PPT-GPU 2021"
    source = "Arafa, Badawy, ElWazir, Barai, Eker, Chennupati, Santhi, Eidenbenz: PPT-GPU (SC 2021)"

    def memory(self, inputs: ModelInputs, steps: Steps, notes: list[str]) -> tuple[LoadedMemory, int]:
        gpu = inputs.gpu
        if gpu.perfect_memory:
            return _constant(gpu.l1.latency), 0
        traffic = launch_traffic(inputs)
        line = inputs.program.line_bytes
        times = AccessTimes(
            l1=gpu.l1.latency,
            l2=gpu.l2.latency,
            dram=gpu.dram.latency,
            l2_service=line / (gpu.interconnect.bandwidth * gpu.sm.count),
            dram_service=line / gpu.dram_bytes_per_cycle,
            channels=CHANNELS,
        )
        for name, value in vars(traffic).items():
            steps.given(name, value, "of one SM" if name in ("requests", "loads", "stores") else "")
        equation = "ceil((max(L1, L2, DRAM transactions x latency) + service) / {requests})"
        notes.append(f"{CHANNELS} memory channels are assumed: GPU files do not say how many there are")
        return _constant(steps("AMAT", equation, access_time(traffic, times), unit="cycles")), 0

    def grid(self, run: PptRun, inputs: ModelInputs, blocks: int, steps: Steps, literal: bool) -> float:
        cycles = steps.given("C", run.last, "end of the workload, its stores included", unit="cycles")
        own = steps.given("orig", max(round(inputs.sm_blocks), 1), "blocks of the busiest SM", unit="blocks")
        steps.given("new", blocks, "of them simulated", unit="blocks")
        if literal and own > blocks:
            return steps(
                "T", "{C} x ceil(({orig} - {new}) / {new})", cycles * -(-(own - blocks) // blocks), unit="cycles"
            )
        return steps("T", "{C} x ceil({orig} / {new})", cycles * -(-own // blocks), unit="cycles")


def workload_tasks(inputs: ModelInputs) -> PptTasks:
    """The first resident blocks of the simulated ones as a workload of PPT."""
    program = inputs.program
    blocks = max(min(inputs.resident_blocks, len(program.block_warp) - 1), 1)
    warps = int(program.block_warp[blocks])
    kind = np.full(len(program.op_name), COMPUTE, np.int64)
    kind[program.op_kind == KIND_BARRIER] = BARRIER
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


def launch_traffic(inputs: ModelInputs) -> Traffic:
    """Transactions of the simulated blocks."""
    program = inputs.program
    kind, count = program.op_kind[entry_ops(program)], np.diff(program.access_start)
    memory = np.isin(kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC))
    requests, transactions = float(memory.sum()), float(count[memory].sum())
    loads = float(count[kind == KIND_LOAD].sum())
    l1, l2 = _sdcm(inputs)
    return Traffic(requests, loads, transactions - loads, l1, l2, transactions / requests if requests else 0.0)


def _sdcm(inputs: ModelInputs) -> tuple[float, float]:
    """Hit rates of L1 and L2; 0 where nothing looks into them."""
    found = sdcm_rates(inputs)
    return found.l1 or 0.0, found.l2 or 0.0


def _constant(latency: float) -> LoadedMemory:
    cycles = max(round(latency), 1)
    return LoadedMemory(cycles, cycles, _UNLIMITED, _UNLIMITED)


def _limiter(tasks: PptTasks, gpu: Gpu, run: PptRun) -> str:
    """Issue, or a class of units, where that was busy for more than half of the workload; otherwise waiting."""
    cycles = float(run.last)
    if run.issued / (gpu.sm.schedulers * gpu.sm.issue_width) > cycles / 2:
        return "instruction issue"
    return "global memory" if np.isin(tasks.kind, (LOAD, STORE)).any() else "the latency of arithmetic"
