"""Accesses to shared memory in a recorded trace: what each instruction does there, and the accesses of each path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.emulator.trace.digest_patterns import LINES_OF_TRACE, Rows, Stored
from ppt_gpu.emulator.trace.record_words import SPACE_BITS
from ppt_gpu.emulator.trace.recorded_trace import kept_accesses
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import access_bytes, is_traced, memory_space, names_other_blocks
from ppt_gpu.ptx.module import Instruction, Kernel
from ppt_gpu.spec.gpu import MEMORY_SPACES

SHARED = MEMORY_SPACES.index("shared")
_SPACE = (1 << SPACE_BITS) - 1  # bits of a header
#: what an instruction does to shared memory, if its addresses lie there; atomics read and write
NOTHING, READS, WRITES, UPDATES = range(4)
MOST_BLOCKS = 16  # that are looked at, spread over those of the trace

T = TypeVar("T")


class Recorded(NamedTuple):
    """The accesses of a trace as compiled code reads them."""

    warp_path: NDArray[np.int32]  # [W]
    start: NDArray[np.int64]  # [W] where those of each warp begin
    space: NDArray[np.uint8]  # [A]
    base: NDArray[np.int64]  # [A]
    line: NDArray[np.int32]  # [A] where the pattern of each begins in `rows`
    rows: Rows
    away: NDArray[np.int64]  # [1, 32] distances of lanes: room


@dataclass(frozen=True)
class PathAccesses:
    """The memory instructions on the paths of a trace, path after path: M of them."""

    start: NDArray[np.int64]  # [P+1] where those of each path begin
    place: NDArray[np.int64]  # [M] position in `Trace.path_pc`
    pc: NDArray[np.int32]  # [M] instruction
    size: NDArray[np.int64]  # [I] bytes that a lane moves, by instruction
    blocks: list[int]  # positions of blocks to look at (`some_blocks`)
    line: NDArray[np.int32]  # [A] where the pattern of each access of the trace begins in `patterns`
    patterns: Stored

    @staticmethod
    def of(
        kernel: Kernel, trace: Trace, patterns: Stored | None = None, blocks: list[int] | None = None
    ) -> PathAccesses:
        """patterns: those whose lines the trace has for its own, if it has none (`RecordedTrace.stored`). blocks: to
        look at, if not those of `some_blocks`."""
        size, traced = _sizes(kernel)
        place = np.flatnonzero(traced[trace.path_pc])
        pc = trace.path_pc[place].astype(np.int32)
        line = trace.access_pattern
        if patterns is None:
            patterns, line = Stored.of(trace.pattern_offset, trace.pattern_mask), line * np.int32(LINES_OF_TRACE)
        start = np.searchsorted(place, trace.path_start)
        blocks = some_blocks(trace) if blocks is None else blocks
        return PathAccesses(start, place, pc, size, blocks, line, patterns)

    def recorded(self, trace: Trace) -> Recorded:
        """Those of the trace."""
        base, away = trace.access_base.view(np.int64), np.empty((1, 32), np.int64)
        rows = self.patterns.views()
        return Recorded(trace.warp_path, trace.access_start, trace.access_space, base, self.line, rows, away)


@once_a_kernel
def _sizes(kernel: Kernel) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """[I] Bytes that a lane moves, and whether a trace has the address, by instruction."""
    traced = np.array(of_opcodes(kernel, is_traced), np.bool_)
    for k, i in enumerate(kernel.instructions):
        if i.base in ("bar", "barrier") or memory_space(i) == "constant":  # of those, operands count
            traced[k] = is_traced(i)
    return np.array(of_opcodes(kernel, access_bytes), np.int64), traced


@once_a_kernel
def may_name_other_blocks(kernel: Kernel) -> bool:
    """Does the kernel make, or take, addresses of the shared memory of other blocks of its cluster?"""
    return any(names_other_blocks(i) for i in kernel.instructions)


def of_opcodes(kernel: Kernel, fact: Callable[[Instruction], T]) -> list[T]:
    """[I] What `fact` says of each instruction: it is asked once an opcode, which must be all that it looks at."""
    found = {opcode: fact(i) for opcode, i in {i.opcode: i for i in kernel.instructions}.items()}
    return [found[i.opcode] for i in kernel.instructions]


def role(instruction: Instruction) -> int:
    """What an instruction does to shared memory, if its addresses lie there and its trace says where."""
    if memory_space(instruction) not in ("shared", "generic"):
        return NOTHING
    if instruction.base in ("ld", "ldu", "ldmatrix") or instruction.opcode.startswith("wmma.load"):
        return READS
    if instruction.base in ("st", "stmatrix") or instruction.opcode.startswith("wmma.store"):
        return WRITES
    return UPDATES if instruction.base in ("atom", "red") else NOTHING


def some_blocks(trace: Trace) -> list[int]:
    """Positions of blocks to look at: the first, the last, others evenly between them; without those that do in shared
    memory what the one before them does."""
    count = len(trace.blocks)
    if count == 1:
        return [0]
    most = min(MOST_BLOCKS, count)
    chosen = np.array([k * (count - 1) // (most - 1) for k in range(most)])
    kept = np.zeros(most, np.bool_)
    warps = len(trace.warp_path) // max(count, 1)
    start, bases, header = kept_accesses(trace)
    _unlike(chosen, warps, trace.warp_path, start, header, bases.view(np.int64), kept)
    found: list[int] = chosen[kept].tolist()
    return found


@entry
def _unlike(
    chosen: NDArray[np.int64],  # [n] positions of blocks
    warps: int,
    warp_path: NDArray[np.int32],
    access_start: NDArray[np.int64],
    header: NDArray[np.uint32],
    base: NDArray[np.int64],
    kept: NDArray[np.bool_],  # [n]
) -> None:
    """Mark the first, and each that does something else in shared memory than the one marked before it."""
    last = 0
    kept[0] = True
    for k in range(1, len(chosen)):
        if not _alike(chosen[last] * warps, chosen[k] * warps, warps, warp_path, access_start, header, base):
            kept[k] = True
            last = k


@merged
def _alike(
    one: int, other: int, warps: int, warp_path: NDArray[np.int32], access_start: NDArray[np.int64],
    header: NDArray[np.uint32], base: NDArray[np.int64],
) -> bool:  # fmt: skip
    """Do so many warps from `one` and from `other` on take the same paths, with the same accesses to shared memory?"""
    for w in range(warps):
        first, second = access_start[one + w], access_start[other + w]
        length = access_start[one + w + 1] - first
        if warp_path[one + w] != warp_path[other + w] or access_start[other + w + 1] - second != length:
            return False
        differ = np.int64(0)
        for k in range(length):
            a, b = np.uint64(first + k), np.uint64(second + k)
            unlike = np.int64(header[a] ^ header[b])
            apart = (base[a] ^ base[b]) | unlike
            differ |= apart if header[a] & _SPACE == SHARED else unlike & _SPACE
        if differ != 0:
            return False
    return True


@dataclass(frozen=True)
class Race:
    """Two accesses, the one that stands first behind the last barrier and the other."""

    kind: str
    first: int  # instruction
    second: int
    first_warp: int  # in the block
    second_warp: int
    block: int
    byte: int  # of shared memory
