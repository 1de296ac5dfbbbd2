"""How far the analytical models are from the simulation: GPUMech's evaluation (paper 000, section VI) for our kernels.

On GPUMech's Table I machine, under round robin and greedy-then-oldest; and with other numbers of warps, MSHRs and other
bandwidths. The reference is our simulation, as the paper's was its own simulator.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import parts
from ppt_gpu.comparison import compare
from ppt_gpu.models.base.model import Model
from ppt_gpu.models.gpumech.gpumech import GpuMech
from ppt_gpu.models.gpumech.representative import METHODS
from ppt_gpu.report.compare import SIMULATION, LaunchComparison
from ppt_gpu.validate.models.cases import Case, model_cases
from ppt_gpu.validate.tables.rows import Row

MACHINE = "gpumech_table1"
POLICIES = ("lrr", "gto")
#: mean errors that the paper states, round robin and greedy-then-oldest (section VI-B)
PAPER = {"gpumech": (0.132, 0.140), "markov_chain": (0.629, 0.653)}
#: share of its kernels with an error below 20 %, round robin
PAPER_BELOW = {"gpumech": 0.75, "markov_chain": 0.5}
BELOW = 0.2
#: the models of the paper's Table II, as its figures show them
TABLE_II = ("naive_interval", "markov_chain", "mt", "mt_mshr", "gpumech")
#: kernels for the CPI stacks: coalesced, eight lines an access, and the one that the paper shows too (Fig. 16)
STACKED = ("mixed_1_8", "mixed_8_8", "invert_mapping")
STACK_WARPS = (8, 16, 32, 48)


@dataclass(frozen=True)
class Sweep:
    """One number of the machine: its values, and what is overridden for each. Fig. 13 to 15."""

    title: str
    unit: str
    values: tuple[int, ...]
    override: tuple[str, ...]  # with {} for the value


SWEEPS = {
    # Registers and shared memory must not be what limits the warps.
    "warps": Sweep(
        "warps per SM (Fig. 13)", "warps", (8, 16, 24, 32, 40, 48),
        (
            "sm.max_warps={}", "sm.max_threads_per_block=256", "sm.registers=131072", "shared.size=64 KiB",
            "shared.per_block=48 KiB",
        ),
    ),
    "mshrs": Sweep("MSHRs per SM (Fig. 14)", "entries", (16, 32, 64, 128, 256), ("l1.mshrs={}",)),
    "bandwidth": Sweep("DRAM bandwidth (Fig. 15)", "GB/s", (64, 128, 192, 256), ("dram.bandwidth={} GB/s",)),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One case under one policy."""

    case: str
    policy: str
    launch: LaunchComparison

    def rows(self) -> Iterator[Row]:
        """One for every model that applies; the mode is policy and model."""
        simulated = self.launch.row(SIMULATION).cycles or 0.0
        for row in self.launch.rows:
            if row.name != SIMULATION and row.cycles is not None and simulated:
                mode = f"{self.policy} {row.name}"
                yield Row(self.case, MACHINE, mode, "steady", simulated, row.cycles, "cycles")


def outcomes(
    cases: Sequence[Case], policy: str, overrides: Sequence[str] = (), only: Sequence[str | Model] = ()
) -> list[Outcome]:
    """Every case on the machine, `overrides` changed, with all models or those in `only`."""
    found = []
    for case in parts(cases, f"cases, {policy}"):
        contents = case.contents or None
        made = compare(case.workload, MACHINE, overrides=overrides, policy=policy, only=only, contents=contents)
        found.append(Outcome(case.name, policy, made.main))
    return found


def chosen_cases(texts: Sequence[str]) -> list[Case]:
    """The cases whose name has one of `texts`. PptError when there is none."""
    cases = model_cases(texts)
    if not cases:
        raise PptError(f"no case of 'models' has {' or '.join(texts)} in its name")
    return cases


def accuracy(texts: Sequence[str] = ()) -> list[Row]:
    """All models on all cases under both policies."""
    cases = chosen_cases(texts)
    return [row for policy in POLICIES for outcome in outcomes(cases, policy) for row in outcome.rows()]


@dataclass(frozen=True)
class Accuracy:
    """Errors of one model under one policy, by their size."""

    model: str
    policy: str
    cases: int
    mean: float
    median: float
    worst: float
    below: float  # share of the cases with less than BELOW


def accuracies(rows: Sequence[Row]) -> list[Accuracy]:
    """By model and policy, in order of appearance."""
    found = []
    for mode in dict.fromkeys(row.mode for row in rows):
        errors = [abs(row.error) for row in rows if row.mode == mode]
        policy, model = mode.split()
        below = sum(error < BELOW for error in errors) / len(errors)
        numbers = (statistics.mean(errors), statistics.median(errors), max(errors), below)
        found.append(Accuracy(model, policy, len(errors), *numbers))
    return found


def representatives(texts: Sequence[str] = ()) -> list[Row]:
    """GPUMech with each way to choose the representative warp, where warps differ (Fig. 7); round robin."""
    ways = [GpuMech(method) for method in METHODS]
    rows: list[Row] = []
    for outcome in outcomes(chosen_cases(texts), "lrr", (), ways):
        found = list(outcome.rows())
        if len({row.predicted for row in found}) > 1:
            rows += found
    return rows


def sweep(name: str, texts: Sequence[str] = ()) -> dict[int, list[Accuracy]]:
    """Errors of the models of Table II for each value of the sweep, round robin. PptError for an unknown sweep."""
    cases, chosen = chosen_cases(texts), SWEEPS[name]
    found = {}
    for value in chosen.values:
        overrides = [text.format(value) for text in chosen.override]
        rows = [row for outcome in outcomes(cases, "lrr", overrides, TABLE_II) for row in outcome.rows()]
        found[value] = accuracies(rows)
    return found


@dataclass(frozen=True)
class Stack:
    """The CPI stack of GPUMech beside the simulated CPI; both by the simulated CPI of the fewest warps."""

    case: str
    warps: int
    simulated: float
    parts: tuple[tuple[str, float], ...]

    @property
    def predicted(self) -> float:
        return sum(part for _, part in self.parts)


def stacks(texts: Sequence[str] = ()) -> list[Stack]:
    """Fig. 16 for our kernels, or those whose name has one of `texts`."""
    cases = [case for case in chosen_cases(texts) if texts or case.name in STACKED]
    found: list[Stack] = []
    for case in cases:
        of_case = []
        for warps in STACK_WARPS:
            overrides = [text.format(warps) for text in SWEEPS["warps"].override]
            launch = outcomes([case], "lrr", overrides, ["gpumech"])[0].launch
            estimate = launch.row("gpumech").estimate
            if estimate is not None and estimate.applies:
                of_case.append(Stack(case.name, warps, launch.row(SIMULATION).cpi or 0.0, estimate.stack))
        unit = of_case[0].simulated if of_case else 1.0
        found += [
            replace(one, simulated=one.simulated / unit, parts=tuple((name, part / unit) for name, part in one.parts))
            for one in of_case
        ]
    return found
