"""Patterns of accesses in compiled code: looked up among those of the run, and added where they are new.

A site (`ppt_gpu.exec.jit_access`) remembers the pattern of its last access, so that what is here runs only where an
instruction does something else than last time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from ppt_gpu.exec.digest import FACTORS, MIX
from ppt_gpu.exec.jit_access import RECORD_ROW, SITE_KEY, SITE_PATTERN
from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.jit_library import Helper, helper_address, writes
from ppt_gpu.exec.jit_records import SPACE_BITS, append_record
from ppt_gpu.exec.jit_text import lanes, vec
from ppt_gpu.exec.pattern_store import PatternWord

_ROW = vec("i64")


@writes("pattern")
def write_pattern() -> Helper:
    """The number of the pattern with these distances and lanes, which is added if it is new."""
    f = Helper("i64", "ptr %w", "i32 %mask", f"{_ROW} %away")
    f.label("entry")
    store = f.field("%w", Slot.PATTERNS, "ptr")
    last, before = f.field(store, PatternWord.LAST), f.field(store, PatternWord.BEFORE)
    f.branch(_is(f, store, last), "again", "other")
    f.label("again")
    f.do(f"ret i64 {last}")
    f.label("other")
    f.set_field(store, PatternWord.BEFORE, last)
    f.branch(_is(f, store, before), "returned", "search")
    f.label("returned")
    f.set_field(store, PatternWord.LAST, before)
    f.do(f"ret i64 {before}")
    f.label("search")
    tag, end = _hash(f), f.field(store, PatternWord.ENTRIES)
    first = f.i64("and", tag, end)
    f.jump("probe")
    f.label("probe")
    f.do(f"%at = phi i64 [ {first}, %search ], [ %next, %another ]")
    place = _element(f, store, PatternWord.TABLE, "i64", "%at")
    word = f.op(f"load i64, ptr {place}, align 8")
    f.branch(f.i64("icmp eq", word, 0), "new", "taken")
    f.label("taken")
    f.branch(f.i64("icmp eq", f.i64("lshr", word, 32), tag), "compare", "another")
    f.label("compare")
    number = f.i64("sub", f.i64("and", word, 0xFFFFFFFF), 1)
    f.branch(_is(f, store, number), "found", "another")
    f.label("found")
    f.set_field(store, PatternWord.LAST, number)
    f.do(f"ret i64 {number}")
    f.label("another")
    f.do(f"%next = and i64 {f.i64('add', '%at', 1)}, {end}")
    f.jump("probe")
    f.label("new")
    _add(f, store, place, tag)
    return f


def _hash(f: Helper) -> str:
    """31 bits (an i64) of the hash of the pattern in %away and %mask: those of the table (`pattern_store`)."""
    factors = f"<{', '.join(f'i64 {factor}' for factor in FACTORS.tolist())}>"
    total = f.call("i64", "llvm.vector.reduce.add.v32i64", (_ROW, f.v64("mul", "%away", factors)))
    code = f.i64("add", total, f.i64("mul", f.widen("%mask"), MIX))
    code = f.i64("mul", f.i64("xor", code, f.i64("lshr", code, 32)), MIX)
    return f.i64("lshr", code, 33)


def _element(f: Helper, store: str, word: PatternWord, kind: str, index: str) -> str:
    """A pointer to an element of one of the store's arrays."""
    return f.op(f"getelementptr {kind}, ptr {f.field(store, word, 'ptr')}, i64 {index}")


def _is(f: Helper, store: str, number: str) -> str:
    """i1: is the pattern with this number the one in %away and %mask?"""
    known = f.op(f"load {_ROW}, ptr {_element(f, store, PatternWord.ROWS, _ROW, number)}, align 64")
    lanes_known = f.op(f"load i32, ptr {_element(f, store, PatternWord.MASKS, 'i32', number)}, align 4")
    same = f.mask_bits(f.op(f"icmp eq {_ROW} {known}, %away"))
    return f.op(f"and i1 {f.i32('icmp eq', same, -1)}, {f.i32('icmp eq', lanes_known, '%mask')}")


