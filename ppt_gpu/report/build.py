"""From a finished simulation to a Result: the metrics, bounds, stall shares and hot lines of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ppt_gpu.analytic.bounds import ResourceBound
from ppt_gpu.analytic.little import little
from ppt_gpu.analytic.roofline import hierarchical_roofline, peak_flops, roofline
from ppt_gpu.exec.workload import Workload
from ppt_gpu.ptx.instructions import operation
from ppt_gpu.report.limiter import limiter
from ppt_gpu.report.metrics import metric
from ppt_gpu.report.result import Bound, HotLine, LaunchResult, Metric, Result
from ppt_gpu.scale.host import ApplicationTime
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.sm.result import STALL_REASONS, SmResult
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.units import format_bytes, format_rate, format_time

HOT_LINES = 8

#: floating-point operations of one lane, by the last part of the operation's name
FLOPS = {"add": 1, "mul": 1, "fma": 2, "div": 1}


def build_launch(
    sm: SimulatedSm, gpu: Gpu, prediction: KernelPrediction, floors: Sequence[ResourceBound]
) -> LaunchResult:
    """The result of one launch. `floors` are lower bounds on `prediction.cycles`."""
    bounds = tuple(Bound(f.resource, f.cycles, f.equation, f.terms) for f in floors)
    stalls = stall_shares(prediction.result)
    limit = limiter(bounds, stalls, prediction.cycles)
    metrics = [
        *_time_metrics(gpu, prediction),
        *_work_metrics(sm, prediction),
        *_survey_metrics(sm, prediction),
        metric("limiter", limit),
        *_occupancy_metrics(sm),
        *_memory_metrics(prediction, gpu),
        *_roofline_metrics(sm, gpu, prediction),
        metric("sim.blocks", prediction.simulated_blocks),
        metric("sim.extrapolation", prediction.factor),
        metric("sim.warp_instructions", prediction.result.issued),
        metric("sim.wall", prediction.result.wall),
    ]
    return LaunchResult(
        kernel=sm.launch.kernel,
        level=prediction.plan.level,
        metrics=tuple(metrics),
        bounds=bounds,
        stalls=stalls,
        hot=hot_lines(sm, prediction.result),
        assumptions=_assumptions(sm, gpu, prediction),
        warnings=tuple(dict.fromkeys(sm.warnings)),
        analysis=analysis(sm, gpu, prediction),
        extra={
            "printed": sm.feed.printed,
            "grid": list(sm.launch.grid),
            "block": list(sm.launch.block),
            "repeat": sm.launch.repeat,
            "registers_estimated": sm.registers_estimated,
            "register_source": sm.launch.register_source,
            "next_step": sm.occupancy.next_step,
            "blocks_per_sm_max": sm.spread.max_blocks,
            "warp_cycles": int(prediction.result.warp_cycles.sum()),
            "extrapolation_error": prediction.error,
        },
    )


def build_result(
    workload: Workload,
    gpu: Gpu,
    level: str,
    launches: Sequence[LaunchResult],
    application: ApplicationTime,
    wall: float,
) -> Result:
    """The whole. `wall` is the host's time for the prediction, s."""
    timed = tuple(replace(launch, metrics=_with_wall(launch.metrics, wall)) for launch in launches)
    return Result(workload.name, gpu.name, level, application.total, timed, application.copy_times)


def _with_wall(metrics: Sequence[Metric], wall: float) -> tuple[Metric, ...]:
    return tuple(metric("sim.wall", wall) if item.tag == "sim.wall" else item for item in metrics)


def stall_shares(result: SmResult) -> tuple[tuple[str, float], ...]:
    """(reason, share of all resident warp cycles), in the order of STALL_REASONS; sums to 1."""
    total = int(result.warp_cycles.sum()) or 1
    return tuple((reason, int(n) / total) for reason, n in zip(STALL_REASONS, result.warp_cycles, strict=True))


def _time_metrics(gpu: Gpu, prediction: KernelPrediction) -> list[Metric]:
    overhead = gpu.host.launch_overhead
    return [
        metric("kernel.time", prediction.cycles / gpu.sm.clock + overhead),
        metric("kernel.cycles", prediction.cycles),
        metric("kernel.launch_overhead", overhead),
        metric("gpu.clock", gpu.sm.clock),
    ]


