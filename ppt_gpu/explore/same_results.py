"""Do two forms of a kernel compute the same? Both run on the CPU, the whole grid, and their buffers are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.emulator.memory.initial_memory import device_memory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.frontends.prepare import prepare
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

LONGEST = 300_000_000  # warp instructions of a launch: more are not run for this
CLOSE = 1e-3  # of the largest value of a buffer: what another order of additions may change
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}

SAME, ROUNDED, OTHER, UNKNOWN = "same results", "same but for rounding", "other results", "not checked"


@dataclass(frozen=True)
class Verdict:
    """`kind` is one of the four above; `text` says more."""

    kind: str
    text: str

    @property
    def good(self) -> bool:
        """Nothing speaks against it."""
        return self.kind != OTHER


class Results:
    """What a workload leaves in its buffers, to compare others with."""

    def __init__(self, workload: Workload, capability: tuple[int, int]) -> None:
        self.workload, self.capability = workload, capability
        self._own: Mapping[str, NDArray[np.uint8]] | str | None = None

    def against(self, other: Workload) -> Verdict:
        """Does `other` leave the same?"""
        if self._own is None:
            self._own = left_behind(self.workload, self.capability)
        if isinstance(self._own, str):
            return Verdict(UNKNOWN, self._own)
        sizes = {buffer.name: (buffer.type, buffer.count) for buffer in self.workload.buffers}
        if sizes != {buffer.name: (buffer.type, buffer.count) for buffer in other.buffers}:
            return Verdict(UNKNOWN, "it has other buffers")
        found = left_behind(other, self.capability)
        if isinstance(found, str):
            return Verdict(UNKNOWN, found)
        return compared(self.workload, self._own, found)


def left_behind(workload: Workload, capability: tuple[int, int]) -> dict[str, NDArray[np.uint8]] | str:
    """The bytes of each buffer after all launches; or why that is not known."""
    if workload.tasklist_path or workload.machine_path:
        return "there are no data to compute with"
    if workload.loops:
        return "launches in loops are not run for this"
    budget = Budget(instructions=LONGEST)
    try:
        prepared = prepare(workload, capability)
        memory = device_memory(prepared.module, prepared.workload, {}, budget)
        for launch in prepared.workload.launches:
            kernel = prepared.module.kernels[launch.kernel]
            for _ in range(launch.repeat):
                run(kernel, prepared.module, launch, memory, range(launch.blocks), trace=False, budget=budget)
    except BudgetError:
        return f"more than {LONGEST:,} warp instructions"
    except PptError as error:
        return f"it cannot be run whole: {' '.join(error.message.split())}"
    return {buffer.name: memory.bytes_of(buffer.name) for buffer in workload.buffers}


def compared(
    workload: Workload, own: Mapping[str, NDArray[np.uint8]], other: Mapping[str, NDArray[np.uint8]]
) -> Verdict:
    """The verdict on buffers of a workload."""
    worst = 0.0
    for buffer in workload.buffers:
        mine, its = own[buffer.name], other[buffer.name]
        if np.array_equal(mine, its):
            continue
        kind = _FLOATS.get(buffer.type)
        off = 1.0 if kind is None else _off(mine.view(kind), its.view(kind))
        if off > CLOSE:
            return Verdict(OTHER, f"buffer '{buffer.name}' differs")
        worst = max(worst, off)
    return Verdict(ROUNDED, f"{ROUNDED}, by {worst:.1g} of the largest value") if worst else Verdict(SAME, SAME)


def _off(mine: NDArray, its: NDArray) -> float:
    """The largest difference as a share of the largest value; 1 where one is no number and the other is."""
    if not np.array_equal(np.isfinite(mine), np.isfinite(its)):
        return 1.0
    finite = np.isfinite(mine)
    a, b = mine[finite].astype(np.float64), its[finite].astype(np.float64)
    largest = float(np.abs(a).max(initial=0.0))
    difference = float(np.abs(a - b).max(initial=0.0))
    return min(difference / largest, 1.0) if largest else float(difference > 0)
