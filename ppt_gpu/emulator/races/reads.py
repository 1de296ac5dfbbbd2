"""Reads of shared memory that no thread of the block ever wrote: a pass over a recorded trace.

What such a read gives is undefined on a GPU (here it is 0). The pass is made so that it never warns wrongly: an
access counts only where none of its bytes was written at any time of the block, earlier or later, and kernels that
write shared memory in ways that a trace does not record, or from other blocks of a cluster, are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT
from ppt_gpu.emulator.races.accesses import (
    NOTHING,
    READS,
    SHARED,
    UPDATES,
    WRITES,
    PathAccesses,
    Recorded,
    may_name_other_blocks,
    role,
)
from ppt_gpu.emulator.trace.digest_patterns import distances
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.module import Instruction, Kernel

#: base opcodes that may write shared memory without a record of where
UNRECORDED = ("cp", "mbarrier", "stmatrix", "wmma", "wgmma", "tcgen05", "multimem")
_KINDS = (NOTHING, READS, WRITES, UPDATES)
_SEEN = 1 << 12  # entries of the cache of accesses looked at
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


def unwritten_reads(
    kernel: Kernel, trace: Trace, accesses: PathAccesses, shared_bytes: int, reserved_bytes: int = 0
) -> list[tuple[int, int, int]]:
    """(instruction, block, byte) of the first such read of each instruction.

    What lies behind the `shared_bytes` of the kernel, `reserved_bytes` of the system, counts as written.
    """
    roles = _roles(kernel)
    if roles is None:
        return []
    shared, bases = trace.access_space == SHARED, trace.access_base.view(np.int64)
    if not shared.any():
        return []
    if may_name_other_blocks(kernel) and (bases[shared] >> CLUSTER_SHIFT).any():
        return []
    memory_start, memory_pc, sizes = accesses.start, accesses.pc, accesses.size
    path_roles = roles[memory_pc]
    # (looking, places in `memory_pc` to look at, where those of each path begin); the first will do if all is stored
    passes = []
    for looking, wanted in ((False, (WRITES,)), (False, (UPDATES,)), (True, (READS, UPDATES))):
        chosen = np.zeros(len(_KINDS), np.bool_)
        chosen[list(wanted)] = True
        places = np.flatnonzero(chosen[path_roles])
        passes.append((looking, places, np.searchsorted(places, memory_start)))
    written = np.zeros(shared_bytes + reserved_bytes, np.uint8)
    seen = np.zeros((_SEEN, 2), np.int64)
    found = np.full((len(kernel.instructions), 2), -1, np.int64)
    recorded = accesses.recorded(trace)
    for position in accesses.blocks:
        first, end = np.searchsorted(trace.warp_block, [position, position + 1])
        written[:shared_bytes], written[shared_bytes:] = 0, 1
        for looking, places, place_start in passes:
            seen[:] = -1
            left = _look(
                first, end, recorded, memory_start, memory_pc, roles, sizes, Wanted(places, place_start, looking),
                int(trace.blocks[position]), written, seen, found,
            )  # fmt: skip
            if not left:
                break
    return [(index, int(block), int(byte)) for index, (block, byte) in enumerate(found.tolist()) if byte >= 0]


@once_a_kernel
def _roles(kernel: Kernel) -> NDArray[np.int8] | None:
    """[I] What each instruction does; None where the kernel reads no shared memory, or may write it unrecorded."""
    opcodes = {i.opcode: i for i in kernel.instructions}  # what is asked here of an instruction, its opcode says
    by_opcode = {opcode: _role(i) for opcode, i in opcodes.items()}
    if any(_unrecorded(i) for i in opcodes.values()) or not {READS, UPDATES} & set(by_opcode.values()):
        return None
    return np.array([by_opcode[i.opcode] for i in kernel.instructions], np.int8)


def _role(instruction: Instruction) -> int:
    """An exchange needs nothing that was there before: its result may be thrown away."""
    found = role(instruction)
    return WRITES if found == UPDATES and "exch" in instruction.modifiers else found


def _unrecorded(instruction: Instruction) -> bool:
    return instruction.base in UNRECORDED or "async" in instruction.modifiers


class Wanted(NamedTuple):
    """Instructions on paths that a pass looks at."""

    places: NDArray[np.int64]  # in the memory instructions on paths
    place_start: NDArray[np.int64]  # [P+1] where those of each path begin
    looking: bool  # it looks for reads of what is not marked; else it marks what they write


@entry
def _look(
    first: int, end: int, recorded: Recorded, memory_start: NDArray[np.int64], memory_pc: NDArray[np.int32],
    roles: NDArray[np.int8], sizes: NDArray[np.int64], wanted: Wanted, block: int, written: NDArray[np.uint8],
    seen: NDArray[np.int64], found: NDArray[np.int64],
) -> int:  # fmt: skip
    """Warps `first` to `end`: mark what they write (1: stored, 2: updated), or look for reads of what is not marked.

    Returns the number of bytes that are not marked as stored; marking ends when there is none.
    """
    warp_path, access_start, space, base, line, rows, away = recorded
    places, place_start, looking = wanted
    left = 0
    for byte in range(len(written)):
        left += 1 - (written[byte] & 1)
    for w in range(first, end):
        shift = access_start[w] - memory_start[warp_path[w]]
        for j in range(place_start[warp_path[w]], place_start[warp_path[w] + 1]):
            k = places[j] + shift
            if space[k] != SHARED:
                continue
            pc = memory_pc[places[j]]
            role = roles[pc]
            if looking and found[pc, 1] >= 0:
                continue
            key = line[k] * 256 + sizes[pc] * 4 + role
            slot = ((base[k] ^ (key * _MIX)) * _MIX) >> 52 & (_SEEN - 1)
            if seen[slot, 0] == base[k] and seen[slot, 1] == key:
                continue
            seen[slot, 0] = base[k]
            seen[slot, 1] = key
            mask = distances(rows, line[k], away, 0)
            for lane in range(32):
                if mask >> lane & 1 == 0:
                    continue
                start = base[k] + away[0, lane]
                if not looking:
                    for byte in range(start, start + sizes[pc]):
                        if role == WRITES:
                            left -= 1 - (written[byte] & 1)
                        written[byte] |= 1 if role == WRITES else 2
                    continue
                known = 3 if role == READS else 1
                defined = False
                for byte in range(start, start + sizes[pc]):
                    if written[byte] & known:
                        defined = True
                if not defined:
                    found[pc, 0] = block
                    found[pc, 1] = start
                    break
            if left == 0:
                return 0
    return left
