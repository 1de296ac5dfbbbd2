"""What a functional run leaves behind: each warp's instruction stream and its memory addresses, in flat arrays.

Independent of any GPU: instructions are PTX indices of the kernel, addresses are raw. Warps that ran the same
instructions in the same order share one path, and accesses whose 32 lanes lie at the same distances share one pattern.

Order of divergent paths: a warp whose lanes branch to different places runs the place that comes first in the text
first; each path runs until it reaches the immediate post-dominator of the branch, where the lanes join again.
A shared access is recorded at its offset in the block's shared memory, a local one at the interleaved address of
`ppt_gpu.emulator.launch.layout.local_address`, a global one at its virtual address. An access to the shared memory of
another block of the cluster has that block's rank + 1 in bits 24 to 31, and is timed like one to the block's own. Where
the lanes of one access lie in several spaces, or blocks, only those in the same as the lowest active lane are recorded;
those in the parameters of the kernel never are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.workload.workload import Range

#: entries of `Trace.block_threads` at most
LARGEST_COUNTS = 1 << 22


def counts_by_block(blocks: int, instructions: int) -> bool:
    """Does a run of so many blocks count the threads of each instruction by block?"""
    return 0 < blocks * instructions <= LARGEST_COUNTS


@dataclass(frozen=True)
class Trace:
    """A run of `blocks` of one launch. Warps are ordered by (position in `blocks`, warp in block).

    E dynamic instructions over all paths, P paths, W warps, A accesses, N patterns, I static instructions.
    """

    blocks: NDArray[np.int64]  # [B] linear block ids that ran, in the order asked for
    path_start: NDArray[np.int64]  # [P+1]
    path_pc: NDArray[np.int32]  # [E] instruction index; a warp's serialised stream, divergent paths one after another
    warp_path: NDArray[np.int32]  # [W]
    warp_block: NDArray[np.int32]  # [W] position in `blocks`
    warp_threads: NDArray[np.int64]  # [W] thread instructions; lanes whose guard is false do not count
    access_start: NDArray[np.int64]  # [W+1] per warp into the two below; one access per executed memory instruction,
    # in stream order (ld, st, atom, red of global, shared, local, generic, and of const where a register tells which
    # constant; others and parameters are not recorded).
    # A memory instruction none of whose lanes was active has an access too: its pattern has mask 0.
    access_base: NDArray[np.uint64]  # [A] address of the lowest active lane; generic addresses are resolved
    access_pattern: NDArray[np.int32]  # [A] numbered by first appearance in this array
    access_space: NDArray[np.uint8]  # [A] index into ppt_gpu.spec.gpu.MEMORY_SPACES, resolved for generic accesses
    pattern_offset: NDArray[np.int64]  # [N, 32] bytes from the base address, 0 in inactive lanes
    pattern_mask: NDArray[np.uint32]  # [N] active lanes
    pc_executed: NDArray[np.int64]  # [I] warp executions of each static instruction, all warps
    pc_threads: NDArray[np.int64]  # [I] thread executions
    ranges: tuple[Range, ...]  # global buffers
    warnings: tuple[str, ...] = ()  # each with its PTX line, where it has one
    printed: str = ""  # by printf, in the order of execution
    # [B, I] pc_threads by block, so that a trace can be taken apart; None where that is too large (`counts_by_block`)
    block_threads: NDArray[np.int64] | None = None

    @property
    def warps(self) -> int:
        return len(self.warp_path)

    @property
    def thread_instructions(self) -> int:
        return int(self.warp_threads.sum())

    @property
    def warp_instructions(self) -> int:
        lengths = np.diff(self.path_start)
        return int(lengths[self.warp_path].sum())


@dataclass(frozen=True)
class GlobalAccesses:
    """The global accesses of B blocks, which is all that matters of blocks on other SMs: G accesses, N patterns."""

    blocks: NDArray[np.int64]  # [B] linear block ids
    start: NDArray[np.int64]  # [B+1] per block into the three below
    pc: NDArray[np.int32]  # [G] instruction
    base: NDArray[np.uint64]  # [G] address of the lowest active lane
    pattern: NDArray[np.int32]  # [G] numbered by first appearance
    pattern_offset: NDArray[np.int64]  # [N, 32] as in Trace
    pattern_mask: NDArray[np.uint32]  # [N]
