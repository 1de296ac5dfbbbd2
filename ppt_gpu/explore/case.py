"""One configuration to predict: a workload, a GPU with changes, options; and the metrics wanted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.explore.launch_keys import with_values
from ppt_gpu.explore.space import Point
from ppt_gpu.pipeline import check_level, predict
from ppt_gpu.report.result.metrics import REGISTRY
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

TIME = "time"  # of the whole workload: launches with overheads, repeats and host copies
STALL = "stall."
NOT_THE_SAME_TWICE = "sim.wall"  # a measurement of this machine

Cell = float | int | str


@dataclass(frozen=True)
class Options:
    """How each configuration is predicted: those of `ppt_gpu.predict`. PptError where they exclude each other."""

    level: str = "steady"
    blocks: str | int = "sample"
    policy: str | None = None
    assume: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    approximate: bool = False

    def __post_init__(self) -> None:
        check_level(self.level, self.approximate)


@dataclass(frozen=True)
class Case:
    """What one prediction needs; can be sent to another process."""

    workload: Workload
    gpu: str
    overrides: tuple[str, ...] = ()
    launch: tuple[tuple[str, str], ...] = ()  # parameters of the workload that are changed
    metrics: tuple[str, ...] = (TIME,)
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Measured:
    """The metrics of a case in the order asked for; or why it cannot be predicted."""

    values: tuple[Cell, ...] = ()
    error: str = ""


def case_of(
    workload: Workload, gpu: str, fixed: Sequence[str], point: Point, metrics: Sequence[str], options: Options
) -> Case:
    """The case of a configuration, over the changes of the GPU that are the same for all."""
    launch = tuple(point.launch().items())
    return Case(workload, gpu, (*fixed, *point.overrides()), launch, tuple(metrics), options)


def predict_case(case: Case) -> Result:
    """The prediction. PptError as `ppt_gpu.predict`."""
    o = case.options
    return predict(
        with_values(case.workload, dict(case.launch)),
        case.gpu,
        overrides=case.overrides,
        level=o.level,
        blocks=o.blocks,
        policy=o.policy,
        assume=o.assume,
        budget=o.budget,
        approximate=o.approximate,
    )


def measure(case: Case) -> Measured:
    """The metrics of a case. What is wrong with the configuration is its result, too: others may be right."""
    try:
        result = predict_case(case)
        return Measured(tuple(cell(result, metric) for metric in case.metrics))
    except InputErrors as error:
        return Measured(error="; ".join(one_line(each) for each in error.errors))
    except PptError as error:
        return Measured(error=one_line(error))


def one_line(error: PptError) -> str:
    """An error without its place."""
    text = f"{error.message} ({error.hint})" if error.hint else error.message
    return " ".join(text.split())


def check_metrics(metrics: Sequence[str], launches: int) -> None:
    """PptError for a metric that there is not, with the nearest one."""
    known = (
        TIME,
        *(tag for tag in REGISTRY if tag != NOT_THE_SAME_TWICE),
        *(STALL + reason for reason in STALL_REASONS),
    )
    for metric in metrics:
        number, colon, tag = metric.rpartition(":")
        if tag == NOT_THE_SAME_TWICE:
            raise PptError(f"--metric {metric}: it is another one in every run")
        if colon and not (number.isdecimal() and 1 <= int(number) <= launches):
            raise PptError(
                f"--metric {metric}: '{number}' is no launch", hint=f"1 to {launches}, such as 1:kernel.time"
            )
        if tag not in known or (colon and tag == TIME):
            hint = (
                did_you_mean(tag, known) or "`ppt-gpu explain` lists them; beside them there are time and stall.REASON"
            )
            raise PptError(f"--metric {metric}: unknown metric '{tag}'", hint=hint)


def cell(result: Result, metric: str) -> Cell:
    """A metric of a result: of its longest launch, or of launch N for "N:TAG"; "none" where it has no such metric."""
    if metric == TIME:
        return float(result.time)
    number, colon, tag = metric.rpartition(":")
    launch = result.launches[int(number) - 1] if colon else result.main
    return plain(of_launch(launch, tag))


def of_launch(launch: LaunchResult, tag: str) -> Cell:
    if tag.startswith(STALL):
        return dict(launch.stalls)[tag.removeprefix(STALL)]
    return next((item.value for item in launch.metrics if item.tag == tag), "none")


def plain(value: Any) -> Cell:
    """A number of NumPy's as one of Python's."""
    found: Cell = value.item() if hasattr(value, "item") else value
    return found
