"""The result of a prediction: metrics as data, and what they rest on. Reports are pure functions of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the registry of metrics must not load NumPy
    from ppt_gpu.report.result.detail import Detail
    from ppt_gpu.sm.reference.recording import Recording

SCHEMA = 1


@dataclass(frozen=True)
class Metric:
    """One number that leaves the program. Definition and source come from `report.result.metrics`."""

    tag: str  # "kernel.time"
    name: str  # "Run time"
    unit: str  # "s"
    value: float | int | str
    definition: str
    source: str

    @property
    def number_or_text(self) -> float | int | str | None:
        """The value; None where a number is missing and `value` says why."""
        return None if self.unit and isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Bound:
    """A lower bound on the kernel's time from one resource. `share` = bound / predicted cycles."""

    resource: str  # "DRAM bandwidth"
    cycles: float
    equation: str
    terms: str  # the equation with its numbers


@dataclass(frozen=True)
class HotLine:
    line: int
    text: str
    issued: int  # warp instructions
    warp_cycles: int
    reason: str  # its main stall reason


@dataclass(frozen=True)
class LaunchResult:
    """One launch."""

    kernel: str
    level: str
    metrics: tuple[Metric, ...]
    bounds: tuple[Bound, ...]
    stalls: tuple[tuple[str, float], ...]  # reason, share; sums to 1
    hot: tuple[HotLine, ...]
    assumptions: tuple[str, ...]  # how the number was made
    warnings: tuple[str, ...] = ()
    analysis: tuple[str, ...] = ()  # closed-form models: each equation, its numbers, its result
    extra: dict[str, Any] = field(default_factory=dict)
    detail: Detail | None = None  # what pictures are drawn from
    recording: Recording | None = field(default=None, compare=False)  # a window of the simulation, where asked for

    def __repr__(self) -> str:
        """A line for consoles: all fields would be thousands of lines."""
        return f"<LaunchResult: {self.kernel}, level {self.level}, {len(self.metrics)} metrics>"

    def value(self, tag: str) -> float | int | str:
        """The value of metric `tag`. KeyError when this result has none."""
        for metric in self.metrics:
            if metric.tag == tag:
                return metric.value
        raise KeyError(tag)


@dataclass(frozen=True)
class Span:
    """A part of the application's time, s. `launch`: its place in `Result.launches`; -1 for a copy."""

    name: str
    start: float
    end: float
    launch: int = -1


@dataclass(frozen=True)
class Suggestion:
    """A change of the kernel or its launch, and what simulating it gave."""

    text: str
    time: float  # s, of the launch with it
    gain: float  # time without it / time with it
    remark: str = ""  # what it takes for granted


@dataclass(frozen=True)
class Result:
    """A whole workload on one GPU."""

    workload: str
    gpu: str
    level: str
    time: float  # s, launches with overheads, repeats and host copies
    launches: tuple[LaunchResult, ...]
    copies: tuple[tuple[str, float], ...] = ()  # name, s
    spans: tuple[Span, ...] = ()  # copies and launches in time order
    advice: tuple[Suggestion, ...] | None = None  # where asked for; (): nothing that was simulated helps
    schema: int = SCHEMA

    @property
    def main(self) -> LaunchResult:
        """The launch that takes longest, the first of equals."""
        return max(self.launches, key=lambda launch: float(launch.value("kernel.time")))

    def rows(self) -> list[dict[str, float | int | str | None]]:
        """A row a launch, a column a metric: what pandas.DataFrame and polars.DataFrame take.

        A number that a launch does not have, such as the hit rate of a cache that it does not use, is None.
        """
        return [
            {
                "workload": self.workload,
                "gpu": self.gpu,
                "level": self.level,
                "launch": number,
                "kernel": launch.kernel,
                "repeat": int(launch.extra.get("repeat", 1)),
                **{item.tag: item.number_or_text for item in launch.metrics},
            }
            for number, launch in enumerate(self.launches)
        ]

    def __repr__(self) -> str:
        """A line for consoles, which show what an expression gives; all fields would be thousands of lines."""
        kernels = f"{len(self.launches)} launch{'es' * (len(self.launches) != 1)}"
        return f"<Result: {self.workload} on {self.gpu}, {self.time:.4g} s, {kernels}; str() is the report>"
