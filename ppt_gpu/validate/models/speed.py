"""How much faster the interval model is than the simulation that it is compared with, measured on the spot."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ppt_gpu.comparison import inputs_of
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.gpumech.gpumech import GpuMech
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.validate.models.study import MACHINE, chosen_cases

REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """CPU seconds, least of REPEATS, for the same lowered blocks."""

    case: str
    instructions: int  # warp instructions of the simulated blocks
    simulation: float  # the SM's loop
    caches: float  # functional simulation of the caches
    model: float  # dependencies, interval algorithm on all warps, clustering, equations

    @property
    def ratio(self) -> float:
        return self.simulation / max(self.caches + self.model, 1e-9)  # a coarse clock may see no time pass


def speeds(texts: Sequence[str] = ()) -> list[Speed]:
    """Of every case."""
    return [_speed(case.name, inputs_of(case.workload, MACHINE, case.contents)) for case in chosen_cases(texts)]


def _speed(name: str, inputs: ModelInputs) -> Speed:
    def fresh() -> ModelInputs:
        """The same inputs, of which nothing has been calculated."""
        return replace(inputs)

    def simulated() -> None:
        simulate(
            inputs.program,
            inputs.gpu,
            resident_blocks=inputs.resident_blocks,
            active_sms=inputs.active_sms,
            l2_dirty=inputs.l2_dirty,
            l1_bytes=inputs.l1_bytes,
        )

    model = GpuMech()
    collected: list[ModelInputs] = []

    def caches() -> None:
        one = fresh()
        _ = one.caches
        collected.append(one)

    times = [_least(simulated), _least(caches), _least(lambda: model.analyze(collected.pop()), caches)]
    return Speed(name, inputs.instructions, *times)


def _least(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """CPU seconds of `work`, the least of REPEATS; `before` each is not counted. Once more before, to compile."""
    spent = []
    for _ in range(REPEATS + 1):
        before()
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent[1:])