def _work_metrics(sm: SimulatedSm, prediction: KernelPrediction) -> list[Metric]:
    result, scale = prediction.result, prediction.plan.chip_factor
    threads, survey = sm.work.thread_instructions * scale, prediction.survey
    if survey is not None and (survey.whole or survey.irregular):
        threads = survey.thread_instructions * survey.grid_blocks
    return [
        metric("kernel.thread_instructions", round(threads)),
        metric("kernel.warp_instructions", round(result.issued * scale)),
        metric("kernel.registers", sm.registers),
        metric("kernel.shared", sm.shared),
        metric("grid.blocks", sm.launch.blocks),
        metric("grid.active_sms", sm.spread.active_sms),
        metric("sm.ipc", result.issued / max(result.cycles, 1)),
    ]


def _survey_metrics(sm: SimulatedSm, prediction: KernelPrediction) -> list[Metric]:
    """What was looked at of the grid, and how much its blocks differ; nothing of a task list, whose blocks do not."""
    survey = prediction.survey
    if survey is None or isinstance(sm, TaskListSm):
        return []
    return [
        metric("blocks.surveyed", len(survey.features)),
        metric("blocks.warp_instructions", survey.warp_instructions),
        metric("blocks.variation", survey.variation),
        metric("blocks.memory_variation", survey.sector_variation),
        metric("blocks.kinds", len(survey.clusters)),
        metric("blocks.shares", ", ".join(f"{share:.2%}" for share in survey.clusters.share)),
        metric("blocks.sampling_error", survey.error),
    ]


def _occupancy_metrics(sm: SimulatedSm) -> list[Metric]:
    fit = sm.occupancy
    return [
        metric("occupancy.blocks_per_sm", fit.blocks_per_sm),
        metric("occupancy.warps_per_sm", fit.warps_per_sm),
        metric("occupancy.fraction", fit.fraction),
        metric("occupancy.limiter", " and ".join(fit.limiters)),
    ]


def _share(part: int, whole: int) -> float | str:
    return part / whole if whole else "none"


def _memory_metrics(prediction: KernelPrediction, gpu: Gpu) -> list[Metric]:
    result, scale = prediction.result, prediction.plan.chip_factor
    read, write = result.dram_read_bytes * scale, result.dram_write_bytes * scale
    seconds = prediction.cycles / gpu.sm.clock
    return [
        metric("memory.l1_hit_rate", _share(result.l1_hits, result.l1_accesses)),
        metric("memory.l2_hit_rate", _share(result.l2_hits, result.l2_accesses)),
        metric("memory.l2_bytes", round((result.l2_read_bytes + result.l2_write_bytes) * scale)),
        metric("memory.dram_read_bytes", round(read)),
        metric("memory.dram_write_bytes", round(write)),
        metric("memory.dram_throughput", (read + write) / seconds if seconds else 0.0),
        metric("shared.passes_per_access", _share(result.shared_passes, result.shared_accesses)),
        metric("little.bytes_in_flight", little(gpu.dram.latency / gpu.sm.clock, gpu.dram.bandwidth).concurrency),
    ]


def flops(sm: SimulatedSm) -> dict[str, int]:
    """Floating-point operations of the simulated blocks, by class ("fp32", "fp64")."""
    found = {"fp32": 0, "fp64": 0}
    if isinstance(sm, TraceSm):
        counts = sm.feed.pc_threads
        names = [operation(instruction) for instruction in sm.kernel.instructions]
    elif isinstance(sm, TaskListSm):
        runs = np.bincount(sm.flat.path, minlength=len(sm.flat.tasks)) * sm.work.warps
        counts = runs * np.array([task.active for task in sm.flat.tasks], np.int64)
        names = [task.op for task in sm.flat.tasks]
    else:
        return found
    for name, count in zip(names, counts, strict=True):
        kind, _, variant = name.partition(".")
        if kind in found:
            found[kind] += FLOPS.get(variant, 0) * int(count)
    return found


def _roofline_metrics(sm: SimulatedSm, gpu: Gpu, prediction: KernelPrediction) -> list[Metric]:
    scale = prediction.plan.chip_factor
    work = flops(sm)
    kind = max(work, key=lambda name: work[name])
    total = sum(work.values()) * scale
    result = prediction.result
    traffic = (result.dram_read_bytes + result.dram_write_bytes) * scale
    seconds = prediction.cycles / gpu.sm.clock
    peak = peak_flops(gpu, kind)
    intensity = total / traffic if traffic else float("inf")
    attainable = roofline(peak, gpu.dram.bandwidth, intensity).attainable if traffic else peak
    return [
        metric("roofline.flops", round(total)),
        metric("roofline.intensity", intensity if traffic else "no DRAM traffic"),
        metric("roofline.attainable", attainable),
        metric("roofline.achieved", total / seconds if seconds else 0.0),
    ]


