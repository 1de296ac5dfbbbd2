"""The error to expect of a prediction: how far predictions were from launches measured on real GPUs, like this one.

Launches of one kernel resemble each other, so kernels are what is counted: all of a group have the same weight. What
the error of 90 % of the launches of another kernel is within comes from leaving kernels out: any of K + 1 kernels is
the worst with probability 1 / (K + 1), so that K kernels bound the errors of a share K / (K + 1) of the launches, no
more (the quantile of Lee, Barber and Willett, "Distribution-free inference with hierarchical data", 2023). Of fewer
than `KERNELS` kernels the worst launch is told instead, and fewer than `ENOUGH` are no evidence by themselves. Launches
are taken to be drawn like those that were measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec.gpu import Gpu

#: first compute capability of each generation, ascending
GENERATIONS = (
    ((1, 0), "Tesla"), ((2, 0), "Fermi"), ((3, 0), "Kepler"), ((5, 0), "Maxwell"), ((6, 0), "Pascal"),
    ((7, 0), "Volta"), ((7, 5), "Turing"), ((8, 0), "Ampere"), ((8, 9), "Ada"), ((9, 0), "Hopper"),
    ((10, 0), "Blackwell"),
)  # fmt: skip
SHARE = 0.9  # of the launches
#: as many kernels as bound the error of this share
KERNELS = 9
#: fewer kernels are no evidence by themselves
ENOUGH = 3
ANY = "any"  # generation or limit: launches of all together
LEVEL = "steady"  # of the predictions behind the evidence


@dataclass(frozen=True)
class Group:
    """Measured launches on GPUs of one generation, or `ANY`, limited in one way, or `ANY`."""

    generation: str
    limiter: str
    launches: int
    kernels: int
    gpus: tuple[str, ...]
    generations: tuple[str, ...]  # that there are launches of, from old to new
    mean: float  # absolute relative error: mean over kernels of the mean over GPUs of the mean over launches
    p90: float | None  # what the error of 90 % of the launches of another kernel is within; None of too few kernels
    worst: float

    @property
    def bound(self) -> float:
        """What 90 % of the launches are within, or of few kernels the worst launch."""
        return self.worst if self.p90 is None else self.p90


@dataclass(frozen=True)
class Expected:
    """What the evidence says of a prediction."""

    mean: float
    bound: float  # what 90 % of the launches are within, or of few kernels the worst launch
    share: bool  # it is the former
    pool: Group  # the nearest group of enough kernels
    #: launches that are more like this one, too few to be evidence by themselves; or, where there are none of the
    #: GPU's generation, those of the generation that is furthest off
    near: Group | None
    generation: str  # of the GPU
    limiter: str  # of the launch


def generation_of(capability: tuple[int, int]) -> str:
    """The name of the generation of GPUs with a compute capability."""
    return next((name for first, name in reversed(GENERATIONS) if capability >= first), GENERATIONS[0][1])


def expected_error(gpu: Gpu, limiter: str, groups: Sequence[Group] | None = None) -> Expected | None:
    """The evidence for a launch on `gpu` with a kind of limit (`limiter_kind`), or None.

    That of the GPU's generation and this limit, else of all generations, else of all limits, whichever has enough
    kernels first. A nearer group of fewer kernels can only make the expectation worse. A generation that nothing was
    measured on is taken to be like the one that is furthest off of those with enough kernels: the others are near for
    what their own measurements have shown. `groups`: instead of those shipped.
    """
    if not is_real(gpu):
        return None
    generation = generation_of(gpu.compute_capability)
    known = {(group.generation, group.limiter): group for group in (_shipped() if groups is None else groups)}
    keys = ((generation, limiter), (ANY, limiter), (ANY, ANY))
    nearest = [known[key] for key in keys if key in known]
    pool = next((group for group in nearest if group.kernels >= ENOUGH), None)
    if pool is None:
        return None
    near = nearest[0] if nearest[0] is not pool else None
    if near is not None and near.mean > pool.mean:
        return Expected(near.mean, max(pool.bound, near.worst), False, pool, near, generation, limiter)
    if near is None and (generation, pool.limiter) not in known:
        others = [one for one in known.values() if one.generation != ANY and one.limiter == pool.limiter]
        worst = max((one for one in others if one.kernels >= ENOUGH), key=lambda one: one.mean, default=pool)
        if worst.mean > pool.mean:
            share = pool.p90 is not None and worst.p90 is not None
            return Expected(worst.mean, max(pool.bound, worst.bound), share, pool, worst, generation, limiter)
    return Expected(pool.mean, pool.bound, pool.p90 is not None, pool, near, generation, limiter)


def expected_text(found: Expected | None, gpu: Gpu, level: str = LEVEL) -> str:
    """One line for the report. `level`: of the prediction."""
    if not is_real(gpu):
        against = "; `ppt-gpu validate gpgpusim` holds it against that simulator"
        return f"no evidence: {gpu.title} is no real GPU{against if gpu.isa.name.startswith('gpgpusim') else ''}"
    if found is None:
        return "no evidence: too few launches like this one were measured on real GPUs"
    bound = f"{SHARE:.0%} of launches within" if found.share else "worst"
    text = f"{found.mean:.0%} ({bound} {found.bound:.0%}): {_source(found)}"
    return text if level == LEVEL else f"{text}; of level {LEVEL}"


def is_real(gpu: Gpu) -> bool:
    """Whether the GPU is no configuration of a simulator and no machine of a paper: those run PTX as it stands."""
    return gpu.isa.scheduled


def _source(found: Expected) -> str:
    """Which kernels say so, and what is known of those more like this one."""
    pool, near = found.pool, found.near
    if near is not None and near.generation not in (found.generation, ANY):
        return f"{_kernels(pool)}, none on {found.generation}; as on {near.generation}, where they are furthest off"
    if near is not None and found.mean > pool.mean:
        return f"{_kernels(near)}, worse than the {pool.mean:.0%} of {_kernels(pool)}"
    if near is not None:
        limit = _limited(near.limiter) if pool.limiter == ANY else ""
        where = f" on {found.generation}" if near.generation != ANY else ""
        return f"{_kernels(pool)}; {_counted(near)}{limit}{where}: {near.mean:.0%}"
    if pool.limiter == ANY:
        return f"{_kernels(pool)}; none{_limited(found.limiter)}"
    return _kernels(pool) if pool.generation != ANY else f"{_kernels(pool)}; none on {found.generation}"


def _kernels(group: Group) -> str:
    """ "12 measured kernels limited by memory latency on Volta to Ampere" """
    first, last = group.generations[0], group.generations[-1]
    return f"{_counted(group)}{_limited(group.limiter)} on {first if first == last else f'{first} to {last}'}"


def _counted(group: Group) -> str:
    return f"{group.kernels} measured kernel{'s' if group.kernels > 1 else ''}"


def _limited(limiter: str) -> str:
    return "" if limiter == ANY else f" limited by {limiter}"


@cache
def _shipped() -> tuple[Group, ...]:
    """The groups of validation/evidence.json; none where the file is missing."""
    path = data_dir("validation") / "evidence.json"
    return read_groups(path.read_text()) if path.is_file() else ()


def read_groups(text: str) -> tuple[Group, ...]:
    """The groups of an evidence file."""
    found: list[dict[str, Any]] = json.loads(text)["groups"]
    return tuple(
        Group(**(one | {"gpus": tuple(one["gpus"]), "generations": tuple(one["generations"])})) for one in found
    )
