"""Design: the cheapest of many hypothetical GPUs on which a workload takes at most a given time.

Without looking at all of them: the one in the middle by cost is simulated; if it is fast enough, all that cost more
are out, else all that are no better in any parameter. That rests on more hardware not being slower, which
simulations obey within MARGIN; so only what misses the target by more speaks for others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_time
from ppt_gpu.explore.case import TIME, Measured, case_of
from ppt_gpu.explore.expression import Expression, Value, check_names, text_value
from ppt_gpu.explore.hardware_changes import direction
from ppt_gpu.explore.space import Point, Space
from ppt_gpu.explore.sweep import Run, measured
from ppt_gpu.spec.toml_scan import quoted
from ppt_gpu.workload.workload import Workload

MARGIN = 0.02  # tests/property/test_more_hardware_is_not_slower.py


@dataclass(frozen=True)
class Option:
    """A configuration and its cost; its time in s once it is simulated, or why it has none."""

    point: Point
    cost: float
    found: Measured | None = None

    @property
    def time(self) -> float | None:
        return None if self.found is None or self.found.error else float(self.found.values[0])


@dataclass(frozen=True)
class Designed:
    """The cheapest option that reaches the target, and all that were simulated, by cost."""

    best: Option
    simulated: tuple[Option, ...]
    total: int  # configurations, simulated or not

    def front(self) -> list[Option]:
        """Those that no other is both cheaper and faster than, by cost; of those that were simulated."""
        found: list[Option] = []
        for option in self.simulated:
            if option.time is not None and (not found or option.time < (found[-1].time or 0.0)):
                found.append(option)
        return found


def design(
    workload: Workload, gpu: str, space: Space, cost: Expression, target: float, run: Run, *, everything: bool = False
) -> Designed:
    """The answer; with `everything` each configuration is simulated. PptError when none reaches `target` s."""
    check_names([cost], [*space.base, *space.keys])
    options = sorted(
        (Option(point, _cost(cost, space, point)) for point in space.points()),
        key=lambda option: (option.cost, option.point.number),
    )
    if not options:
        raise PptError("no configuration is left", hint="--where drops all of them")

    def simulate(asked: Sequence[Option]) -> list[Option]:
        cases = [case_of(workload, gpu, (), one.point, (TIME,), run.options) for one in asked]
        found = measured(cases, range(len(cases)), run)
        return [Option(one.point, one.cost, each) for one, each in zip(asked, found, strict=True)]

    if everything:
        done = simulate(options)
    else:
        done = _search(options, target, lambda option: simulate([option])[0])
    done.sort(key=lambda option: (option.cost, option.point.number))
    good = [option for option in done if option.time is not None]
    if not good:
        error = done[0].found.error if done[0].found else ""
        raise PptError(f"none of the configurations that were tried can be predicted: {error}")
    reached = [option for option in good if (option.time or 0.0) <= target]
    if not reached:
        fastest = min(good, key=lambda option: (option.time, option.cost))
        values = ", ".join(f"{key}={text}" for key, text in fastest.point.values.items())
        raise PptError(
            f"no configuration reaches {format_time(target)}",
            hint=f"the fastest that was simulated takes {format_time(fastest.time or 0.0)}: {values}",
        )
    return Designed(reached[0], tuple(done), len(options))


def _search(options: Sequence[Option], target: float, simulate: Callable[[Option], Option]) -> list[Option]:
    left, done = list(options), []
    while left:
        place = len(left) // 2
        option = simulate(left[place])
        done.append(option)
        if option.time is not None and option.time <= target:
            left = [other for other in left[:place] if other.cost < option.cost]
            continue
        out = option.time is not None and option.time > target * (1 + MARGIN)
        left = [
            other
            for number, other in enumerate(left)
            if number != place and not (out and no_better(other.point, option.point))
        ]
    return done


def no_better(one: Point, other: Point) -> bool:
    """Is the first GPU at most as good as the second in every parameter? Not if nobody knows what is better."""
    for key, text in one.values.items():
        mine, its = text_value(text), text_value(other.values[key])
        sign = direction(key)
        if isinstance(mine, str) or isinstance(its, str) or not sign:
            if mine != its:
                return False
        elif (mine - its) * sign > 0:
            return False
    return True


def _cost(cost: Expression, space: Space, point: Point) -> float:
    value: Value = cost(space.lookup(point.values))
    if isinstance(value, str):
        raise PptError(f"--cost {cost.text}: '{value}' is not a number")
    return float(value)


def gpu_file(gpu: str, folder: Path, option: Option, title: str) -> str:
    """The GPU file of an option, to stand in `folder`: the base that `gpu` names, and what is other than there."""
    base = os.path.relpath(gpu, folder) if gpu.endswith(".toml") or "/" in gpu else gpu
    lines = [f"base = {quoted(base)}", f"title = {quoted(title)}"]
    tables: dict[str, list[str]] = {}
    for key, text in option.point.values.items():
        table, _, name = key.rpartition(".")
        tables.setdefault(table, []).append(f'{name} = {{ value = {_literal(text)}, source = "design" }}')
    for name in sorted(tables):
        lines += [*([f"\n[{name}]"] if name else []), *tables[name]]
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """A value as TOML has it."""
    return text if not isinstance(text_value(text), str) and " " not in text else quoted(text)