def analysis(sm: SimulatedSm, gpu: Gpu, prediction: KernelPrediction) -> tuple[str, ...]:
    """The hierarchical roofline of the kernel, and Little's law for DRAM: what it needs and what it has in flight."""
    result, scale, clock = prediction.result, prediction.plan.chip_factor, gpu.sm.clock
    work = flops(sm)
    kind = max(work, key=lambda name: work[name])
    dram = (result.dram_read_bytes + result.dram_write_bytes) * scale
    traffic = {
        "L1": result.l1_accesses * sm.work.sector_bytes * scale,
        "L2": (result.l2_read_bytes + result.l2_write_bytes) * scale,
        "DRAM": dram,
    }
    bandwidth = {
        "L1": gpu.l1.bandwidth * clock * sm.spread.active_sms,
        "L2": gpu.l2.bandwidth * clock,
        "DRAM": gpu.dram.bandwidth,
    }
    used = {level: moved for level, moved in traffic.items() if moved > 0 and bandwidth[level] > 0}
    lines: list[str] = []
    if sum(work.values()) and used:
        total = sum(work.values()) * scale
        lines += hierarchical_roofline(peak_flops(gpu, kind), {k: bandwidth[k] for k in used}, total, used).lines()
    latency = gpu.dram.latency / clock
    need = little(latency, gpu.dram.bandwidth).concurrency
    have = little(latency, dram * clock / prediction.cycles if prediction.cycles else 0.0).concurrency
    lines.append(
        f"Little's law: {format_bytes(need)} in flight = {format_time(latency)} x {format_rate(gpu.dram.bandwidth)} "
        f"would fill the DRAM; the kernel keeps {format_bytes(have)} ({have / need:.0%}) in flight"
    )
    return tuple(lines)


def hot_lines(sm: SimulatedSm, result: SmResult) -> tuple[HotLine, ...]:
    """The source lines where warps spend most cycles, most first."""
    cycles: dict[int, np.ndarray] = {}
    issued: dict[int, int] = {}
    for op, pc in enumerate(sm.work.op_pc):
        line = _line(sm, int(pc))
        cycles[line] = cycles.get(line, np.zeros(len(STALL_REASONS), np.int64)) + result.op_stall[op]
        issued[line] = issued.get(line, 0) + int(result.op_issued[op])
    order = sorted((line for line in cycles if issued[line]), key=lambda line: (-int(cycles[line].sum()), line))
    return tuple(
        HotLine(
            line,
            _text(sm, line),
            issued[line],
            int(cycles[line].sum()),
            STALL_REASONS[int(cycles[line].argmax())],
        )
        for line in order[:HOT_LINES]
    )


def _line(sm: SimulatedSm, pc: int) -> int:
    """The PTX line of an instruction; of a task list, the task's number."""
    if isinstance(sm, TraceSm):
        return sm.kernel.instructions[pc].line
    return pc


def _text(sm: SimulatedSm, line: int) -> str:
    if isinstance(sm, TraceSm) and 0 < line <= len(sm.module.lines):
        return " ".join(sm.module.lines[line - 1].split())
    if isinstance(sm, TaskListSm):
        return next((task.op for task in sm.flat.tasks if task.number == line), "")
    return ""


def _assumptions(sm: SimulatedSm, gpu: Gpu, prediction: KernelPrediction) -> tuple[str, ...]:
    lines = [
        f"level {prediction.plan.level}: one SM simulated event by event, {prediction.simulated_blocks} of "
        f"{sm.launch.blocks} blocks, {prediction.result.issued:,} warp instructions",
        *prediction.assumptions,
    ]
    if prediction.error:
        lines.append(f"estimated error of the extrapolation alone: {prediction.error:.1%}")
    lines += sm.feed.notes
    if sm.launch.repeat > 1:
        lines.append(
            f"one prediction stands for all {sm.launch.repeat:,} runs: at most they are given other buffers of "
            "the same type and size"
        )
    if sm.registers_estimated:
        lines.append("registers per thread were estimated from liveness; --registers ptxas gives the exact number")
    lines += sm.source_notes
    if gpu.perfect_memory:
        lines.append("perfect memory: every L1 miss returns at once")
    return tuple(lines)
