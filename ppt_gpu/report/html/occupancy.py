"""Occupancy against registers, shared memory and block size: where the kernel stands, and where the next block fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ppt_gpu.common.units import format_bytes
from ppt_gpu.report.html.svg import Frame, picture, steps
from ppt_gpu.report.html.tags import Markup, join, tag
from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.text.numbers import metric_text, value_of
from ppt_gpu.scale.occupancy.rules import OccupancyLimits, theoretical_occupancy

FRAME = Frame(330, 230, left=44, right=12)


@dataclass(frozen=True)
class Need:
    """What a block of the kernel asks for."""

    threads: int
    registers: int
    shared: int  # B


@dataclass(frozen=True)
class Curve:
    """Warps per SM by one of the needs; the others stay as they are."""

    name: str  # of the axis
    points: tuple[tuple[int, int], ...]  # value from which on so many warps fit
    most: int  # the largest value
    here: int
    step: tuple[int, int] | None  # the nearest value with more warps, and how many


def occupancy(launch: LaunchResult, detail: Detail) -> Markup:
    """Three curves, and in words what they show."""
    need = Need(
        int(launch.extra["threads"]), int(value_of(launch, "kernel.registers")), int(value_of(launch, "kernel.shared"))
    )
    found = curves(detail.limits, need)
    warps = int(value_of(launch, "occupancy.warps_per_sm"))
    figures = (tag("figure", _picture(curve, detail.limits, warps), _caption(curve, warps)) for curve in found)
    blocks, limiter = launch.value("occupancy.blocks_per_sm"), launch.value("occupancy.limiter")
    sentence = (
        f"{blocks} blocks of {need.threads} threads fit on an SM: {warps} of {detail.limits.max_warps} warps, "
        f"limited by {limiter}. "
    )
    nearest = launch.extra.get("next_step")
    more = f"The smallest change that lets more fit: {nearest}. " if nearest else "No change of them lets more fit. "
    spread = (
        f"The launch has {metric_text(launch, 'grid.blocks')} on {metric_text(launch, 'grid.active_sms')}, at most "
        f"{launch.extra['blocks_per_sm_max']} on one."
    )
    return join(tag("p", sentence, more if warps < detail.limits.max_warps else "", spread),
                tag("div", *figures, class_="trio"))  # fmt: skip


def curves(limits: OccupancyLimits, need: Need) -> tuple[Curve, Curve, Curve]:
    """By registers per thread, by shared memory per block and by threads per block."""

    def warps(threads: int, registers: int, shared: int) -> int:
        return theoretical_occupancy(limits, threads, registers, shared).warps_per_sm

    unit = max(limits.shared_unit, 1)
    sizes = [0, *range(1, limits.shared_per_block + 1, unit)]
    blocks = range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size)
    return (
        _curve("registers per thread", range(1, limits.max_registers_per_thread + 1), need.registers,
               lambda value: warps(need.threads, value, need.shared)),
        _curve("shared memory per block", sizes, need.shared,
               lambda value: warps(need.threads, need.registers, value)),
        _curve("threads per block", blocks, need.threads,
               lambda value: warps(value, need.registers, need.shared)),
    )  # fmt: skip


def _curve(name: str, values: Sequence[int], here: int, warps: Callable[[int], int]) -> Curve:
    found = [(value, warps(value)) for value in values]
    points = [found[0], *(b for a, b in pairwise(found) if b[1] != a[1])]
    now = warps(here)
    better = [(value, count) for value, count in found if count > now]
    step = min(better, key=lambda item: (abs(item[0] - here), item[0]), default=None)
    return Curve(name, tuple(points), values[-1], here, step)


def _value(curve: Curve, value: float) -> str:
    return format_bytes(value) if curve.name.startswith("shared") else f"{value:g}"


def _picture(curve: Curve, limits: OccupancyLimits, warps: int) -> Markup:
    shared = curve.name.startswith("shared")
    x, y = FRAME.across(0, curve.most), FRAME.up(0, limits.max_warps)
    kib = [1024.0 * value for value in FRAME.across(0, curve.most / 1024).ticks(4)]
    axes = FRAME.axes(
        x,
        y,
        (curve.name, "warps per SM"),
        (lambda value: _value(curve, value), lambda value: f"{value:g}"),
        kib if shared else x.ticks(5),
    )
    drawn = [axes, steps([(x(value), y(count)) for value, count in curve.points], x(curve.most), "step")]
    if curve.step is not None:
        more = f"{curve.step[1]} warps with {_value(curve, curve.step[0])}"
        drawn.append(tag("circle", tag("title", more), cx=x(curve.step[0]), cy=y(curve.step[1]), r=5, class_="next"))
    here = f"{warps} warps with {_value(curve, curve.here)}"
    drawn.append(tag("circle", tag("title", here), cx=x(curve.here), cy=y(warps), r=6, class_="here"))
    return picture(FRAME, f"Warps per SM against {curve.name}: {here}", *drawn)


def _caption(curve: Curve, warps: int) -> Markup:
    now = f"{warps} warps with {_value(curve, curve.here)}"
    if curve.step is None:
        return tag("figcaption", f"{now}; no other value lets more fit.")
    return tag("figcaption", f"{now}; {curve.step[1]} warps with {_value(curve, curve.step[0])}.")
