"""Reads of what an asynchronous copy writes before anybody has waited for the copy: a pass over a recorded trace.

A thread that issued cp.async knows that its copy is complete after cp.async.wait_group or wait_all; of copies that an
mbarrier is told of, whoever waited there knows; and everybody else after a barrier behind that. Here the copies are
made where they are issued, so that such a read finds them; on a GPU it may find what was there before.

The pass is made so that it never warns wrongly. Warps are taken as a whole: what one of their lanes waited for, all
know. A warp that waited for anything (an mbarrier, a barrier of some warps, a flag) is taken to know what others knew
in that stretch between barriers of the block. Which phase of an mbarrier a wait was for is not looked at. Only the
first block is, and of it only the copies that were noted (`ppt_gpu.emulator.jit.async_copies`); reads through matrix
descriptors are not in a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.notes import is_noted
from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.emulator.jit.async_copies import Note, is_copy
from ppt_gpu.emulator.memory.warp_context import Flag
from ppt_gpu.emulator.races import asynchronous_loops as loops
from ppt_gpu.emulator.races.accesses import PathAccesses
from ppt_gpu.emulator.races.races import instruction_flags, instruction_roles
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.module import Imm, Instruction, Kernel

_LINKS = 1 << 20  # between granules and the copies that write them
_GRANULES = (4, 8, 16)  # B


@dataclass(frozen=True)
class EarlyRead:
    """A read of what a copy may not have written yet, by instructions, and warps of the block."""

    read: int
    copy: int
    read_warp: int
    copy_warp: int
    byte: int  # of shared memory


def early_reads(
    kernel: Kernel, trace: Trace, accesses: PathAccesses, notes: NDArray[np.int64], ctaid: Sequence[int],
    shared_bytes: int,
) -> list[EarlyRead]:  # fmt: skip
    """The first such read of each instruction, in the trace's first block, whose index is `ctaid`."""
    block = notes[(notes[:, Note.CTAID_X : Note.CTAID_Z + 1] == ctaid).all(axis=1)]
    if not len(block) or is_noted(trace.warnings, Flag.DIVERGENT_BARRIER):
        return []
    block = block[np.argsort(block[:, Note.WARP], kind="stable")]  # of each warp in the order of its path
    warps = len(trace.warp_path) // len(trace.blocks)
    copies, own = np.zeros((len(block), loops.COLUMNS), np.int64), np.full((len(block), warps), loops.NEVER)
    copies[:, loops.WARP], copies[:, loops.PC] = block[:, Note.WARP], block[:, Note.PC] & 0xFFFFFFFF
    copies[:, loops.TOLD], copies[:, loops.KNOWN] = block[:, Note.BARRIER] - 1, loops.NEVER
    kind, given = _kinds(kernel)
    flags, roles = instruction_flags(kernel, warps), instruction_roles(kernel)
    recorded = accesses.recorded(trace)
    waits, count = np.empty((_most_waits(trace, warps, kind), 4), np.int64), 0
    paths = [(int(trace.path_start[p]), int(trace.path_start[p + 1])) for p in trace.warp_path[:warps].tolist()]
    starts = trace.access_start[:warps].tolist()
    begin = np.searchsorted(copies[:, loops.WARP], np.arange(warps + 1)).tolist()
    for w, (first, end) in enumerate(paths):
        count = loops.follow_warp(
            w, first, end, trace.path_pc, kind, given, flags, starts[w], recorded, copies, own, begin[w],
            begin[w + 1], waits, count,
        )  # fmt: skip
        if count < 0:
            return []
    loops.meet_barriers(copies, own, waits, count)
    size = block[:, Note.BYTES]
    if not size.any():
        return []
    shift = min(_GRANULES[-1], int(size[size > 0].min())).bit_length() - 1
    head = np.zeros((shared_bytes >> shift) + 2, np.int32)
    follows, of = np.empty(_LINKS, np.int32), np.empty(_LINKS, np.int32)
    places = np.ascontiguousarray(block[:, Note.PLACES :]).view(np.int32)
    loops.chain_places(copies, size, block[:, Note.PC] >> 32 & 0xFFFFFFFF, places, shift, head, follows, of)
    found = np.full((len(kernel.instructions), 3), -1, np.int64)
    for w, (first, end) in enumerate(paths):
        loops.early_reads(
            w, first, end, trace.path_pc, flags, roles, starts[w], recorded, accesses.size, copies, own, shift, head,
            follows, of, found,
        )  # fmt: skip
    return [
        EarlyRead(read, int(copies[c, loops.PC]), warp, int(copies[c, loops.WARP]), byte)
        for read, (c, byte, warp) in enumerate(found.tolist())
        if c >= 0
    ]


def _most_waits(trace: Trace, warps: int, kind: NDArray[np.uint8]) -> int:
    """Waits for mbarriers on the paths of the first block."""
    lengths = np.zeros(len(trace.path_pc) + 1, np.int64)
    np.cumsum(kind[trace.path_pc] == loops.WAIT_BARRIER, out=lengths[1:])
    of_path = np.diff(lengths[trace.path_start])
    return int(of_path[trace.warp_path[:warps]].sum())


@once_a_kernel
def _kinds(kernel: Kernel) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """[I] What each instruction is to copies, and of waits for groups how many may be pending, -1 for wait_all."""
    kind = np.array([_kind(i) for i in kernel.instructions], np.uint8)
    return kind, np.array([_pending(i) if _kind(i) == loops.WAIT_GROUPS else 0 for i in kernel.instructions], np.int64)


def _kind(i: Instruction) -> int:
    words = i.modifiers
    if is_copy(i):
        return loops.COPY
    if i.base == "mbarrier":
        return loops.WAIT_BARRIER if words[0] in ("test_wait", "try_wait") else 0
    if i.base != "cp" or "bulk" in words:  # groups of bulk copies are of those that read shared memory
        return 0
    if "commit_group" in words:
        return loops.COMMIT
    if "wait_group" in words or "wait_all" in words:
        return loops.WAIT_GROUPS
    return loops.TELL if "mbarrier" in words else 0


def _pending(i: Instruction) -> int:
    operand = i.operands[0] if i.operands else None
    return int(operand.value) if "wait_group" in i.modifiers and isinstance(operand, Imm) else -1
