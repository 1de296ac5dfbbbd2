"""The base class of every analytical model, and what a model answers: `analyze` calculates, `report` prints.

A model reads one `ModelInputs` (ppt_gpu.models.base.model_inputs), the same as every other model and the simulation,
and answers with an `Estimate`. All models are listed in ppt_gpu.models.registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.steps import Step, number_text
from ppt_gpu.models.base.warp_streams import DoesNotApply

#: warp schedulers that the models know; those of the simulator that differ only in what "oldest" means count as gto
MODEL_POLICIES = {"lrr": "lrr", "gto": "gto", "gto_launch": "gto", "gto_block": "gto"}


@dataclass(frozen=True)
class Options:
    """How a model is to calculate. What only one model knows is set when that model is made."""

    policy: str = "lrr"  # "lrr" (round robin) or "gto"
    literal: bool = False  # the equations as printed, where docs/models.md names an erratum


@dataclass(frozen=True)
class Estimate:
    """A model's answer for one launch, without launch overhead; or, with `reason`, why it has none.

    ValueError when a number is not finite or below 0: a model answers with numbers or says why not.
    """

    model: str
    cycles: float = 0.0  # SM cycles of the launch, until its busiest SM is done
    time: float = 0.0  # s
    cpi: float = 0.0  # cycles of the busiest SM by its warp instructions
    limiter: str = ""  # what the model says limits the kernel
    steps: tuple[Step, ...] = ()
    stack: tuple[tuple[str, float], ...] = ()  # CPI by cause; sums to `cpi`. Empty: the model does not tell
    notes: tuple[str, ...] = ()  # what the inputs lacked, and what was assumed instead
    reason: str = ""  # why the model does not apply

    def __post_init__(self) -> None:
        for value in (self.cycles, self.time, self.cpi, *(share for _, share in self.stack)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"model {self.model} yields {value}")

    @property
    def applies(self) -> bool:
        return not self.reason

    def value(self, symbol: str) -> float:
        """The last value of `symbol` among the steps. KeyError when the model did not calculate it."""
        for step in reversed(self.steps):
            if step.symbol == symbol:
                return step.value
        raise KeyError(symbol)


class Model(ABC):
    """A published model. A subclass sets the three texts and calculates in `estimate`."""

    name: str  # in tables and for --explain: "gpumech"
    title: str  # "GPUMech interval analysis"
    source: str  # paper, and where in it

    @abstractmethod
    def estimate(self, inputs: ModelInputs, options: Options) -> Estimate:
        """The model's answer. Raises DoesNotApply, with the reason, when it has none."""

    def analyze(self, inputs: ModelInputs, options: Options | None = None) -> Estimate:
        """The model's answer, or an Estimate that says why it has none."""
        try:
            return self.estimate(inputs, options or Options())
        except DoesNotApply as error:
            return Estimate(self.name, reason=str(error))

    def report(self, estimate: Estimate) -> list[str]:
        """The equations, each with its numbers and its result, and the answer, as lines."""
        head = [f"{self.title} ({self.source})"]
        if not estimate.applies:
            return [*head, f"does not apply: {estimate.reason}"]
        stack = [f"{name} {number_text(share)}" for name, share in estimate.stack]
        return [
            *head,
            *(step.line() for step in estimate.steps),
            *([f"CPI = {' + '.join(stack)} = {number_text(estimate.cpi)}"] if stack else []),
            f"{number_text(estimate.cycles)} cycles = {number_text(estimate.time)} s, CPI {number_text(estimate.cpi)}, "
            f"limited by {estimate.limiter}",
            *(f"note: {note}" for note in estimate.notes),
        ]


def answer(
    model: Model,
    inputs: ModelInputs,
    cycles: float,
    limiter: str,
    steps: list[Step],
    *,
    stack: tuple[tuple[str, float], ...] = (),
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The Estimate of `model` for a launch that takes `cycles`: time and CPI follow from the inputs."""
    cpi = cycles / inputs.sm_instructions if inputs.sm_instructions else 0.0
    return Estimate(model.name, cycles, cycles / inputs.gpu.sm.clock, cpi, limiter, tuple(steps), stack, notes=notes)
