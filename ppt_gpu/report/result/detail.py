"""What pictures and tables of a launch are drawn from: its lines, pipes, roofs, traffic, and what an SM offers.

Instructions by pipes: how much of each execution pipe each source line occupies.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.scale.occupancy.rules import OccupancyLimits
from ppt_gpu.sm.program.result import STALL_REASONS


@dataclass(frozen=True)
class Pressure:
    """One executed line. `shares`: of the unit cycles of each of `Detail.pipes` while the SM has blocks."""

    line: int
    text: str
    issued: int
    shares: tuple[float, ...]


def pressures(detail: Detail) -> list[Pressure]:
    """The executed lines in the order of the source."""
    return [
        Pressure(
            line.line,
            line.text,
            line.issued,
            tuple(
                busy / (pipe.units * detail.sm_cycles) if detail.sm_cycles else 0.0
                for busy, pipe in zip(line.pipes, detail.pipes, strict=True)
            ),
        )
        for line in detail.source
        if line.issued
    ]


@dataclass(frozen=True)
class SourceLine:
    """One line of the kernel's source. Counts are of the simulated blocks and of all the line's machine operations."""

    line: int  # in the PTX file; of a task list, the task's number
    text: str
    issued: int = 0  # warp instructions
    stalls: tuple[int, ...] = ()  # warp cycles spent on issuing it, by STALL_REASONS; () when it issues nothing
    pipes: tuple[int, ...] = ()  # unit cycles of each of `Detail.pipes`

    @property
    def warp_cycles(self) -> int:
        return sum(self.stalls)

    @property
    def reason(self) -> str:
        """Its main stall reason; "" when it issues nothing."""
        return STALL_REASONS[self.stalls.index(max(self.stalls))] if self.stalls else ""


@dataclass(frozen=True)
class PipeUse:
    """An execution pipe of the simulated SM."""

    name: str
    units: int  # independent ones in the SM
    busy: int  # unit cycles, over all units

    def share(self, cycles: int) -> float:
        """Of all its unit cycles in so many cycles of the SM."""
        return self.busy / (self.units * cycles) if cycles else 0.0


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy as the roofline sees it, whole chip and whole launch."""

    name: str  # "L1", "L2", "DRAM"
    bandwidth: float  # B/s; 0: this GPU has none
    bytes: float

    def roof(self, intensity: float) -> float:
        """FLOP/s at `intensity` FLOP/B."""
        return self.bandwidth * intensity


@dataclass(frozen=True)
class Roofs:
    """The hierarchical roofline of a launch."""

    kind: str  # the class with most operations, of ppt_gpu.bounds.flops.CLASSES
    peak: float  # FLOP/s of `kind`
    flops: float  # of all classes, whole launch
    seconds: float  # without launch overhead
    levels: tuple[Level, ...]  # L1, L2, DRAM

    def level(self, name: str) -> Level:
        return next(level for level in self.levels if level.name == name)

    @property
    def used(self) -> tuple[Level, ...]:
        """Levels with traffic and a bandwidth."""
        return tuple(level for level in self.levels if level.bytes > 0 and level.bandwidth > 0)

    @property
    def achieved(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Traffic:
    """Bytes of a launch between two levels, whole grid."""

    l1: float  # sectors that loads look up in the L1s
    l2_read: float  # SMs from L2
    l2_write: float
    dram_read: float
    dram_write: float
    shared_accesses: float  # warp accesses to shared memory
    shared_passes: float


@dataclass(frozen=True)
class Detail:
    """Of one launch. `sm_cycles`: of the simulation of one SM that counts and unit cycles are of."""

    source: tuple[SourceLine, ...]
    pipes: tuple[PipeUse, ...]
    roofs: Roofs
    traffic: Traffic
    sm_cycles: int
    convergence: float  # relative standard error of the mean wave; 0 when nothing was extrapolated by waves
    exact: bool  # all blocks of the busiest SM were simulated
    limits: OccupancyLimits
    operation_lines: tuple[int, ...]  # line of each source instruction: from `Recording.op_pc` to `source`
