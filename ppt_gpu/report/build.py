"""From a finished simulation to a Result: the metrics, bounds, stall shares and hot lines of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ppt_gpu.bounds.bounds import ResourceBound
from ppt_gpu.bounds.little import little
from ppt_gpu.bounds.roofline import hierarchical_roofline, roofline
from ppt_gpu.common.units import format_bytes, format_rate, format_time
from ppt_gpu.report.build_detail import detail_of
from ppt_gpu.report.html.notebook import summary
from ppt_gpu.report.result.detail import Roofs, SourceLine
from ppt_gpu.report.result.expected_error import expected_error, expected_text
from ppt_gpu.report.result.limiter import limiter, limiter_kind
from ppt_gpu.report.result.metrics import metric
from ppt_gpu.report.result.result import Bound, HotLine, LaunchResult, Metric, Result, Span
from ppt_gpu.report.text.text import render
from ppt_gpu.scale.host import ApplicationTime
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Workload

HOT_LINES = 8


@dataclass(frozen=True, repr=False)
class ShownResult(Result):
    """What predictions return."""

    def __str__(self) -> str:
        """The report, as `ppt-gpu predict` prints it."""
        return render(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return summary(self)


def build_launch(prediction: KernelPrediction, floors: Sequence[ResourceBound]) -> LaunchResult:
    """The result of one launch. `floors` are lower bounds on `prediction.cycles`."""
    sm = prediction.simulated_sm
    gpu = sm.gpu
    bounds = tuple(Bound(f.resource, f.cycles, f.equation, f.terms) for f in floors)
    stalls = stall_shares(prediction.result)
    limit = limiter(bounds, stalls, prediction.cycles)
    kind = limiter_kind(bounds, stalls, prediction.cycles)
    error = expected_error(gpu, kind)
    detail = detail_of(prediction)
    metrics = [
        *_time_metrics(prediction, gpu),
        *_work_metrics(prediction),
        *_survey_metrics(prediction),
        metric("limiter", limit),
        metric("limiter.kind", kind),
        metric("kernel.expected_error", "no evidence" if error is None else error.mean),
        *_occupancy_metrics(sm),
        *_memory_metrics(prediction, gpu),
        *_roofline_metrics(detail.roofs),
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
        hot=hot_lines(detail.source),
        assumptions=_assumptions(prediction),
        warnings=tuple(dict.fromkeys(prediction.warnings)),
        analysis=analysis(detail.roofs, gpu),
        extra={
            "printed": prediction.simulation.feed.printed,
            "grid": list(sm.launch.grid),
            "block": list(sm.launch.block),
            "threads": sm.launch.threads_per_block,
            "repeat": sm.launch.repeat,
            "registers_estimated": sm.registers_estimated,
            "register_source": sm.launch.register_source,
            "next_step": sm.occupancy.next_step,
            "blocks_per_sm_max": sm.spread.max_blocks,
            "warp_cycles": int(prediction.result.warp_cycles.sum()),
            "extrapolation_error": prediction.error,
            "expected_error": expected_text(error, gpu, prediction.plan.level),
        },
        detail=detail,
    )


def build_result(
    workload: Workload,
    gpu: Gpu,
    level: str,
    launches: Sequence[LaunchResult],
    order: Sequence[int],
    application: ApplicationTime,
    wall: float,
) -> Result:
    """The whole. `order`: which launch each step is; `wall`: the host's time for the prediction, s."""
    timed = tuple(replace(launch, metrics=_with_wall(launch.metrics, wall)) for launch in launches)
    before = sum(copy.direction == "in" for copy in workload.copies)
    after = len(application.spans) - before - len(order)
    numbers = [*[-1] * before, *order, *[-1] * after]
    spans = tuple(Span(s.name, s.start, s.end, n) for s, n in zip(application.spans, numbers, strict=True))
    return ShownResult(workload.name, gpu.name, level, application.total, timed, application.copy_times, spans)


def _with_wall(metrics: Sequence[Metric], wall: float) -> tuple[Metric, ...]:
    return tuple(metric("sim.wall", wall) if item.tag == "sim.wall" else item for item in metrics)


def stall_shares(result: SmResult) -> tuple[tuple[str, float], ...]:
    """(reason, share of all resident warp cycles), in the order of STALL_REASONS; sums to 1."""
    total = int(result.warp_cycles.sum()) or 1
    return tuple((reason, int(n) / total) for reason, n in zip(STALL_REASONS, result.warp_cycles, strict=True))


def _time_metrics(prediction: KernelPrediction, gpu: Gpu) -> list[Metric]:
    overhead = gpu.host.launch_overhead
    return [
        metric("kernel.time", prediction.cycles / gpu.sm.clock + overhead),
        metric("kernel.cycles", prediction.cycles),
        metric("kernel.launch_overhead", overhead),
        metric("gpu.clock", gpu.sm.clock),
    ]


