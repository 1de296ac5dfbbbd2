"""Many warps on one scheduler, without contention: GPUMech's multithreading model (paper 000, section IV-A, Eqs. 7-16).

The representative warp's own cycles, and what the instructions of the other warps add that do not hide its stalls.
Eqs. 7, 15 and 16 are misprinted: 7 is instructions by cycles, 15 and 16 have max and min exchanged (docs/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.gpumech.interval import Profile


@dataclass(frozen=True)
class Multithreading:
    """`warps` warps like the representative one, on a scheduler that issues `rate` instructions a cycle."""

    issue_probability: float  # Eq. 9
    alone: float  # cycles of the representative warp alone
    nonoverlapped: NDArray[np.float64]  # [K] instructions of other warps that hide no stall
    cycles: float  # Eq. 8, of all the warps
    instructions: float  # of all the warps

    @property
    def cpi(self) -> float:
        """Eq. 7, cycles by instructions, as the model has it: round robin may yield less than 1 / rate."""
        return self.cycles / self.instructions if self.instructions else 0.0

    def clamped(self, rate: float = 1.0) -> float:
        """CPI of at least what issuing takes."""
        return max(self.cpi, 1.0 / rate) if self.instructions else 0.0


def multithreading(
    profile: Profile, warps: int, policy: str = "lrr", rate: float = 1.0, literal: bool = False
) -> Multithreading:
    """Eqs. 7-16 for `policy` "lrr" or "gto". `literal`: Eqs. 15 and 16 as printed."""
    p = profile.issue_probability(rate)
    if policy == "lrr":
        other = p * (warps - 1) * (profile.insts - 1.0)  # Eqs. 10, 11
    else:
        average = profile.instructions / max(len(profile.insts), 1)  # Eq. 13
        pick = np.maximum if literal else np.minimum
        issued = average * pick(p * profile.stall, 1.0) * (warps - 1)  # Eqs. 12, 14, 15
        clip = np.minimum if literal else np.maximum
        other = clip(issued - profile.stall * rate, 0.0)  # Eq. 16
    alone = profile.cycles(rate)
    cycles = alone + float(other.sum()) / rate
    return Multithreading(p, alone, other, cycles, warps * profile.instructions)


def naive_ipc(profile: Profile, warps: int, rate: float = 1.0) -> float:
    """Eq. 1, capped at the issue rate: as if every instruction of every other warp hid a stall."""
    return min(warps * profile.issue_probability(rate), rate)
