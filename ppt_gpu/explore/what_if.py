"""Which single change of the GPU helps a workload most, and how its time goes with each parameter; all simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.case import TIME, Case, Measured
from ppt_gpu.explore.hardware_changes import LANES, Change, Changes, studied
from ppt_gpu.explore.sweep import Run, measured
from ppt_gpu.workload.workload import Workload

FACTOR = 2.0  # by which each parameter is made better
STEP = 0.1  # share of a parameter to both sides, for the slope
WIDE = 1.0  # the same of lanes, whose effect comes in steps


@dataclass(frozen=True)
class Effect:
    """What one parameter does."""

    change: Change  # the improvement
    time: float  # s, with it
    speedup: float  # time without it / time with it
    elasticity: float | None  # d log time / d log parameter, over the two values below; None where none is allowed
    low: Change | None
    high: Change | None


@dataclass(frozen=True)
class WhatIf:
    """The answer for a workload on a GPU."""

    workload: str
    gpu: str
    time: float  # s, unchanged
    effects: tuple[Effect, ...]  # the greatest speed-up first
    fixed: tuple[str, ...]  # parameters that no GPU file lets change alone


def what_if(
    workload: Workload,
    gpu: str,
    overrides: Sequence[str],
    run: Run,
    *,
    only: Sequence[str] = (),
    factor: float = FACTOR,
    step: float = STEP,
) -> WhatIf:
    """Each parameter better by `factor`, and a `step` up and down, one at a time. PptError for bad input.

    The elasticity is the slope between the two steps: log(time ratio) / log(parameter ratio).
    """
    changes = Changes(gpu, tuple(overrides))
    tried: list[tuple[Change, Change | None, Change | None]] = []
    fixed: list[str] = []
    for key in studied(changes.gpu, tuple(only)):
        change = changes.improved(key, factor)
        if change is None:
            fixed.append(key)
            continue
        share = WIDE if key.endswith(LANES) else step
        tried.append((change, changes.scaled(key, 1 / (1 + share)), changes.scaled(key, 1 + share)))
    texts = ["", *dict.fromkeys(change.override for three in tried for change in three if change is not None)]
    cases = [
        Case(workload, gpu, (*overrides, *([text] if text else [])), metrics=(TIME,), options=run.options)
        for text in texts
    ]
    found = dict(zip(texts, measured(cases, range(len(cases)), run, what="predictions"), strict=True))
    before = _time(found[""], "unchanged")
    times = {text: _time(each, text) for text, each in found.items()}
    effects = [_effect(three, before, times) for three in tried]
    effects.sort(key=lambda effect: (-effect.speedup, effect.change.key))
    return WhatIf(workload.name, gpu, before, tuple(effects), tuple(fixed))


def _effect(three: tuple[Change, Change | None, Change | None], before: float, times: dict[str, float]) -> Effect:
    change, low, high = three
    time = times[change.override]
    ends = [(end.factor, times[end.override]) if end is not None else (1.0, before) for end in (low, high)]
    (less, slow), (more, fast) = ends
    slope = None if less == more else math.log(fast / slow) / math.log(more / less)
    return Effect(change, time, before / time, slope, low, high)


def _time(found: Measured, text: str) -> float:
    if found.error:
        raise PptError(f"{text}: {found.error}")
    return float(found.values[0])