def _work_metrics(prediction: KernelPrediction) -> list[Metric]:
    sm, result, scale = prediction.simulated_sm, prediction.result, prediction.plan.chip_factor
    threads, survey = prediction.simulation.work.thread_instructions * scale, prediction.survey
    if survey is not None and (survey.whole or survey.irregular):
        threads = survey.thread_instructions * survey.grid_blocks
    return [
        metric("kernel.thread_instructions", round(threads)),
        metric("kernel.warp_instructions", round(result.issued * scale)),
        metric("kernel.registers", sm.registers),
        metric("kernel.shared", sm.shared),
        metric("grid.blocks", sm.launch.blocks),
        metric("grid.active_sms", sm.spread.active_sms),
        metric("sm.ipc", result.issued / max(result.cycles, 1) / prediction.plan.simulated_sms),
    ]


def _survey_metrics(prediction: KernelPrediction) -> list[Metric]:
    """What was looked at of the grid, and how much its blocks differ; nothing of a task list, whose blocks do not."""
    survey = prediction.survey
    if survey is None or isinstance(prediction.sm, TaskListSm):
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
        metric("occupancy.limiter", _list(fit.limiters)),
    ]


def _share(part: int, whole: int) -> float | str:
    return part / whole if whole else "none"


def _memory_metrics(prediction: KernelPrediction, gpu: Gpu) -> list[Metric]:
    result, scale = prediction.result, prediction.plan.traffic
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


def _roofline_metrics(roofs: Roofs) -> list[Metric]:
    dram = roofs.level("DRAM").bytes
    intensity = roofs.flops / dram if dram else float("inf")
    attainable = roofline(roofs.peak, roofs.level("DRAM").bandwidth, intensity).attainable if dram else roofs.peak
    return [
        metric("roofline.flops", round(roofs.flops)),
        metric("roofline.intensity", intensity if dram else "no DRAM traffic"),
        metric("roofline.attainable", attainable),
        metric("roofline.achieved", roofs.achieved),
    ]


def analysis(roofs: Roofs, gpu: Gpu) -> tuple[str, ...]:
    """The hierarchical roofline of the kernel, and Little's law for DRAM: what it needs and what it has in flight."""
    used = roofs.used
    lines: list[str] = []
    if roofs.flops and used:
        bandwidth = {level.name: level.bandwidth for level in used}
        traffic = {level.name: level.bytes for level in used}
        lines += hierarchical_roofline(roofs.peak, bandwidth, roofs.flops, traffic).lines()
    latency = gpu.dram.latency / gpu.sm.clock
    need = little(latency, gpu.dram.bandwidth).concurrency
    have = little(latency, roofs.level("DRAM").bytes / roofs.seconds if roofs.seconds else 0.0).concurrency
    lines.append(
        f"Little's law: {format_bytes(need)} in flight = {format_time(latency)} x {format_rate(gpu.dram.bandwidth)} "
        f"would fill the DRAM; the kernel keeps {format_bytes(have)} ({have / need:.0%}) in flight"
    )
    return tuple(lines)


def hot_lines(source: Sequence[SourceLine]) -> tuple[HotLine, ...]:
    """The source lines where warps spend most cycles, most first."""
    order = sorted((line for line in source if line.issued), key=lambda line: (-line.warp_cycles, line.line))
    return tuple(
        HotLine(line.line, " ".join(line.text.split()), line.issued, line.warp_cycles, line.reason)
        for line in order[:HOT_LINES]
    )


def _assumptions(prediction: KernelPrediction) -> tuple[str, ...]:
    sm = prediction.simulated_sm
    sms = prediction.plan.simulated_sms
    what = f"{sms} SM{'s' * (sms > 1)} that share L2 and DRAM" if prediction.plan.whole else "one SM"
    lines = [
        f"level {prediction.plan.level}: {what} simulated event by event, {prediction.simulated_blocks} of "
        f"{sm.launch.blocks} blocks, {prediction.result.issued:,} warp instructions",
        *prediction.assumptions,
    ]
    if sm.approximate:
        result = prediction.result
        share = result.approximate_cycles / max(result.cycles, 1)
        lines.append(f"--approximate: {share:.0%} of the SM's cycles were not simulated, but taken to go like others")
        if result.estimated_operations:
            lines[-1] += (
                f"; hits and traffic of {result.estimated_operations:,} memory operations are those of others, scaled"
            )
    if prediction.error:
        lines.append(f"estimated error of the extrapolation alone: {prediction.error:.1%}")
    lines += prediction.simulation.feed.notes
    if sm.launch.repeat > 1:
        lines.append(
            f"one prediction stands for all {sm.launch.repeat:,} runs: at most they are given other buffers of "
            "the same type and size"
        )
    if sm.registers_estimated:
        lines.append("registers per thread are an estimate of what ptxas would use; --registers ptxas asks it")
    lines += sm.source_notes
    if sm.gpu.perfect_memory:
        lines.append("perfect memory: every L1 miss returns at once")
    return tuple(lines)


def _list(names: Sequence[str]) -> str:
    """ "warps, blocks and registers" """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
