"""The roofline model, plain (Williams, Waterman, Patterson, CACM 2009) and hierarchical (one roof a memory level).

P = min(peak, bandwidth x intensity), intensity = FLOPs / bytes. Hierarchical: each level has its own bytes, hence its
own intensity; the lowest of the roofs is attainable and its level limits the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.units import format_rate
from ppt_gpu.spec.gpu import COMPUTE_CLASSES, Gpu

#: classes whose operations are counted as floating point
FLOP_CLASSES = tuple(name for name in COMPUTE_CLASSES if name in ("fp32", "fp64", "fp16", "tensor"))


@dataclass(frozen=True)
class Roofline:
    """One roof. Rates in FLOP/s and B/s, intensity in FLOP/B."""

    peak: float
    bandwidth: float
    intensity: float

    @property
    def ridge(self) -> float:
        """The intensity from which on the peak is attainable, FLOP/B."""
        return self.peak / self.bandwidth

    @property
    def attainable(self) -> float:
        """FLOP/s."""
        return min(self.peak, self.bandwidth * self.intensity)

    @property
    def limiter(self) -> str:
        return "compute" if self.intensity >= self.ridge else "memory"

    def lines(self) -> list[str]:
        """Each equation, its numbers and the result."""
        peak, bandwidth = format_rate(self.peak, "FLOP/s"), format_rate(self.bandwidth)
        return [
            f"ridge = peak / bandwidth = {peak} / {bandwidth} = {self.ridge:.6g} FLOP/B",
            f"attainable = min(peak, bandwidth x intensity) = min({peak}, {bandwidth} x {self.intensity:.6g} FLOP/B)"
            f" = {format_rate(self.attainable, 'FLOP/s')} ({self.limiter} bound)",
        ]


@dataclass(frozen=True)
class HierarchicalRoofline:
    """One roof for each memory level, in the order given. Rates in FLOP/s, `time` in s."""

    peak: float
    flops: float
    levels: Mapping[str, Roofline]  # level -> its roof; a level without traffic has none

    @property
    def bound_per_level(self) -> dict[str, float]:
        """FLOP/s that each level allows, the peak included."""
        return {name: roof.attainable for name, roof in self.levels.items()}

    @property
    def attainable(self) -> float:
        """FLOP/s: the lowest roof."""
        return min(self.bound_per_level.values(), default=self.peak)

    @property
    def limiter(self) -> str:
        """The level of the lowest roof; "compute" when none is below the peak. The first of equal ones."""
        below = {name: bound for name, bound in self.bound_per_level.items() if bound < self.peak}
        return min(below, key=lambda name: below[name]) if below else "compute"

    @property
    def time(self) -> float:
        """Least time of the kernel, s."""
        return self.flops / self.attainable

    def lines(self) -> list[str]:
        """Each equation, its numbers and the result."""
        found = [
            f"P({name}) = min(peak, bandwidth x intensity) = min({format_rate(self.peak, 'FLOP/s')}, "
            f"{format_rate(roof.bandwidth)} x {roof.intensity:.6g} FLOP/B) = {format_rate(roof.attainable, 'FLOP/s')}"
            for name, roof in self.levels.items()
        ]
        if not self.levels:
            return [f"P = peak = {format_rate(self.peak, 'FLOP/s')}: no memory level has traffic"]
        terms = ", ".join(format_rate(bound, "FLOP/s") for bound in self.bound_per_level.values())
        total = format_rate(self.attainable, "FLOP/s")
        return [*found, f"P = min over levels = min({terms}) = {total}, limited by {self.limiter}"]


def roofline(peak: float, bandwidth: float, intensity: float) -> Roofline:
    """The plain roofline: peak in FLOP/s, bandwidth in B/s, intensity in FLOP/B.

    Raises PptError unless peak and bandwidth are positive and the intensity is 0 or more.
    """
    if not (peak > 0 and bandwidth > 0 and intensity >= 0):
        message = f"a roofline needs positive rates: peak {peak:g}, bandwidth {bandwidth:g}, intensity {intensity:g}"
        raise PptError(message)
    return Roofline(peak, bandwidth, intensity)


def hierarchical_roofline(
    peak: float, bandwidth: Mapping[str, float], flops: float, traffic: Mapping[str, float]
) -> HierarchicalRoofline:
    """The hierarchical roofline: `bandwidth` (B/s) and `traffic` (B) by level, `flops` the kernel's operations.

    A level with no traffic sets no bound. Raises PptError for levels that do not match or values below 0.
    """
    for name in traffic:
        if name not in bandwidth:
            raise PptError(f"no bandwidth for level '{name}'", hint=did_you_mean(name, bandwidth))
        if traffic[name] < 0:
            raise PptError(f"level '{name}' moves {traffic[name]:g} B", hint="0 B or more")
    missing = [name for name in bandwidth if name not in traffic]
    if missing:
        raise PptError(f"no traffic for level '{missing[0]}'", hint="give 0 for a level that the kernel does not use")
    if not (flops > 0 and peak > 0):
        raise PptError(f"the roofline needs operations and a peak above 0: {flops:g} FLOP, {peak:g} FLOP/s")
    levels = {name: roofline(peak, bandwidth[name], flops / moved) for name, moved in traffic.items() if moved > 0}
    return HierarchicalRoofline(peak, flops, levels)


def peak_flops(gpu: Gpu, task_class: str) -> float:
    """Peak FLOP/s of fused multiply-adds of `task_class` ("fp32", "fp64", "fp16", "tensor") on the whole chip.

    SMs x lanes x 2 x clock, times pipe.ii / op.ii where the operation runs at less than the pipe's full rate. Lanes of
    a tensor pipe are multiply-adds a cycle. One value a lane: packed f16x2 arithmetic does twice as much.
    Raises PptError for a class that is not floating point or that the GPU has no pipe for.
    """
    if task_class not in FLOP_CLASSES:
        hint = did_you_mean(task_class, FLOP_CLASSES)
        raise PptError(f"'{task_class}' is no floating-point class", hint=hint)
    try:
        op = gpu.isa.op(f"{task_class}.fma")
        pipe = gpu.pipes[op.pipe]
    except KeyError:
        raise PptError(f"{gpu.name} has no pipe for '{task_class}'") from None
    if task_class == "tensor":
        if pipe.name != "tensor":
            raise PptError(f"{gpu.name} has no tensor pipe")
        return gpu.sm.count * pipe.lanes * 2 * gpu.sm.clock
    return gpu.sm.count * pipe.lanes * 2 * gpu.sm.clock * pipe.ii / op.ii