def _add(f: Helper, store: str, place: str, tag: str) -> None:
    """Append the pattern, with its entry at a place of the table, and return its number."""
    used = f.field(store, PatternWord.USED)
    f.do(f"store {_ROW} %away, ptr {_element(f, store, PatternWord.ROWS, _ROW, used)}, align 64")
    f.do(f"store i32 %mask, ptr {_element(f, store, PatternWord.MASKS, 'i32', used)}, align 4")
    more = f.i64("add", used, 1)
    f.do(f"store i64 {f.i64('or', f.i64('shl', tag, 32), more)}, ptr {place}, align 8")
    f.set_field(store, PatternWord.USED, more)
    f.set_field(store, PatternWord.LAST, used)
    f.branch(f.i64("icmp ult", more, f.field(store, PatternWord.FULL)), "done", "full")
    f.label("full")  # the next segment does not begin: its path has no room
    f.set_field("%w", Slot.PATH_END, "0")
    f.jump("done")
    f.label("done")
    f.do(f"ret i64 {used}")


@writes("site_pattern")
def write_site_pattern() -> Helper:
    """Give the site the pattern of these distances, and its key."""
    f = Helper("void", "ptr %w", "ptr %site", "i64 %key", f"{vec('i64')} %away")
    f.label("entry")
    mask = f.op("trunc i64 %key to i32")
    number = f.helper(("pattern",), "i64", ("ptr", "%w"), ("i32", mask), (vec("i64"), "%away"))
    f.set_field("%site", SITE_PATTERN, f.i64("shl", number, SPACE_BITS))
    f.set_field("%site", SITE_KEY, "%key")
    f.do("ret void")
    return f


@writes("regular_pattern")
def write_regular_pattern() -> Helper:
    """Give the site the pattern that a key stands for: side by side, all at one place, or nobody."""
    f = Helper("void", "ptr %w", "ptr %site", "i64 %key")
    f.label("entry")
    mask = f.op("trunc i64 %key to i32")
    kind = f.i64("and", f.i64("lshr", "%key", 32), 0xFF)
    shift = f.i64("lshr", "%key", 40)
    first = f.widen(f.call("i32", "llvm.cttz.i32", ("i32", mask), ("i1", "false")))
    apart = f.v64("shl", f.v64("sub", lanes("i64", 1), f.splat("i64", first)), f.splat("i64", shift))
    row = f.mask_bits(f.op(f"icmp eq {vec('i64')} {f.splat('i64', kind)}, {f.splat('i64', str(RECORD_ROW))}"))
    flags = f.mask_flags(f.i32("and", row, mask))
    away = f.op(f"select {vec('i1')} {flags}, {vec('i64')} {apart}, {vec('i64')} zeroinitializer")
    where = (("ptr", "%w"), ("ptr", "%site"), ("i64", "%key"))
    f.helper(("site_pattern",), "void", *where, (vec("i64"), away))
    f.do("ret void")
    return f


@writes("record_nobody")
def write_record_nobody() -> Helper:
    """Append an access without active lanes; the site keeps its pattern."""
    f = Helper("void", "ptr %w", "i32 %space")
    f.label("entry")
    number = f.helper(("pattern",), "i64", ("ptr", "%w"), ("i32", "0"), (vec("i64"), "zeroinitializer"))
    narrow = f.op(f"trunc i64 {f.i64('shl', number, SPACE_BITS)} to i32")
    append_record(f, f.i32("or", narrow, "%space"), "0")
    f.do("ret void")
    return f


@writes("listed_pattern")
def write_listed_pattern() -> Helper:
    """As `pattern`, for the 32 distances at a pointer: for callers that are not compiled here."""
    f = Helper("i64", "ptr %w", "i32 %mask", "ptr %distances")
    f.label("entry")
    away = f.op(f"load {vec('i64')}, ptr %distances, align 8")
    f.do(f"ret i64 {f.helper(('pattern',), 'i64', ('ptr', '%w'), ('i32', '%mask'), (vec('i64'), away))}")
    return f


@lru_cache(maxsize=1)
def listed_pattern() -> Callable[[int, int, int], int]:
    """The number of a pattern, by a warp's row, its mask and the host address of its 32 distances."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64)
    return kind(helper_address(("listed_pattern",)))
