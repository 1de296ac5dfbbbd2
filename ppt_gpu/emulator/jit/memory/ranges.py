"""The buffer that an address lies in: searched, and cached by the access that asked; faults of accesses."""

from __future__ import annotations

from ppt_gpu.emulator.jit.access import SITE_COUNT, SITE_HOST, SITE_PC, SITE_START
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, vec
from ppt_gpu.emulator.memory.warp_context import Fault, Slot

TOUCHED_BYTES = 128  # that discard and applypriority work on


def site_check(f: Helper, address: str, size: int) -> str:
    """i1: is the scalar address aligned and inside the cached buffer?"""
    offset = f.i64("sub", address, f.field("%site", SITE_START))
    inside = f.i64("icmp ult", offset, f.field("%site", SITE_COUNT))
    if size == 1:
        return inside
    aligned = f.i64("icmp eq", f.i64("and", address, size - 1), 0)
    return f.op(f"and i1 {inside}, {aligned}")


def host_pointer(f: Helper, address: str) -> str:
    """The host pointer of a scalar address inside the cached buffer."""
    offset = f.i64("sub", address, f.field("%site", SITE_START))
    return f.as_pointer(f.i64("add", offset, f.field("%site", SITE_HOST)))


def find(f: Helper, address: str, lane: str, size: int) -> str:
    """i1: search the buffer of a scalar address and cache it in the site; a fault when there is none."""
    return f.helper(
        ("find",), "i1",
        ("ptr", "%w"), ("ptr", "%site"), ("i64", address), ("i32", lane), ("i64", str(size)),
    )  # fmt: skip


@writes("find")
def write_find() -> Helper:
    """Binary search of the object that holds an address; caches it in the site, or faults. Returns i1: found."""
    f = Helper("i1", "ptr %w", "ptr %site", "i64 %address", "i32 %lane", "i64 %size")
    f.label("entry")
    ranges, count = f.field("%w", Slot.RANGES, "ptr"), f.field("%w", Slot.RANGE_COUNT)
    odd = f.i64("and", "%address", f.i64("sub", "%size", 1))
    f.branch(f.i64("icmp ne", odd, 0), "misaligned", "loop")
    f.label("loop")  # invariant: every object below %low starts at or below the address, none from %high on does
    f.do("%low = phi i64 [ 0, %entry ], [ %low2, %step ]")
    f.do(f"%high = phi i64 [ {count}, %entry ], [ %high2, %step ]")
    f.branch(f.i64("icmp ult", "%low", "%high"), "step", "found")
    f.label("step")
    middle = f.i64("lshr", f.i64("add", "%low", "%high"), 1)
    start = _range_word(f, ranges, middle, 0)
    below = f.i64("icmp ule", start, "%address")
    f.do(f"%low2 = select i1 {below}, i64 {f.i64('add', middle, 1)}, i64 %low")
    f.do(f"%high2 = select i1 {below}, i64 %high, i64 {middle}")
    f.jump("loop")
    f.label("found")
    f.branch(f.i64("icmp eq", "%low", 0), "outside", "candidate")
    f.label("candidate")
    index = f.i64("sub", "%low", 1)
    first, end = _range_word(f, ranges, index, 0), _range_word(f, ranges, index, 1)
    room = f.i64("sub", f.i64("sub", end, first), "%size")
    within = f.i64("icmp ule", f.i64("sub", "%address", first), room)
    f.branch(f.op(f"and i1 {f.i64('icmp sge', room, 0)}, {within}"), "inside", "outside")
    f.label("inside")
    f.set_field("%site", SITE_START, first)
    f.set_field("%site", SITE_COUNT, f.i64("add", f.i64("sub", f.i64("sub", end, first), "%size"), 1))
    f.set_field("%site", SITE_HOST, f.i64("add", f.field("%w", Slot.HOST), first))
    f.do("ret i1 true")
    for label, code in (("misaligned", Fault.ALIGNMENT), ("outside", Fault.BOUNDS)):
        f.label(label)
        f.helper(
            ("fault",), "void",
            ("ptr", "%w"), ("i64", str(int(code))), ("i64", f.field("%site", SITE_PC)), ("i32", "%lane"),
            ("i64", "%address"),
        )  # fmt: skip
        f.do("ret i1 false")
    return f


def _range_word(f: Helper, ranges: str, index: str, word: int) -> str:
    at = f.op(f"getelementptr i64, ptr {ranges}, i64 {f.i64('add', f.i64('mul', index, 2), word)}")
    return f.op(f"load i64, ptr {at}, align 8")


@writes("fault")
def write_fault() -> Helper:
    """Remember the first fault of the warp."""
    f = Helper("void", "ptr %w", "i64 %code", "i64 %pc", "i32 %lane", "i64 %address")
    f.label("entry")
    f.branch(f.i64("icmp eq", f.field("%w", Slot.FAULT), 0), "first", "end")
    f.label("first")
    f.set_field("%w", Slot.FAULT, "%code")
    f.set_field("%w", Slot.FAULT_PC, "%pc")
    f.set_field("%w", Slot.FAULT_LANE, f.widen("%lane"))
    f.set_field("%w", Slot.FAULT_ADDRESS, "%address")
    f.jump("end")
    f.label("end")
    f.do("ret void")
    return f


@writes("touch")
def write_touch() -> Helper:
    """Check that the 128 bytes at the address of each active lane are aligned and lie in one buffer; no record."""
    f = Helper("void", "ptr %w", "ptr %site", "i32 %mask", f"{vec('i64')} %a")
    f.label("entry")
    f.branch(f.i32("icmp eq", "%mask", 0), "end", "loop")
    f.label("loop")
    f.do("%left = phi i32 [ %mask, %entry ], [ %rest, %next ]")
    lane = f.first_lane("%left")
    f.do(f"%rest = and i32 %left, {f.i32('sub', '%left', 1)}")
    f.branch(find(f, f.extract("i64", "%a", lane), lane, TOUCHED_BYTES), "next", "end")
    f.label("next")
    f.branch(f.i32("icmp eq", "%rest", 0), "end", "loop")
    f.label("end")
    f.do("ret void")
    return f
