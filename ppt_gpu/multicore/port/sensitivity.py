"""How a prediction moves with each of its inputs: the time with one of them a fifth lower and a fifth higher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.port.port import Ported

STEP = 0.2


@dataclass(frozen=True)
class Sensitivity:
    """Time over the time predicted, with the input changed; None where that cannot be (a share above 1)."""

    name: str
    value: float
    lower: float | None  # input x (1 - STEP)
    higher: float | None  # input x (1 + STEP)

    @property
    def reach(self) -> float:
        """The larger change of the two."""
        return max(abs(ratio - 1) for ratio in (self.lower, self.higher, 1.0) if ratio is not None)


def sensitivities(ported: Ported) -> list[Sensitivity]:
    """One for every input that is not 0, and one for all operations together; those that move the time most first."""
    found = []
    for name, value in _inputs(ported.inputs):
        lower, higher = (_ratio(ported, name, factor) for factor in (1 - STEP, 1 + STEP))
        found.append(Sensitivity(name, value, lower, higher))
    return sorted(found, key=lambda each: -each.reach)


def _inputs(inputs: Any) -> Iterator[tuple[str, float]]:
    yield "n_i", sum(inputs.n_i.values())
    for each in fields(inputs):
        value = getattr(inputs, each.name)
        if isinstance(value, int | float) and value:
            yield each.name, float(value)


def _ratio(ported: Ported, name: str, factor: float) -> float | None:
    inputs: Any = ported.inputs
    if name == "n_i":
        changed: Any = {each: count * factor for each, count in inputs.n_i.items()}
    else:
        changed = getattr(inputs, name) * factor
    try:
        return ported.again(replace(inputs, **{name: changed})) / ported.time
    except PptError:
        return None
