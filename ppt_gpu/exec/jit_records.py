"""Records of accesses in the buffers of a warp, as compiled code appends them (`ppt_gpu.exec.trace_buffers`).

Record of an access: a 4-byte header and, in a buffer of their own, the address of the lowest active lane. Header: the
number of its pattern (`ppt_gpu.exec.pattern_store`), and in the lowest SPACE_BITS the space.
"""

from __future__ import annotations

from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.jit_text import Text

RECORD_BYTES, BASE_BYTES = 4, 8  # of a header, of a base address
SPACE_BITS = 2
#: so many bytes ahead buffers are fetched: stores that wait for their line hold back all that come behind them
AHEAD = 256


def append_record(f: Text, header: str, base: str) -> None:
    """Append the record of an access to the warp's buffers: an i32 and an i64."""
    cursor = f.field("%w", Slot.RECORD)
    headers, bases = f.as_pointer(cursor), base_of(f, cursor)
    f.do(f"store i32 {header}, ptr {headers}, align 4")
    f.do(f"store i64 {base}, ptr {bases}, align 8")
    fetch(f, headers, AHEAD * RECORD_BYTES // BASE_BYTES)
    fetch(f, bases, AHEAD)
    f.set_field("%w", Slot.RECORD, f.i64("add", cursor, RECORD_BYTES))


def base_of(f: Text, header: str) -> str:
    """Where the base address of the access stands whose header is at this host address (an i64)."""
    return f.as_pointer(f.i64("add", f.i64("mul", header, BASE_BYTES // RECORD_BYTES), f.field("%w", Slot.BASES)))


def fetch(f: Text, pointer: str, offset: int) -> None:
    """Ask for the line `offset` bytes behind a pointer, which is about to be written; it need not exist."""
    place = f.offset_pointer(pointer, offset)
    f.call("void", "llvm.prefetch.p0", ("ptr", place), ("i32", "1"), ("i32", "3"), ("i32", "1"))
