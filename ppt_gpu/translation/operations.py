"""The operation names of a kernel's instructions as tasks, in memory spaces that task lists know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import is_barrier, is_traced, operation
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.spec.gpu import Isa
from ppt_gpu.tasklist.expand import operations_of
from ppt_gpu.translation.memory import space_of

OFF = "int32.off"  # a memory instruction that no lane of the warp executes: an issue slot, nothing more


class Operations:
    """The operations of each instruction, with spaces that task lists know."""

    def __init__(self, kernel: Kernel, trace: Trace, path: NDArray[np.int32], chosen: int) -> None:
        self.kernel, self.instructions = kernel, kernel.instructions
        traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
        accesses = slice(int(trace.access_start[chosen]), int(trace.access_start[chosen + 1]))
        pcs = path[traced[path]]
        self.space = {int(pc): space_of(trace.access_space[accesses][pcs == pc]) for pc in np.unique(pcs)}
        masks = trace.pattern_mask[trace.access_pattern[accesses]]
        self.off = {int(pc) for pc in np.unique(pcs) if not masks[pcs == pc].any()}

    def of(self, pc: int, isa: Isa | None) -> tuple[str, ...]:
        """The operations of instruction `pc`: one, or those that `isa` expands it to."""
        instruction = self.instructions[pc]
        if pc in self.off:
            return (OFF,)
        names = operations_of(self.kernel, pc, isa)
        if operation(instruction) == "barrier" and not is_barrier(instruction):
            return tuple("branch.sync" if name == "barrier" else name for name in names)  # of the warp alone
        return tuple(self._placed(name, pc) for name in names)

    def _placed(self, name: str, pc: int) -> str:
        """Parameters are constants, textures lie in global memory, generic accesses go where the trace says."""
        access, _, rest = name.partition(".")
        space, _, variant = rest.partition(".")
        if access not in ("load", "store", "atomic"):
            return name
        if space == "param" and access != "load":
            return "int32.mov"  # an argument of a call: moves in registers
        place = {"param": "constant", "texture": "global", "generic": self.space.get(pc, "global")}.get(space)
        place = place or (self.space.get(pc, space) if space in ("global", "shared") else space)
        return ".".join((access, place, variant)) if variant else f"{access}.{place}"
