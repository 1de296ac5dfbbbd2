"""Tuning: every form of a kernel predicted, the fastest that computes the same as the given one chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.explore.candidates import (
    REGISTERS,
    Candidate,
    block_values,
    candidate,
    names_of,
    register_values,
    variant_workload,
)
from ppt_gpu.explore.case import TIME, Case, Measured, one_line
from ppt_gpu.explore.same_results import Results, Verdict
from ppt_gpu.explore.space import make_space
from ppt_gpu.explore.sweep import Run, measured
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Workload

CHECKED = 8  # forms whose results are compared, the fastest first, until one is right
COLUMNS = (TIME, "occupancy.fraction", "kernel.registers", "limiter")
GAIN = 0.005  # a form must be faster by so much to be called better


@dataclass(frozen=True)
class Form:
    """A candidate and what was found: its time in s, or why it has none; and whether its results are right."""

    candidate: Candidate
    found: Measured
    verdict: Verdict | None = None  # None: nobody looked

    @property
    def time(self) -> float:
        return float(self.found.values[0])

    @property
    def eligible(self) -> bool:
        """May it be chosen? Not with spills, whose cost is not simulated, and not with other results."""
        return not self.candidate.spills and (self.verdict is None or self.verdict.good)


@dataclass(frozen=True)
class Tuned:
    """All forms, the fastest first; those that cannot run last."""

    workload: str
    gpu: str
    base: Form
    forms: tuple[Form, ...]
    best: Form  # the given one, where none is better

    @property
    def gain(self) -> float:
        """Time of the given form / time of the best."""
        return self.base.time / self.best.time


@dataclass(frozen=True)
class Wanted:
    """What to try: "KEY=VALUES" texts, "KEY=EXPRESSION" texts, conditions, files; nothing: blocks, then registers."""

    settings: Sequence[str] = ()
    follow: Sequence[str] = ()
    where: Sequence[str] = ()
    variants: Sequence[str] = ()


def tune(workload: Workload, gpu: str, overrides: Sequence[str], wanted: Wanted, run: Run) -> Tuned:
    """Predict each form, and compare results from the fastest on. PptError for bad input."""
    target = load_gpu(gpu, overrides)
    base = candidate("", workload, {}, target)
    forms = _candidates(workload, target, wanted)
    found = _predicted([base, *forms], gpu, overrides, run)
    if found[0].found.error:
        raise PptError(found[0].found.error)
    if not wanted.settings:
        found += _predicted(_with_registers(found, target), gpu, overrides, run)
    results = Results(workload, target.compute_capability)
    return _chosen(workload.name, gpu, found, results)


def _candidates(workload: Workload, gpu: Gpu, wanted: Wanted) -> list[Candidate]:
    names = names_of(wanted.variants)
    kernels = [("", workload)] + [
        (name, variant_workload(workload, file)) for name, file in zip(names, wanted.variants, strict=True)
    ]
    found = []
    for name, kernel in kernels:
        settings = list(wanted.settings)
        if not settings and not wanted.variants:
            settings = [f"block={','.join(block_values(kernel.launches[0], gpu))}"]
        if not settings:
            found.append(candidate(name, kernel, {}, gpu))
            continue
        space = make_space(settings, wanted.follow, wanted.where, gpu, kernel)
        hardware = next((key for point in [space.point(0)] for key in point.overrides()), None)
        if hardware is not None:
            raise PptError(f"--set {hardware}: tune changes the kernel, not the GPU", hint="ppt-gpu sweep varies both")
        found += [made for point in space.points() if (made := _made(name, kernel, point.values, gpu)) is not None]
    return [one for one in found if one.error or one.variant or one.workload != workload]


def _made(name: str, kernel: Workload, values: Mapping[str, str], gpu: Gpu) -> Candidate:
    try:
        return candidate(name, kernel, values, gpu)
    except InputErrors as error:
        return Candidate(name, values, kernel, error="; ".join(one_line(each) for each in error.errors))
    except PptError as error:
        return Candidate(name, values, kernel, error=one_line(error))


def _with_registers(found: Sequence[Form], gpu: Gpu) -> list[Candidate]:
    """The fastest form so far with fewer registers."""
    best = min((form for form in found if not form.found.error), key=lambda form: form.time).candidate
    if not has_one_kernel(best.workload):
        return []
    values = register_values(best.workload, gpu)
    made = [_made(best.variant, best.workload, {REGISTERS: value}, gpu) for value in values]
    return [replace(one, values={**best.values, REGISTERS: one.values[REGISTERS]}) for one in made]


def has_one_kernel(workload: Workload) -> bool:
    """Is it one launch of a kernel whose code is there?"""
    return len(workload.launches) == 1 and not (workload.loops or workload.tasklist_path or workload.machine_path)


def _predicted(candidates: Sequence[Candidate], gpu: str, overrides: Sequence[str], run: Run) -> list[Form]:
    good = [one for one in candidates if not one.error]
    cases = [Case(one.workload, gpu, tuple(overrides), metrics=COLUMNS, options=run.options) for one in good]
    found = dict(zip(map(id, good), measured(cases, range(len(cases)), run, what="forms"), strict=True))
    return [Form(one, found.get(id(one)) or Measured(error=one.error)) for one in candidates]


def _chosen(name: str, gpu: str, found: Sequence[Form], results: Results) -> Tuned:
    base = found[0]
    forms = sorted((form for form in found if not form.found.error), key=lambda form: form.time)
    best, looked = base, 0
    for place, form in enumerate(forms):
        if form is base or form.time > base.time / (1 + GAIN) or looked >= CHECKED:
            break
        if form.candidate.spills:
            continue
        looked += 1
        forms[place] = replace(form, verdict=results.against(form.candidate.workload))
        if forms[place].eligible:
            best = forms[place]
            break
    return Tuned(name, gpu, base, (*forms, *(form for form in found if form.found.error)), best)
