"""How often a warp waits: groups of instructions, and of memory requests, that it issues before it must wait for one.

A warp issues in order. It waits when an instruction needs the result of one issued since it last waited; what it
issued since then is one group. Instructions over groups is the ILP of GPUPerf (Sim et al. 2012, section 3), requests to
memory over the groups that a warp waits for is its MLP, and what is not the first of such a group is what Hong and Kim
(Eq 29) call an independent request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppt_gpu.common.compiled import entry as compiled_entry
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.spec.gpu import TASK_CLASSES

#: task classes whose requests may go to the DRAM
OFF_CHIP = tuple(f"{access}.{space}" for access in ("load", "store", "atomic") for space in ("global", "local"))


@dataclass(frozen=True)
class WarpWaits:
    """Of one warp, mean over the simulated warps."""

    instructions: float
    groups: float  # of instructions
    requests: float  # off-chip memory instructions
    request_groups: float  # of those, by the waits for a load or atomic

    @property
    def ilp(self) -> float:
        """Instructions that a warp issues between waits; 1 without instructions."""
        return max(self.instructions / self.groups, 1.0) if self.groups else 1.0

    @property
    def mlp(self) -> float:
        """Memory requests of a warp that are under way together; 1 without requests."""
        return max(self.requests / self.request_groups, 1.0) if self.request_groups else 1.0

    @property
    def independent_requests(self) -> float:
        """Requests that need not wait for the one before."""
        return max(self.requests - self.request_groups, 0.0)


def warp_waits(inputs: ModelInputs) -> WarpWaits:
    """The groups of all simulated warps."""
    program = inputs.program
    start, producer = inputs.producers
    off_chip = np.isin(program.op_class, [TASK_CLASSES.index(name) for name in OFF_CHIP])[program.entry_op]
    per_path = np.zeros((len(program.path_start) - 1, 3), np.int64)
    _count(program.path_start, start, producer, off_chip, per_path)
    warps = np.bincount(program.warp_path, minlength=len(per_path)).astype(np.float64)
    groups, requests, request_groups = (warps @ per_path / max(warps.sum(), 1.0)).tolist()
    return WarpWaits(inputs.warp_instructions, groups, requests, request_groups)


@compiled_entry
def _count(
    path_start: np.ndarray, start: np.ndarray, producer: np.ndarray, off_chip: np.ndarray, found: np.ndarray
) -> None:
    """found [P, 3]: groups of instructions, requests, groups of requests."""
    for path in range(len(path_start) - 1):
        first, last = path_start[path], path_start[path + 1]
        group = first  # where the group of instructions begins
        memory_group = first  # and that of requests
        groups, requests, open_requests, request_groups = 0, 0, 0, 0
        for e in range(first, last):
            waits, memory_waits = False, False
            for k in range(start[e], start[e + 1]):
                if producer[k] >= group:
                    waits = True
                if producer[k] >= memory_group and off_chip[producer[k]]:
                    memory_waits = True
            if waits:
                groups += 1
                group = e
            if memory_waits:
                request_groups += 1
                memory_group = e
                open_requests = 0
            if off_chip[e]:
                requests += 1
                open_requests += 1
        if last > first:
            groups += 1
        if open_requests:
            request_groups += 1
        found[path, 0], found[path, 1], found[path, 2] = groups, requests, request_groups
