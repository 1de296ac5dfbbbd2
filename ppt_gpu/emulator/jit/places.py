"""Patterns of instructions that always do something new: stored in compiled code without being looked up.

Most of what a new pattern costs is looking for it, and the memory that it fills. Where an instruction made several new
patterns one after another, places of its lanes are stored as they are, in few bits
(`ppt_gpu.emulator.trace.pattern_store`), and only one in BLIND + 1 of its accesses is looked up, to see whether it has
come to repeat itself; ever fewer while it has not, down to one in LONGEST + 1.
"""

from __future__ import annotations

from ppt_gpu.emulator.llvm.text import BITS, Text, const, vec
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.emulator.trace.pattern_store import LINE, PLACES_BIT, SHIFT_BIT, WIDTH_BIT, PatternWord
from ppt_gpu.emulator.trace.record_words import AHEAD, fetch

#: new patterns one after another, where one that is known halves their number, from which on the next BLIND accesses
#: are not looked up
STREAK, BLIND = 8, 31
DOUBLINGS = 4  # so often twice as many accesses are not looked up, if the one that is makes a new pattern again
LONGEST = BLIND << DOUBLINGS
_LARGEST = {"i8": 1 << 8, "i16": 1 << 16, "i32": 1 << 32}  # numbers that fit are less than this


def pattern_element(f: Text, store: str, word: PatternWord, size: int, index: str) -> str:
    """A pointer to an element, of so many bytes, of one of the store's arrays."""
    return f.op(f"getelementptr [{size} x i8], ptr {f.field(store, word, 'ptr')}, i64 {index}")


def end_pattern(f: Text, store: str, used: str, word: str, lines: str) -> None:
    """The row at line `used` is written: give it its word, and go on `lines` (an i64) behind it."""
    f.do(f"store i64 {word}, ptr {pattern_element(f, store, PatternWord.MASKS, 8, used)}, align 8")
    f.set_field(store, PatternWord.COUNT, f.i64("add", f.field(store, PatternWord.COUNT), 1))
    more = f.i64("add", used, lines)
    f.set_field(store, PatternWord.USED, more)
    full, done = f.fresh("full"), f.fresh("done")
    f.branch(f.i64("icmp ult", more, f.field(store, PatternWord.FULL)), done, full)
    f.label(full)  # the next segment does not begin: its path has no room
    f.set_field("%w", Slot.PATH_END, "0")
    f.jump(done)
    f.label(done)


def fits_places(f: Text, limit: str) -> str:
    """i1: can places of at most `limit` (an i64) be stored?"""
    return f.i64("icmp ult", limit, _LARGEST["i32"])


def append_places(f: Text, element: str, places: str, limit: str, shift: int, first: str, inactive: str) -> str:
    """Store the places, elements of 1 << `shift` bytes behind one address, of the lanes of %mask, `first` of which is
    the lowest: at most `limit` (an i64), which `fits_places`. Returns the number of the pattern (an i64)."""
    store = f.field("%w", Slot.PATTERNS, "ptr")
    used = f.field(store, PatternWord.USED)
    row = pattern_element(f, store, PatternWord.ROWS, LINE, used)
    fetch(f, row, 2 * AHEAD)
    narrow = places if element == "i32" else f.op(f"trunc {vec(element)} {places} to {vec('i32')}")
    few = f.mask_bits(f.v32("icmp ult", narrow, const("i32", _LARGEST["i8"])))
    ways = [("i8", f.fresh("places")), ("i16", f.fresh("places")), ("i16", f.fresh("near")), ("i32", f.fresh("places"))]
    labels = [label for _, label in ways]
    more, many, end = f.fresh("more"), f.fresh("many"), f.fresh("placed")
    f.branch(f.i32("icmp eq", f.i32("or", few, inactive), -1), labels[0], more)
    f.label(more)
    f.branch(f.i64("icmp ult", limit, _LARGEST["i16"]), labels[1], many)
    f.label(many)  # in 16 bits from half of their range below that of the first lane on
    before = f.i32("sub", f.extract("i32", narrow, first), _LARGEST["i16"] // 2)
    near = f.v32("sub", narrow, f.splat("i32", before))
    close = f.mask_bits(f.v32("icmp ult", near, const("i32", _LARGEST["i16"])))
    f.branch(f.i32("icmp eq", f.i32("or", close, inactive), -1), labels[2], labels[3])
    for (each, label), value in zip(ways, (narrow, narrow, near, narrow), strict=True):
        f.label(label)
        stored = value if each == "i32" else f.op(f"trunc {vec('i32')} {value} to {vec(each)}")
        f.do(f"store {vec(each)} {stored}, ptr {row}, align {LINE}")
        f.jump(end)
    f.label(end)
    bits = f.op("phi i64 " + ", ".join(f"[ {BITS[each]}, %{label} ]" for each, label in ways))
    kind = f.i64("or", f.i64("shl", bits, WIDTH_BIT), 1 << PLACES_BIT | shift << SHIFT_BIT)
    lines = f.i64("udiv", bits, LINE * 8 // 32)
    end_pattern(f, store, used, f.i64("or", f.widen("%mask"), kind), lines)
    return used
