"""Asynchronous copies into shared memory as compiled code notes them: who issued each, and where its bytes go.

Traces do not hold these places. Only the first copies of a run are noted, for warnings
(`ppt_gpu.emulator.races.asynchronous`); where none are wanted, or no more, a look at the control block is all that a
copy costs.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.emulator.llvm.text import Text, vec
from ppt_gpu.emulator.memory.host_memory import host_words
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.ptx.module import Instruction, Kernel

MOST = 1 << 12  # copies of warps that are noted
WORDS = 24  # 64-bit words of a note


class Note(IntEnum):
    """Words of a note."""

    PC = 0  # instruction, above it the mask of its lanes
    WARP = 1  # in its block
    CTAID_X = 2
    CTAID_Y = 3
    CTAID_Z = 4
    BYTES = 5  # that each lane copies, 0: not known
    BARRIER = 6  # address of the mbarrier that is told + 1, 0 for none
    PLACES = 8  # 32 offsets in the block's shared memory, of 32 bits


NEXT, END = range(2)  # words of the control block: host addresses


class AsyncCopies:
    """The notes of one run. `block` is the control block, which Slot.COPIES points to."""

    def __init__(self, kernel: Kernel, wanted: bool) -> None:
        self._notes = np.empty((MOST if wanted and copies(kernel) else 0, WORDS), np.int64)
        start = self._notes.ctypes.data
        self.block = np.array([start, start + self._notes.nbytes], np.int64)

    @property
    def notes(self) -> NDArray[np.int64]:
        """[n, WORDS] in the order in which they were issued."""
        return self._notes[: (int(self.block[NEXT]) - self._notes.ctypes.data) // (8 * WORDS)]


@once_a_kernel
def copies(kernel: Kernel) -> bool:
    """Does the kernel copy anything asynchronously?"""
    return any(is_copy(i) for i in kernel.instructions)


def is_copy(i: Instruction) -> bool:
    """Does it issue copies that a note is made of: cp.async of lanes, and bulk copies that an mbarrier is told of?"""
    words = i.modifiers
    if i.base != "cp" or words[:1] != ("async",):
        return False
    if "bulk" in words:
        return "prefetch" not in words and any(word.startswith("mbarrier::complete_tx") for word in words)
    return not {"commit_group", "wait_group", "wait_all", "mbarrier"}.intersection(words)


def append_note(f: Text, pc: str, mask: str, places: str, size: int) -> None:
    """Note that the lanes of a mask (an i32) copy `size` bytes each to these places (32 x i32), if there is room."""
    control = f.field("%w", Slot.COPIES, "ptr")
    at = f.field(control, NEXT)
    room, end = f.fresh("room"), f.fresh("noted")
    f.branch(f.i64("icmp ult", at, f.field(control, END)), room, end)
    f.label(room)
    note = f.as_pointer(at)
    f.set_field(note, Note.PC, f.i64("or", f.i64("shl", f.widen(mask), 32), pc))
    for word in (Note.WARP, Note.CTAID_X, Note.CTAID_Y, Note.CTAID_Z):
        f.set_field(note, word, f.field("%w", Slot[word.name]))
    f.set_field(note, Note.BYTES, str(size))
    f.set_field(note, Note.BARRIER, "0")
    f.do(f"store {vec('i32')} {places}, ptr {f.offset_pointer(note, 8 * Note.PLACES)}, align 8")
    f.set_field(control, NEXT, f.i64("add", at, 8 * WORDS))
    f.jump(end)
    f.label(end)


def note_bulk(
    row: NDArray[np.int64], control: NDArray[np.int64], pc: int, copied: dict[int, tuple[int, int, int]]
) -> None:
    """Note a bulk copy of the warp with this row, if there is room: of each lane its place, bytes and mbarrier."""
    if control[NEXT] >= control[END]:
        return
    note = host_words(int(control[NEXT]), WORDS)
    note[:] = 0
    note[Note.PC] = pc
    note[:1].view(np.uint32)[1] = sum(1 << lane for lane in copied)
    for word in (Note.WARP, Note.CTAID_X, Note.CTAID_Y, Note.CTAID_Z):
        note[word] = row[Slot[word.name]]
    sizes, barriers = ({each[k] for each in copied.values()} for k in (1, 2))
    if len(sizes) == 1 and len(barriers) == 1:
        note[Note.BYTES], note[Note.BARRIER] = sizes.pop(), barriers.pop() + 1
        for lane, (place, _, _) in copied.items():
            note[Note.PLACES :].view(np.int32)[lane] = place
    control[NEXT] += 8 * WORDS
