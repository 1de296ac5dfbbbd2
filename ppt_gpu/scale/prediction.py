"""What every level of fidelity yields: the cycles of a launch, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ppt_gpu.models.ppt.extrapolation import PptTerms
from ppt_gpu.scale.blocks.distribution import SmPlan
from ppt_gpu.scale.blocks.survey import Survey
from ppt_gpu.scale.cache.block_timing import BlockTiming
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.sm.program.result import SmResult


@dataclass(frozen=True)
class KernelPrediction:
    """A launch, without launch overhead. It ends when its busiest SM does."""

    cycles: float
    plan: SmPlan
    result: SmResult  # of the simulated blocks
    assumptions: tuple[str, ...]
    wave_cycles: float = 0.0  # steady time of one wave of the SM
    convergence: float = 0.0  # relative standard error of the mean wave; 0 when all blocks were simulated
    error: float = 0.0  # estimated relative error of `cycles` from extrapolation
    ppt: PptTerms | None = None  # level "workload"
    survey: Survey | None = None  # what was looked at of the grid
    timing: BlockTiming | None = None  # the simulation that `result` is of
    sm: SimulatedSm | None = None  # and what was simulated
    more_warnings: tuple[str, ...] = ()  # beside those of the simulation

    @property
    def simulation(self) -> BlockTiming:
        """The simulation that `result` is of."""
        assert self.timing is not None, "extrapolated from a result alone"
        return self.timing

    @property
    def simulated_sm(self) -> SimulatedSm:
        """The launch on one SM, as `result` is of it."""
        assert self.sm is not None, "extrapolated from a result alone"
        return self.sm

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.simulation.feed.warnings, *self.more_warnings)

    @property
    def simulated_blocks(self) -> int:
        return len(self.plan.blocks)

    @property
    def factor(self) -> float:
        """Blocks of the busiest SM over the simulated ones: 1 when nothing was extrapolated."""
        return self.plan.factor

    @property
    def exact(self) -> bool:
        """All blocks of the busiest SM were simulated."""
        return self.plan.exact

    def raised_to(self, floor_cycles: float, resource: str) -> KernelPrediction:
        """This prediction, or `floor_cycles` where extrapolation went below that lower bound of `resource`."""
        if self.cycles >= floor_cycles:
            return self
        text = (
            f"extrapolation gave {self.cycles:.0f} cycles, less than the lower bound of {resource}, "
            f"{floor_cycles:.0f}: the bound is used"
        )
        return replace(self, cycles=floor_cycles, assumptions=(*self.assumptions, text))
