"""Patterns of accesses in compiled code: looked up among those that came before, and added where they are new.

A site (`ppt_gpu.emulator.jit.access`) remembers the pattern of its last access, so that what is here runs only
where an instruction does something else than last time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from ppt_gpu.emulator.jit.access import RECORD_ROW, set_site
from ppt_gpu.emulator.jit.places import end_pattern, pattern_element
from ppt_gpu.emulator.llvm.library import helper_address, writes
from ppt_gpu.emulator.llvm.text import BITS, Helper, lanes, vec
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.emulator.trace.digest import FACTORS, MIX
from ppt_gpu.emulator.trace.pattern_store import ENTRIES, LINE, WIDTH_BIT, PatternWord
from ppt_gpu.emulator.trace.record_words import AHEAD, CACHE_LINE, SPACE_BITS, append_record, fetch

_HALF = {"i64": "i32", "i32": "i16"}


@writes("pattern")
def write_pattern(element: str) -> Helper:
    """The number (an i64) of the pattern with these distances and lanes, which is added if it is not found."""
    f = Helper("i64", "ptr %w", "i32 %mask", f"{vec(element)} %away")
    f.label("entry")
    if element in _HALF:
        half = _HALF[element]
        narrow = f.op(f"trunc {vec(element)} %away to {vec(half)}")
        again = f.op(f"sext {vec(half)} {narrow} to {vec(element)}")
        fits = f.mask_bits(f.op(f"icmp eq {vec(element)} {again}, %away"))
        f.branch(f.i32("icmp eq", fits, -1), "narrow", "wide")
        f.label("narrow")
        f.do(f"ret i64 {f.helper(('pattern', half), 'i64', ('ptr', '%w'), ('i32', '%mask'), (vec(half), narrow))}")
        f.label("wide")
    _look_up(f, element)
    return f


def _look_up(f: Helper, element: str) -> None:
    """Return the number of the pattern in rows of this width."""
    store = f.field("%w", Slot.PATTERNS, "ptr")
    word = f.i64("or", f.widen("%mask"), BITS[element] << WIDTH_BIT)
    tag = _hash(f, element, word)
    place = pattern_element(f, store, PatternWord.TABLE, 8, f.i64("and", tag, ENTRIES - 1))
    entry = f.op(f"load i64, ptr {place}, align 8")
    f.branch(f.i64("icmp eq", f.i64("lshr", entry, 32), tag), "compare", "new")
    f.label("compare")
    number = f.i64("and", entry, 0xFFFFFFFF)
    known = f.op(f"load i64, ptr {pattern_element(f, store, PatternWord.MASKS, 8, number)}, align 8")
    f.branch(f.i64("icmp eq", known, word), "rows", "new")
    f.label("rows")
    row = f.op(f"load {vec(element)}, ptr {pattern_element(f, store, PatternWord.ROWS, LINE, number)}, align {LINE}")
    same = f.mask_bits(f.op(f"icmp eq {vec(element)} {row}, %away"))
    f.branch(f.i32("icmp eq", same, -1), "found", "new")
    f.label("found")
    f.do(f"ret i64 {number}")
    f.label("new")
    _add(f, store, element, word, place, tag)


def _hash(f: Helper, element: str, word: str) -> str:
    """31 bits (an i64) of the hash of the pattern in %away and its word."""
    count = 32 * BITS[element] // 64
    kind = f"<{count} x i64>"
    factors = f"<{', '.join(f'i64 {factor}' for factor in FACTORS[:count].tolist())}>"
    products = f.op(f"mul {kind} {f.op(f'bitcast {vec(element)} %away to {kind}')}, {factors}")
    total = f.call("i64", f"llvm.vector.reduce.add.v{count}i64", (kind, products))
    code = f.i64("add", total, f.i64("mul", word, MIX))
    code = f.i64("mul", f.i64("xor", code, f.i64("lshr", code, 32)), MIX)
    return f.i64("lshr", code, 33)


def _add(f: Helper, store: str, element: str, word: str, place: str, tag: str) -> None:
    """Append the pattern, with its entry at a place of the table, and return its number."""
    used = f.field(store, PatternWord.USED)
    row = pattern_element(f, store, PatternWord.ROWS, LINE, used)
    f.do(f"store {vec(element)} %away, ptr {row}, align {LINE}")
    f.do(f"store i64 {f.i64('or', f.i64('shl', tag, 32), used)}, ptr {place}, align 8")
    size = 32 * BITS[element] // 8
    for line in range(0, size, CACHE_LINE):
        fetch(f, row, 2 * AHEAD + line)
    end_pattern(f, store, used, word, str(size // LINE))
    f.do(f"ret i64 {used}")


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
    set_site(f, "%key", mask, "i64", away)
    f.do("ret void")
    return f


@writes("record_nobody")
def write_record_nobody() -> Helper:
    """Append an access without active lanes; the site keeps its pattern."""
    f = Helper("void", "ptr %w", "i32 %space")
    f.label("entry")
    zeros = (vec("i16"), "zeroinitializer")
    number = f.helper(("pattern", "i16"), "i64", ("ptr", "%w"), ("i32", "0"), zeros)
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
    f.do(f"ret i64 {f.helper(('pattern', 'i64'), 'i64', ('ptr', '%w'), ('i32', '%mask'), (vec('i64'), away))}")
    return f


@lru_cache(maxsize=1)
def listed_pattern() -> Callable[[int, int, int], int]:
    """The number of a pattern, by a warp's row, its mask and the host address of its 32 distances."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64)
    return kind(helper_address(("listed_pattern",)))
