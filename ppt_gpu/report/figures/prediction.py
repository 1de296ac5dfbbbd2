"""Figures of predictions: the roofline with its kernels, and CPI stacks of launches, GPUs or variants side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_rate
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot
from ppt_gpu.report.html.palette import STALLS
from ppt_gpu.report.result.detail import Roofs
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.sm.program.result import STALL_REASONS

MARKERS = {"L1": "^", "L2": "s", "DRAM": "o"}
LINES = {"L1": ":", "L2": "--", "DRAM": "-"}
LAUNCHES = len(COLOURS)
LEAST = 0.01  # share of the tallest stack: what is nowhere more is not named


def prediction_figure(result: Result) -> Any:
    """Left the roofline of the longest launches, right their CPI stacks."""
    shown = sorted(range(len(result.launches)), key=lambda n: -float(result.launches[n].value("kernel.time")))[
        :LAUNCHES
    ]
    launches = {_name(result, number): result.launches[number] for number in sorted(shown)}
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.2, 1))
        draw_roofline(left, launches)
        draw_stacks(right, launches)
        figure.suptitle(f"{result.workload} on {result.gpu}")
        figure.tight_layout()
    return figure


def stacks_figure(launches: Mapping[str, LaunchResult]) -> Any:
    """CPI stacks side by side: of several GPUs, variants or sizes, say `{"k40": one.main, "v100": other.main}`."""
    if not launches:
        raise PptError("CPI stacks of nothing", hint="give at least one launch")
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(2.5 + 0.9 * len(launches), 4.2))
        draw_stacks(axis, launches)
        figure.tight_layout()
    return figure


def _name(result: Result, number: int) -> str:
    """The kernel, with the launch's number where there are several."""
    kernel = short_name(result.launches[number].kernel)
    return kernel if len(result.launches) == 1 else f"{number + 1}: {kernel}"


def draw_roofline(axis: Any, launches: Mapping[str, LaunchResult]) -> None:
    """Roofs of the levels of memory, and of each launch a mark for each level that it uses."""
    drawn = {name: one.detail.roofs for name, one in launches.items() if one.detail and one.detail.roofs.flops}
    drawn = {name: roofs for name, roofs in drawn.items() if roofs.used}
    axis.set(xlabel="arithmetic intensity in FLOP/B", ylabel="FLOP/s")
    if not drawn:
        axis.text(0.5, 0.5, "no fp32 or fp64 operations", ha="center", va="center", transform=axis.transAxes)
        axis.set_xticks([])
        axis.set_yticks([])
        return
    axis.set_xscale("log")
    axis.set_yscale("log")
    for colour, (name, roofs) in zip(COLOURS, drawn.items(), strict=False):
        for level in roofs.used:
            at = roofs.flops / level.bytes
            axis.plot(at, roofs.achieved, MARKERS[level.name], color=colour, label=f"{name}, {level.name}", ms=7)
    _roofs(axis, list(drawn.values()))
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0.0, 0.93))


def _roofs(axis: Any, found: Sequence[Roofs]) -> None:
    """The roofs of every level that some launch uses, over all their intensities."""
    levels = {level.name: level for roofs in found for level in roofs.used}
    peaks = {roofs.kind: roofs.peak for roofs in found}
    ridges = [peak / level.bandwidth for peak in peaks.values() for level in levels.values()]
    marks = [roofs.flops / level.bytes for roofs in found for level in roofs.used]
    low, high = min(*ridges, *marks) / 4, max(*ridges, *marks) * 4
    for kind, peak in peaks.items():
        for level in levels.values():
            ridge = peak / level.bandwidth
            name = None if kind != next(iter(peaks)) else f"{level.name} {format_rate(level.bandwidth)}"
            line = [level.roof(low), peak, peak]
            axis.plot([low, ridge, high], line, LINES[level.name], color="#555555", lw=1.3, zorder=1, label=name)
        axis.annotate(f"peak {kind} {format_rate(peak, 'FLOP/s')}", (high, peak), ha="right", va="bottom", fontsize=7)


def draw_stacks(axis: Any, launches: Mapping[str, LaunchResult]) -> None:
    """A bar a launch: cycles that a resident warp takes for an instruction, by stall reason."""
    stacks = {name: cpi_stack(launch) for name, launch in launches.items()}
    tallest = max((sum(stack.values()) for stack in stacks.values()), default=0.0)
    bottom = [0.0] * len(stacks)
    for reason in STALL_REASONS:
        heights = [stack.get(reason, 0.0) for stack in stacks.values()]
        label = reason if max(heights, default=0.0) > LEAST * tallest else None
        axis.bar(list(stacks), heights, 0.62, bottom=bottom, color=STALLS[reason][0], label=label, ec="white", lw=0.4)
        bottom = [before + height for before, height in zip(bottom, heights, strict=True)]
    axis.set(ylabel="warp cycles per instruction")
    axis.grid(axis="x", visible=False)
    middle, room = (len(stacks) - 1) / 2, max(len(stacks) / 2 + 0.1, 1.0)
    axis.set_xlim(middle - room, middle + room)
    if max((len(name) for name in stacks), default=0) * len(stacks) > 40:
        axis.tick_params(axis="x", rotation=25)
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def cpi_stack(launch: LaunchResult) -> dict[str, float]:
    """Stall reason -> cycles of a resident warp for an instruction; they add up to its CPI."""
    cpi = int(launch.extra["warp_cycles"]) / max(float(launch.value("sim.warp_instructions")), 1.0)
    return {reason: share * cpi for reason, share in launch.stalls}
