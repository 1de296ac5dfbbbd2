"""Studies of many runs: what each parameter of the machine changes, and how the time goes with the number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.world import Program, Settings
from ppt_gpu.cluster.model.machine import Machine

KERNELS = "kernel times"  # a parameter beside those of the machine
MORE = 1.1  # the factor of each parameter

Run = Callable[[Machine, Program, Settings], Outcome]


@dataclass(frozen=True)
class Effect:
    """What one parameter does: its factor, and the time with it as a ratio to the time without."""

    parameter: str
    factor: float
    ratio: float

    @property
    def change(self) -> float:
        """The relative change of the time."""
        return self.ratio - 1


def sensitivity(run: Run, machine: Machine, program: Program, settings: Settings) -> list[Effect]:
    """The time with each parameter a tenth greater, the greatest effect first."""
    settings = replace(settings, digest=False, history=False)
    before = run(machine, program, settings).time
    found = []
    for parameter in machine.parameters():
        time = run(machine.scaled(parameter, MORE), program, settings).time
        found.append(Effect(parameter, MORE, time / before))
    factor = settings.kernel_factor * MORE
    found.append(Effect(KERNELS, MORE, run(machine, program, replace(settings, kernel_factor=factor)).time / before))
    return sorted(found, key=lambda effect: (-abs(effect.change), effect.parameter))


@dataclass(frozen=True)
class Size:
    """One line of a scaling table."""

    nodes: int
    ranks: int
    time: float  # s, of an iteration if there are any, else of the run
    speedup: float  # against the first line
    efficiency: float  # strong: speed-up by nodes; weak: time of the first line by time


def scaling(outcomes: Sequence[tuple[int, Outcome]], strong: bool) -> list[Size]:
    """The table of (nodes, run), the first line being what the others are compared with."""
    times = [outcome.iteration or outcome.time for _, outcome in outcomes]
    found = []
    for (nodes, outcome), time in zip(outcomes, times, strict=True):
        speedup = times[0] / time
        efficiency = speedup * outcomes[0][0] / nodes if strong else speedup
        found.append(Size(nodes, outcome.size, time / 1e12, speedup, efficiency))
    return found
