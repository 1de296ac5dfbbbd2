"""One launch on one GPU, as the simulation sees it: the instruction streams of its warps.

They are those of the simulated blocks (`WarpStreams.program`): machine operations with class,
pipe, latency and initiation interval, who waits for whom, and the transactions of every memory operation. A model that
needs what a task list lacks (addresses of lanes, PTX) asks with `need_trace` or `need_kernel`, which say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.bounds import pipe_units
from ppt_gpu.common.compiled import entry as compiled_entry
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.sm.program.ops import pipe_order
from ppt_gpu.sm.program.program import RECORDED, Program, op_issues
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu
from ppt_gpu.workload.workload import Launch

_ONE = np.uint64(1)


class DoesNotApply(Exception):
    """Raised by a model that has no answer for these inputs; the text is the reason, for the user."""


@dataclass(frozen=True, eq=False)
class WarpStreams:
    """One launch on one GPU. E entries of all paths, W warps and M memory entries of the simulated blocks."""

    gpu: Gpu
    launch: Launch
    program: Program  # the simulated blocks, lowered for `gpu`; see its fields
    blocks: tuple[int, ...]  # ids of the simulated blocks, in the order in which they start
    resident_blocks: int  # that an SM holds at once
    active_sms: int  # SMs that get a block
    sm_blocks: float  # blocks of the busiest SM over the launch, each like a simulated one
    grid_blocks: float  # blocks of the launch, each like a simulated one
    registers: int  # per thread
    shared_bytes: int  # per block, static and dynamic
    l1_bytes: int  # of the L1 beside that shared memory
    l2_dirty: float = 0.0  # written sectors that each new one in the L2 pushes out (ppt_gpu.scale.history.footprint)
    kernel: LinkedKernel | None = None  # None: a task list
    trace: Trace | None = None  # of `blocks`; None: a task list

    def need_kernel(self) -> LinkedKernel:
        """The PTX. Raises DoesNotApply for a task list."""
        if self.kernel is None:
            raise DoesNotApply("it reads PTX, which a task list lacks")
        return self.kernel

    def need_trace(self) -> Trace:
        """Paths of PTX instructions and the addresses of every lane. Raises DoesNotApply for a task list."""
        if self.trace is None:
            raise DoesNotApply("it reads the addresses of a functional run, which a task list lacks")
        return self.trace

    @property
    def warps_per_block(self) -> int:
        return -(-self.launch.threads_per_block // self.gpu.sm.warp_size)

    @property
    def resident_warps(self) -> int:
        """Warps that an SM holds at once."""
        return self.resident_blocks * self.warps_per_block

    @property
    def issue_rate(self) -> int:
        """Warp instructions that an SM issues in a cycle at most."""
        return self.gpu.sm.schedulers * self.gpu.sm.issue_width

    @cached_property
    def path_instructions(self) -> NDArray[np.int64]:
        """[P] entries of every path."""
        return np.diff(self.program.path_start)

    @cached_property
    def instructions(self) -> int:
        """Warp instructions (machine operations) of all simulated warps."""
        return int(self.path_instructions[self.program.warp_path].sum())

    @property
    def warp_instructions(self) -> float:
        """Of one warp, mean."""
        return self.instructions / max(len(self.program.warp_path), 1)

    @property
    def sm_instructions(self) -> float:
        """Warp instructions of the busiest SM over the launch."""
        return self.instructions * self.sm_blocks / len(self.blocks)

    @cached_property
    def op_issues(self) -> NDArray[np.int64]:
        """[O] warp instructions of every static operation, all simulated warps."""
        return op_issues(self.program)

    def pipe_cycles(self, chosen: NDArray[np.bool_] | None = None) -> float:
        """Cycles in which the busiest pipe of the SM starts all simulated instructions, or those of operations [O]."""
        work = self.op_issues * self.program.op_ii * (1 if chosen is None else chosen)
        by_pipe = np.bincount(self.program.op_pipe, weights=work, minlength=len(self.gpu.pipes))
        pipes = (self.gpu.pipes[name] for name in pipe_order(self.gpu))
        return max(
            cycles / pipe_units(pipe, self.gpu.sm.schedulers) for cycles, pipe in zip(by_pipe, pipes, strict=True)
        )

    @cached_property
    def class_counts(self) -> dict[str, float]:
        """Warp instructions of one warp, mean, by task class (ppt_gpu.spec.gpu.TASK_CLASSES), without those of none."""
        counts = np.bincount(self.program.op_class, weights=self.op_issues, minlength=len(TASK_CLASSES))
        warps = max(len(self.program.warp_path), 1)
        return {name: float(count) / warps for name, count in zip(TASK_CLASSES, counts, strict=True) if count}

    @cached_property
    def entry_memory(self) -> NDArray[np.int64]:
        """[E] the how-manieth memory operation of its path an entry is; -1 if none.

        In warp w its memory entry (`access_start`, `access_cycles`) is `program.warp_access[w]` plus that.
        """
        return _ordinals(self.program)

    @cached_property
    def producers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """CSR over the entries: start [E+1], and the entries of the same path that an entry waits for.

        Issue is in order, so only the first consumer of a result is listed as waiting for it; and one so far behind
        that the entries between take at least the latency to issue waits for nothing (ppt_gpu.sm.accesses.scoreboard).
        """
        return _producers(self.program)


def _ordinals(program: Program) -> NDArray[np.int64]:
    recorded = np.isin(program.op_kind, RECORDED)[program.entry_op]
    before = np.concatenate(([0], np.cumsum(recorded)))
    first = np.repeat(before[program.path_start[:-1]], np.diff(program.path_start))
    return np.where(recorded, before[:-1] - first, -1).astype(np.int64)


def _producers(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start = np.zeros(len(program.entry_op) + 1, np.int64)
    found = np.zeros(int((program.entry_slot >= 0).sum()), np.int64)
    if len(found):
        _fill_producers(
            program.path_start, program.entry_wait, program.entry_slot, np.zeros(64, np.int64), start, found
        )
    return start, found[: start[-1]]


@compiled_entry
def _fill_producers(
    path_start: np.ndarray,
    entry_wait: np.ndarray,
    entry_slot: np.ndarray,
    owner: np.ndarray,
    start: np.ndarray,
    found: np.ndarray,
) -> None:
    """owner [64]: the entry that announces in each slot, on this path so far (-1: none)."""
    count = 0
    for path in range(len(path_start) - 1):
        for slot in range(len(owner)):
            owner[slot] = -1
        for entry in range(path_start[path], path_start[path + 1]):
            wait, slot = entry_wait[entry], 0
            while wait:
                if wait & _ONE and owner[slot] >= 0:
                    found[count] = owner[slot]
                    count += 1
                    owner[slot] = -1
                wait >>= _ONE
                slot += 1
            start[entry + 1] = count
            if entry_slot[entry] >= 0:
                owner[entry_slot[entry]] = entry
