"""Measured launches beside their predictions, and groups of them that stand for what a prediction may be off by.

A launch is evidence where no value was chosen with its kernel on its GPU in view (validation/measured/chosen.csv).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from ppt_gpu.report.result.expected_error import ANY, GENERATIONS, KERNELS, SHARE, Group, generation_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon.measured_cases import Case
from ppt_gpu.validate.tables.rows import Row

_ORDER = [name for _, name in GENERATIONS]


@dataclass(frozen=True)
class Launch:
    """A measured launch beside its prediction, us."""

    set: str
    gpu: str
    kernel: str
    case: str
    limiter: str
    measured: float
    predicted: float
    chosen: str = ""  # values that were chosen with this kernel on this GPU in view: no evidence

    @property
    def generation(self) -> str:
        """Of the GPU."""
        return _generation(self.gpu)

    @property
    def error(self) -> float:
        """Absolute, relative to the measured time."""
        return abs(self.predicted / self.measured - 1)


@cache
def _generation(gpu: str) -> str:
    return generation_of(load_gpu(gpu).compute_capability)


def launches(found: Sequence[tuple[Case, Row]]) -> list[Launch]:
    """Of cases and their predictions; sorted."""
    used: dict[tuple[str, str], set[str]] = {}
    for case, _ in found:
        used.setdefault((case.gpu, case.counted), set()).update(case.chosen.split())
    rounded = (
        Launch(
            set=case.set,
            gpu=case.gpu,
            kernel=case.counted,
            case=case.name,
            limiter=row.limiter,
            measured=float(f"{row.reference:.5g}"),
            predicted=float(f"{row.predicted:.5g}"),
            chosen=" ".join(sorted(used[case.gpu, case.counted])),
        )
        for case, row in found
    )
    return sorted(rounded, key=lambda one: (one.set, one.gpu, one.kernel, one.measured, one.case))


def groups(found: Iterable[Launch]) -> list[Group]:
    """By generation and kind of limit, by limit alone, by generation alone, and all; of launches that are evidence."""
    members: dict[tuple[str, str], list[Launch]] = {}
    for one in found:
        if not one.chosen:
            for generation in (one.generation, ANY):
                for limiter in (one.limiter, ANY):
                    members.setdefault((generation, limiter), []).append(one)
    return [_group(*key, members[key]) for key in sorted(members)]


def _group(generation: str, limiter: str, members: Sequence[Launch]) -> Group:
    kernels = {one.kernel for one in members}
    errors = [(one.error, weight) for one, weight in zip(members, _weights(members), strict=True)]
    return Group(
        generation=generation,
        limiter=limiter,
        launches=len(members),
        kernels=len(kernels),
        gpus=tuple(sorted({one.gpu for one in members})),
        generations=tuple(sorted({one.generation for one in members}, key=_ORDER.index)),
        mean=round(sum(error * weight for error, weight in errors), 4),
        p90=None if len(kernels) < KERNELS else round(_quantile(errors, SHARE * (1 + 1 / len(kernels))), 4),
        worst=round(max(error for error, _ in errors), 4),
    )


def _weights(members: Sequence[Launch]) -> list[float]:
    """Of each launch, 1 together: the same for all kernels, for all GPUs of a kernel, for all launches on one."""
    gpus: dict[str, dict[str, int]] = {}
    for one in members:
        counts = gpus.setdefault(one.kernel, {})
        counts[one.gpu] = counts.get(one.gpu, 0) + 1
    return [1 / (len(gpus) * len(gpus[one.kernel]) * gpus[one.kernel][one.gpu]) for one in members]


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """The least error that weights of at least `share` do not exceed; the largest where rounding leaves none."""
    ordered = sorted(weighted)
    sums = accumulate(weight for _, weight in ordered)
    return next(
        (error for (error, _), total in zip(ordered, sums, strict=True) if total >= share - 1e-9), ordered[-1][0]
    )
