"""The intermediate representation of a program between CPU and GPU: what it does, whatever machine it was measured on.

Blem's chapter 5 proposes it (Table 5.2) and never writes it down; here it is data, with a text form (`ir_text`).

A program is `threads` pieces of work that could run side by side: threads of a GPU, or elements that the outer loop of
a CPU program works on. The source runs them in groups of `width`: warps of 32, SIMD registers of 4 or 8, or one by one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.operations import CLASSES, LARGEST, LOADS, STORES

_DISTANCE = re.compile(r"\d+|irregular")
_SLACK = 1e-6


class IrError(PptError):
    """A number of a representation that cannot be; `at`: where it stands in the text form."""

    def __init__(self, at: tuple[str, ...], message: str, hint: str | None = None) -> None:
        self.at = at
        super().__init__(message, hint=hint)


@dataclass(frozen=True)
class Amount:
    """How often an operation is executed, over the whole run."""

    threads: float  # by a thread; lanes that are masked off do not count
    groups: float  # by a group

    @property
    def active(self) -> float:
        """Lanes of a group that take part, mean."""
        return self.threads / self.groups if self.groups else 0.0


@dataclass(frozen=True)
class Ir:
    """Raises IrError, naming the value, for numbers that cannot be."""

    name: str
    origin: str  # what it was made from, for people
    threads: float
    width: int  # of a group of the source
    operations: Mapping[str, Amount]  # by class (ppt_gpu.multicore.base.operations.CLASSES)
    ilp: Mapping[int, float]  # window -> operations of a thread that could start in a cycle, each taking one
    footprint: float  # distinct bytes of data that the run touches: F_CPU of Eq 5.1
    element: float  # B of a data access
    strides: Mapping[
        str, float
    ]  # "0", "1", ... elements between neighbouring threads, "irregular" -> share of accesses
    scratch: float = 0.0  # B of the footprint that the source keeps in memory of a group of threads
    inner_loops: float = 0.0  # in a thread: each ends in a reduction or a meeting of the threads
    group_threads: int = 0  # threads that share scratch memory and meet (a block); 0: not known
    mispredicted: float | None = None  # share of the branches; None: not known
    parallel: float = 1.0  # f, share of the run that can be parallel
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for section, names in (
            ("work", ("threads", "inner_loops", "parallel")),
            ("memory", ("footprint", "element", "scratch")),
        ):
            for name in names:
                value = getattr(self, name)
                if not 0 <= value <= LARGEST:
                    raise IrError((section, name), f"{name} is {value:g}; expected a number of 0 to {LARGEST:g}")
        if not self.threads > 0 or self.width < 1 or self.group_threads < 0:
            raise IrError(
                ("work",), f"{self.threads:g} threads in groups of {self.width}; expected at least one of each"
            )
        for name, share in (("parallel", self.parallel), ("mispredicted", self.mispredicted or 0.0)):
            if not 0 <= share <= 1:
                raise IrError(("work", name), f"{name} is {share:g}; a share is 0 to 1")
        if self.scratch > self.footprint:
            message = f"scratch is {self.scratch:g} B, more than the footprint of {self.footprint:g} B"
            raise IrError(("memory", "scratch"), message)
        self._check_operations()
        self._check_tables()

    def _check_operations(self) -> None:
        if not self.operations:
            raise IrError(("operations",), "no operations")
        for name, amount in self.operations.items():
            at, threads, groups = ("operations", name), amount.threads, amount.groups
            if name not in CLASSES:
                raise IrError(at, f"unknown operation '{name}'", did_you_mean(name, CLASSES))
            if not (0 <= threads <= LARGEST and 0 <= groups <= LARGEST):
                message = f"{name}: {threads:g} by threads, {groups:g} by groups; expected 0 to {LARGEST:g}"
                raise IrError(at, message)
            if threads > groups * self.width * (1 + _SLACK):
                raise IrError(at, f"{name}: {groups:g} groups of {self.width} cannot make {threads:g} executions")

    def _check_tables(self) -> None:
        for window, ilp in self.ilp.items():
            if window < 1 or not 1 <= ilp <= window * (1 + _SLACK):
                message = f"ILP of {ilp:g} in a window of {window}; expected 1 to {max(window, 1)}"
                raise IrError(("ilp", str(window)), message)
        for distance, share in self.strides.items():
            if not _DISTANCE.fullmatch(distance) or not share >= 0:
                message = f"stride '{distance}' = {share:g}: expected a number of elements or 'irregular', and a share"
                raise IrError(("strides", distance), message)
        total = sum(self.strides.values())
        if self.strides and abs(total - 1) > _SLACK:
            raise IrError(("strides",), f"the shares of the strides sum to {total:g}, expected 1")

    def count(self, *names: str) -> Amount:
        """Executions of these operations together."""
        found = [self.operations[name] for name in names if name in self.operations]
        return Amount(sum(each.threads for each in found), sum(each.groups for each in found))

    @property
    def accesses(self) -> Amount:
        """Loads and stores of every kind."""
        return self.count(*{*LOADS, *STORES})

    def ilp_in(self, window: int) -> float | None:
        """ILP in a window, None where none is known. Between two known windows it lies on a line in log(window)."""
        known = sorted(self.ilp)
        if not known:
            return None
        if window <= known[0] or window >= known[-1]:
            return min(self.ilp[known[0] if window <= known[0] else known[-1]], float(window))
        high = next(each for each in known if each >= window)
        low = max(each for each in known if each <= window)
        if low == high:
            return self.ilp[low]
        part = math.log(window / low) / math.log(high / low)
        return self.ilp[low] + part * (self.ilp[high] - self.ilp[low])
