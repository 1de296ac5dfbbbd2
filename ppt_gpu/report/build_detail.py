"""From a finished simulation to the details of a launch: counts by source line, use of pipes, roofs and traffic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.bounds import pipe_units
from ppt_gpu.bounds.flops import CLASSES, flops
from ppt_gpu.bounds.roofline import peak_flops
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.report.result.detail import Detail, Level, PipeUse, Roofs, SourceLine, Traffic
from ppt_gpu.scale.cache.block_timing import BlockTiming
from ppt_gpu.scale.occupancy.rules import OccupancyLimits
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult
from ppt_gpu.spec.gpu import Gpu

#: floating-point operations of one lane, by the last part of the operation's name
#: lines between two executed ones that are shown; more of them are another function's, or nobody's
GAP = 40


def detail_of(prediction: KernelPrediction) -> Detail:
    """The details of a launch, from the simulated blocks."""
    sm, result, timing = prediction.simulated_sm, prediction.result, prediction.simulation
    gpu = sm.gpu
    lines = _operation_lines(sm, timing)
    units = {name: pipe_units(gpu.pipes[name], gpu.sm.schedulers) for name in pipe_order(gpu)}
    pipes = tuple(
        PipeUse(name, units[name], int(busy)) for name, busy in zip(units, result.pipe_busy.tolist(), strict=True)
    )
    return Detail(
        source=_source(sm, timing, lines, len(pipes)),
        pipes=pipes,
        roofs=_roofs(prediction),
        traffic=_traffic(prediction),
        sm_cycles=result.cycles * prediction.plan.simulated_sms,
        convergence=prediction.convergence,
        exact=prediction.exact,
        limits=OccupancyLimits.of(gpu),
        operation_lines=lines,
    )


def _operation_lines(sm: SimulatedSm, timing: BlockTiming) -> tuple[int, ...]:
    """The PTX line of every instruction; of a task list, whose instructions are its tasks, their numbers."""
    if isinstance(sm, TraceSm):
        return tuple(instruction.line for instruction in sm.kernel.instructions)
    return tuple(range(int(timing.work.op_pc.max(initial=-1)) + 1))


def _source(sm: SimulatedSm, timing: BlockTiming, lines: tuple[int, ...], pipes: int) -> tuple[SourceLine, ...]:
    """Every executed line, and of a file the lines between them."""
    result, work = timing.result, timing.work
    at = np.array(lines, np.int64)[work.op_pc]  # [O]
    found, place = np.unique(at, return_inverse=True)
    issued = np.bincount(place, weights=result.op_issued, minlength=len(found)).astype(np.int64)
    stalls = np.zeros((len(found), len(STALL_REASONS)), np.int64)
    np.add.at(stalls, place, result.op_stall)
    busy = np.zeros((len(found), pipes), np.int64)
    np.add.at(busy, (place, work.op_pipe), result.op_issued * work.op_ii)
    counts = {
        int(line): (int(issued[i]), tuple(stalls[i].tolist()), tuple(busy[i].tolist()))
        for i, line in enumerate(found)
        if issued[i]
    }
    shown: list[SourceLine] = []
    for line in sorted(counts):
        if shown and isinstance(sm, TraceSm) and line - shown[-1].line <= GAP:
            shown += [SourceLine(between, _text(sm, between)) for between in range(shown[-1].line + 1, line)]
        shown.append(SourceLine(line, _text(sm, line), *counts[line]))
    return tuple(shown)


def _text(sm: SimulatedSm, line: int) -> str:
    if isinstance(sm, TraceSm) and 0 < line <= len(sm.module.lines):
        return sm.module.lines[line - 1].rstrip()
    if isinstance(sm, TaskListSm):
        return next((task.op for task in sm.flat.tasks if task.number == line), "")
    return ""


def _flops(sm: SimulatedSm, timing: BlockTiming) -> dict[str, float]:
    """Floating-point operations of the simulated blocks, by class (ppt_gpu.bounds.flops.CLASSES)."""
    found = dict.fromkeys(CLASSES, 0.0)
    counts: NDArray[np.int64]
    if isinstance(sm, TraceSm):
        counts = timing.feed.pc_threads
        work = [flops(operation(instruction), instruction.modifiers) for instruction in sm.kernel.instructions]
    elif isinstance(sm, TaskListSm):
        runs = np.bincount(sm.flat.path, minlength=len(sm.flat.tasks)) * timing.work.warps
        counts = runs * np.array([task.active for task in sm.flat.tasks], np.int64)
        work = [flops(task.op) for task in sm.flat.tasks]
    else:
        return found
    for (kind, each), count in zip(work, counts.tolist(), strict=True):
        if kind:
            found[kind] += each * count
    return found


def _roofs(prediction: KernelPrediction) -> Roofs:
    sm, result = prediction.simulated_sm, prediction.result
    gpu, clock = sm.gpu, sm.gpu.sm.clock
    traffic, work = _traffic(prediction), _flops(sm, prediction.simulation)
    kind = max(work, key=lambda name: work[name])
    levels = (
        Level("L1", gpu.l1.bandwidth * clock * sm.spread.active_sms, traffic.l1),
        Level("L2", gpu.l2.bandwidth * clock, traffic.l2_read + traffic.l2_write),
        Level("DRAM", gpu.dram.bandwidth, traffic.dram_read + traffic.dram_write),
    )
    peak = _tensor_peak(work[kind], result, gpu) if kind == "tensor" else peak_flops(gpu, kind)
    return Roofs(kind, peak, sum(work.values()) * prediction.plan.chip_factor, prediction.cycles / clock, levels)


def _tensor_peak(work: float, result: SmResult, gpu: Gpu) -> float:
    """FLOP/s if all SMs executed these products without a pause; types and shapes decide how fast tensor cores are."""
    pipe = pipe_order(gpu).index("tensor")
    busy = float(result.pipe_busy[pipe]) / pipe_units(gpu.pipes["tensor"], gpu.sm.schedulers)
    return gpu.sm.count * work / busy * gpu.sm.clock if busy else peak_flops(gpu, "tensor")


def _traffic(prediction: KernelPrediction) -> Traffic:
    result, scale = prediction.result, prediction.plan.traffic
    return Traffic(
        l1=result.l1_accesses * prediction.simulation.work.sector_bytes * scale,
        l2_read=result.l2_read_bytes * scale,
        l2_write=result.l2_write_bytes * scale,
        dram_read=result.dram_read_bytes * scale,
        dram_write=result.dram_write_bytes * scale,
        shared_accesses=result.shared_accesses * prediction.plan.chip_factor,
        shared_passes=result.shared_passes * prediction.plan.chip_factor,
    )
