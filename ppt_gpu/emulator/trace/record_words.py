"""Records of accesses in the buffers of a warp, as compiled code appends them (`ppt_gpu.emulator.trace.trace_buffers`).

Record of an access: a 4-byte header and, in a buffer of their own, the address of the lowest active lane. Header: the
number of its pattern (`ppt_gpu.emulator.trace.pattern_store`), and in the lowest SPACE_BITS the space.
"""

from __future__ import annotations

from ppt_gpu.emulator.llvm.text import Text
from ppt_gpu.emulator.memory.warp_context import Slot

RECORD_BYTES, BASE_BYTES = 4, 8  # of a header, of a base address
SPACE_BITS = 2
PATH_BYTES = 8  # of a path record: the segment and, from SEGMENT_BITS on, how often it was repeated; then the lanes
SEGMENT_BITS = 20
MOST_REPEATS = (1 << 32 - SEGMENT_BITS) - 1
CACHE_LINE = 64  # B
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


def append_path(f: Text, segment: int, mask: str, path: str, repeated: bool) -> None:
    """Append to the warp's path, whose end is at host address `path` (an i64), that it runs `segment` (`mask`: an i32).

    `repeated`: it may be the segment at the end of the path already, and there is one: then that record counts it, if
    the lanes are the same.
    """
    word = f.i64("or", f.i64("shl", f.widen(mask), 32), segment)
    if repeated:
        before = f.i64("sub", path, PATH_BYTES)
        last = f.op(f"load i64, ptr {f.as_pointer(before)}, align 8")
        # with the same segment and lanes, the difference is how often it was repeated, behind SEGMENT_BITS zeros
        more = f.i64("sub", last, word)
        turned = f.call("i64", "llvm.fshr.i64", ("i64", more), ("i64", more), ("i64", str(SEGMENT_BITS)))
        again = f.i64("icmp ult", turned, MOST_REPEATS)
        word = f.op(f"select i1 {again}, i64 {f.i64('add', last, 1 << SEGMENT_BITS)}, i64 {word}")
        path = f.op(f"select i1 {again}, i64 {before}, i64 {path}")
    at = f.as_pointer(path)
    f.do(f"store i64 {word}, ptr {at}, align 8")
    if not repeated:
        fetch(f, at, AHEAD)
    f.set_field("%w", Slot.PATH, f.i64("add", path, PATH_BYTES))


def base_of(f: Text, header: str) -> str:
    """Where the base address of the access stands whose header is at this host address (an i64)."""
    return f.as_pointer(f.i64("add", f.i64("mul", header, BASE_BYTES // RECORD_BYTES), f.field("%w", Slot.BASES)))


def fetch(f: Text, pointer: str, offset: int, write: bool = True) -> None:
    """Ask for the line `offset` bytes behind a pointer, which is about to be written, or read; it need not exist."""
    place = f.offset_pointer(pointer, offset)
    f.call("void", "llvm.prefetch.p0", ("ptr", place), ("i32", str(int(write))), ("i32", "3"), ("i32", "1"))
