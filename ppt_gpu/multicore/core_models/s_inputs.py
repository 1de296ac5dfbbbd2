"""What the S-core model reads of a program: Blem's Table 4.1, software inputs, checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.operations import CLASSES, LARGEST, LOADS, STORES

#: ILP out of order, and in a window of 2, where neither is known: what Blem assumes (section 5.2.1), and half of all
#: neighbours dependent
USUAL_ILP, USUAL_ILP_W2 = 6.2, 1.5


@dataclass(frozen=True)
class SInputs:
    """Counts of one run on one core. Raises PptError where they contradict each other."""

    n_i: Mapping[str, float]  # operations by class (ppt_gpu.multicore.base.operations.CLASSES)
    name: str = ""
    f_inf: float = 1.0  # f, share of the run that can be parallel
    N_M: float | None = None  # measured micro-ops; None: by the core's dictionary
    ILP: float = 1.0  # operations that could start in a cycle, window of the core, each taking one cycle
    ILP_w2: float = 1.0  # the same with a window of 2
    N_mL1: float = 0.0
    N_mL2: float = 0.0
    N_mL3: float = 0.0
    N_mL3_o: float | None = None  # misses of the last cache under another one; None: those of one window count once
    N_mITLB: float = 0.0
    N_mDTLB: float = 0.0
    N_mbr: float = 0.0  # mispredicted branches
    simd_memory: float = 0.0  # share of loads and stores that move SIMD registers
    N_accel: float = 0.0  # operations that an accelerator takes over ...
    accel_calls: float = 0.0  # ... in so many instructions ...
    accel_latency: float = 0.0  # ... of so many cycles each
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in self.n_i:
            if name not in CLASSES:
                raise PptError(f"unknown operation '{name}'", hint=did_you_mean(name, CLASSES))
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not 0 <= value <= LARGEST:
                raise PptError(f"{each.name} is {value:g}; expected a number of 0 to {LARGEST:g}")
        for name, count in self.n_i.items():
            if not 0 <= count <= LARGEST:
                raise PptError(f"n_i of {name} is {count:g}; expected a number of 0 to {LARGEST:g}")
        for name in ("f_inf", "simd_memory"):
            if getattr(self, name) > 1:
                raise PptError(f"{name} is {getattr(self, name):g}; a share is at most 1")
        self._consistent()

    def _consistent(self) -> None:
        if not self.operations >= 1:
            raise PptError("n_i counts no operations")
        if self.N_M is not None and self.N_M < 1:
            raise PptError(f"N_M is {self.N_M:g}; a run has at least one micro-op")
        if self.ILP < 1 or not 1 <= self.ILP_w2 <= 2:
            raise PptError(f"ILP is {self.ILP:g}, with a window of 2 {self.ILP_w2:g}; expected at least 1, and 1 to 2")
        overlapped, last = self.N_mL3_o, max(self.N_mL3, self.N_mL2)
        if overlapped is not None and overlapped > last:
            raise PptError(f"N_mL3_o is {overlapped:g}, more than the {last:g} misses of the last cache")
        if self.N_accel > self.operations:
            raise PptError(f"N_accel is {self.N_accel:g}, more than the {self.operations:g} operations")

    @property
    def operations(self) -> float:
        return sum(self.n_i.values())

    @property
    def accesses(self) -> float:
        """Loads and stores."""
        return sum(self.n_i.get(name, 0.0) for name in {*LOADS, *STORES})
