"""The error to expect of a prediction: how far predictions were from launches measured on real GPUs, like this one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ppt_gpu.paths import data_dir
from ppt_gpu.spec.gpu import Gpu

#: first compute capability of each generation, ascending
GENERATIONS = (
    ((1, 0), "Tesla"), ((2, 0), "Fermi"), ((3, 0), "Kepler"), ((5, 0), "Maxwell"), ((6, 0), "Pascal"),
    ((7, 0), "Volta"), ((7, 5), "Turing"), ((8, 0), "Ampere"), ((8, 9), "Ada"), ((9, 0), "Hopper"),
    ((10, 0), "Blackwell"),
)  # fmt: skip
#: fewer launches are no evidence
ENOUGH = 5


@dataclass(frozen=True)
class Group:
    """Measured launches of one generation that were limited in one way, and the errors of their predictions."""

    generation: str
    limiter: str
    launches: int
    mean: float  # of the absolute relative errors, as all of these
    median: float
    worst: float


@dataclass(frozen=True)
class Expected:
    """What the evidence says of a prediction."""

    median: float  # of several generations: the mean of their medians, by launches
    launches: int
    limiter: str
    generations: tuple[str, ...]  # that the launches were measured on
    own: bool  # they are of the GPU's own generation


def generation_of(capability: tuple[int, int]) -> str:
    """The name of the generation of GPUs with a compute capability."""
    return next((name for first, name in reversed(GENERATIONS) if capability >= first), GENERATIONS[0][1])


def expected_error(gpu: Gpu, limiter: str, groups: Sequence[Group] | None = None) -> Expected | None:
    """The evidence for a launch on `gpu` with a kind of limit (`limiter_kind`), or None.

    That of the GPU's generation where it has `ENOUGH` launches, else that of all. `groups`: instead of those shipped.
    """
    alike = [group for group in (_shipped() if groups is None else groups) if group.limiter == limiter]
    own = [group for group in alike if group.generation == generation_of(gpu.compute_capability)]
    for chosen in (own, alike):
        count = sum(group.launches for group in chosen)
        if count >= ENOUGH:
            middle = sum(group.median * group.launches for group in chosen) / count
            return Expected(middle, count, limiter, tuple(group.generation for group in chosen), chosen is own)
    return None


def expected_text(found: Expected | None) -> str:
    """One line for the report."""
    if found is None:
        return "no evidence: too few launches like this one were measured on real GPUs"
    where = ", ".join(found.generations)
    other = "" if found.own else "; none on this generation"
    return (
        f"about {found.median:.0%} (median of {found.launches} measured launches limited by {found.limiter}, "
        f"on {where}{other})"
    )


@cache
def _shipped() -> tuple[Group, ...]:
    """The groups of validation/measured/evidence.json; none where the file is missing."""
    path = data_dir("validation") / "measured" / "evidence.json"
    if not path.is_file():
        return ()
    return tuple(Group(**group) for group in json.loads(path.read_text())["groups"])
