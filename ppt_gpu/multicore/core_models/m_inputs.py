"""What the M-core model reads of a program: Blem's Table 4.2, software inputs, all of one warp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.operations import LARGEST


@dataclass(frozen=True)
class MInputs:
    """Counts of one warp, and how many there are. Raises PptError where they contradict each other."""

    warps: float  # of the whole run
    n_i: Mapping[str, float]  # operations by class (ppt_gpu.multicore.base.operations.CLASSES)
    N_SFU: float = 0.0  # of these, by special function units
    N_sync: float = 0.0  # meetings of the warps of a block
    N_CF_div: float = 0.0  # operations beyond those of a warp whose threads stay together
    N_con: float = 0.0  # cycles lost to conflicts in memory banks
    N_mem: float = 0.0  # accesses of off-chip memory spaces
    N_off_chip: float = 0.0  # of these, those that leave the chip
    avg_trans_warp: float = 1.0  # transactions of an access
    transaction_bytes: float = 128.0  # of a transaction
    ILP: float = 1.0
    MLP: float = 1.0
    name: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not 0 <= value <= LARGEST:
                raise PptError(f"{each.name} is {value:g}; expected a number of 0 to {LARGEST:g}")
        if not self.warps >= 1 or not 1 <= self.N_I * self.warps <= LARGEST:
            text = f"{self.warps:g} warps of {self.N_I:g} operations"
            raise PptError(f"{text}; expected 1 to {LARGEST:g} operations in all, in at least one warp")
        for part, whole in (("N_off_chip", "N_mem"), ("N_SFU", "N_I"), ("N_mem", "N_I")):
            if getattr(self, part) > getattr(self, whole) * (1 + 1e-9):
                text = f"{part} is {getattr(self, part):g}, more than the {getattr(self, whole):g} of {whole}"
                raise PptError(text)
        if self.ILP < 1 or self.MLP < 1 or self.avg_trans_warp < 1:
            raise PptError("ILP, MLP and avg_trans_warp are at least 1")

    @property
    def N_I(self) -> float:
        """Operations."""
        return sum(self.n_i.values())
