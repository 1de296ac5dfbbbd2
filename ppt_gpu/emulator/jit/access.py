"""Loads and stores of a warp, as helper functions: bounds and alignment checked, addresses recorded, then data moved.

Four ways to move the data, fastest first: every lane at one address, lanes side by side, anywhere in one buffer, and
lane by lane. A "site" caches for each static access the buffer that it hit last: start, number of valid start
offsets, host address of the start; then the instruction's index for faults; and the pattern that it recorded last.

Accesses are recorded (`ppt_gpu.emulator.trace.record_words`). A site tells by its key whether its pattern is that of
last time: mask in bits 0-31, RECORD_* in 32-39 and above log2 of the stride (RECORD_ROW). For other distances the site
has those of its last access, of 64 (RECORD_LISTED) or 32 bits (RECORD_NARROW); where these are always new, they are not
looked up for some time (`ppt_gpu.emulator.jit.places`).
"""

from __future__ import annotations

from ppt_gpu.emulator.jit.places import BLIND, DOUBLINGS, STREAK, append_places, fits_places
from ppt_gpu.emulator.llvm.text import Helper, vec
from ppt_gpu.emulator.memory.memory import WINDOWS
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.emulator.trace.pattern_store import PatternWord
from ppt_gpu.emulator.trace.record_words import CACHE_LINE, SPACE_BITS, append_record, fetch

#: not 0: the key of a site that recorded nothing
RECORD_NONE, RECORD_SAME, RECORD_ROW, RECORD_LISTED, RECORD_NARROW = range(1, 6)
#: space -> index into ppt_gpu.spec.gpu.MEMORY_SPACES
SPACE_INDEX = {"global": 0, "generic": 0, "generic-cluster": 0, "shared": 1, "cluster": 1, "local": 2, "const": 3}
#: words of a site: start, count, host address, instruction, number of its last pattern << SPACE_BITS, its key; new
#: patterns one after another, and accesses that will not be looked up; from SITE_OFFSETS on 32 distances
SITE_START, SITE_COUNT, SITE_HOST, SITE_PC, SITE_PATTERN, SITE_KEY, SITE_STREAK, SITE_BLIND = range(8)
SITE_OFFSETS, SITE_WORDS = 8, 40
WIDE = ("global", "const", "generic", "generic-cluster")  # with 64-bit addresses; the others are offsets of 32 bits
#: spaces whose lanes may lie in different objects: each group of lanes becomes an access of its own (`memory.split`)
SPLIT_SPACES = ("generic", "generic-cluster", "cluster")


def address_element(space: str) -> str:
    return "i64" if space in WIDE else "i32"


def set_site(f: Helper, key: str, mask: str, element: str, away: str) -> None:
    """Give the site the pattern of these distances and lanes, and its key."""
    number = f.helper(("pattern", element), "i64", ("ptr", "%w"), ("i32", mask), (vec(element), away))
    f.set_field("%site", SITE_PATTERN, f.i64("shl", number, SPACE_BITS))
    f.set_field("%site", SITE_KEY, key)


class Access(Helper):
    """Common parts of the helpers of one space. `element` is the data type of a lane, `count` elements of a vector.

    A lane's access covers element size x count bytes and is aligned to that. Loads of one element return it; vectors
    go through `%data`, `count` rows of 32 elements.
    """

    def __init__(self, result: str, space: str, element: str, count: int, traced: bool, *more: str) -> None:
        self.address = address_element(space)
        parameters = ("ptr %w", "ptr %site", "i32 %mask", f"{vec(self.address)} %a", *more)
        super().__init__(result, *parameters)
        self.space, self.element, self.length = space, element, count
        self.bytes = int(element[1:]) // 8
        self.size = self.bytes * count
        self.shift = self.size.bit_length() - 1
        self.part_traced = traced
        self.out = "%data" if count > 1 else ""  # where the rows go that it returns
        self.traced = traced and space != "param"

    def start_all(self) -> None:
        """First active lane and its address; a warp without active lanes is recorded and returns."""
        self.label("entry")
        self.flags = self.mask_flags("%mask")
        self.branch(self.i32("icmp ne", "%mask", 0), "active", "nobody")
        self.label("nobody")
        self.record(RECORD_NONE, "0")
        self.empty()
        self.label("active")
        self.first = self.first_lane("%mask")
        self.a0 = self.extract(self.address, "%a", self.first)
        self.inactive = self.i32("xor", "%mask", -1)

    def wide(self, value: str) -> str:
        """A scalar address as i64."""
        return value if self.address == "i64" else self.widen(value)

    def all_equal(self, left: str, right: str, predicate: str = "eq") -> str:
        """i1: does the comparison hold in every active lane?"""
        same = self.mask_bits(self.op(f"icmp {predicate} {vec(self.address)} {left}, {right}"))
        return self.i32("icmp eq", self.i32("or", same, self.inactive), -1)

    def record(self, kind: int, base: str, shift: int = -1) -> None:
        """Append an access whose distances follow from `kind`."""
        if not self.traced:
            return
        key = self._key(kind, self.shift if shift < 0 else shift)
        again = self.i64("icmp eq", self.field("%site", SITE_KEY), key)
        new, end = self.fresh("new"), self.fresh("known")
        self.branch(again, end, new)
        self.label(new)
        self.helper(("regular_pattern",), "void", ("ptr", "%w"), ("ptr", "%site"), ("i64", key))
        self.jump(end)
        self.label(end)
        self._append(base)

    def record_nobody(self) -> None:
        """Append an access without active lanes."""
        if self.traced:
            space = str(SPACE_INDEX[self.space])
            self.helper(("record_nobody",), "void", ("ptr", "%w"), ("i32", space))

    def _key(self, kind: int, shift: int = 0) -> str:
        return self.i64("or", self.widen("%mask"), kind << 32 | shift << 40)

    def _append(self, base: str) -> None:
        """Append an access with the pattern of the site."""
        header = self.field("%site", SITE_PATTERN, "i32")
        space = SPACE_INDEX[self.space]
        append_record(self, self.i32("or", header, space) if space else header, base)

    def record_addresses(self, element: str, base: str, addresses: str) -> None:
        """Append an access; its pattern is looked up unless it is that of the site's last access.

        `base` is the first active lane's address, `addresses` a <32 x element>, both of width `element`.
        """
        if not self.traced:
            return
        kind = vec(element)
        away = self.op(f"sub {kind} {addresses}, {self.splat(element, base)}")
        away = self.op(f"select {vec('i1')} {self.flags}, {kind} {away}, {kind} zeroinitializer")
        key = self._key(RECORD_LISTED if element == "i64" else RECORD_NARROW)
        last = self.offset_pointer("%site", 8 * SITE_OFFSETS)
        same = self.mask_bits(self.op(f"icmp eq {kind} {away}, {self.op(f'load {kind}, ptr {last}, align 64')}"))
        known = self.i64("icmp eq", self.field("%site", SITE_KEY), key)
        new, end = self.fresh("new"), self.fresh("known")
        self.branch(self.op(f"and i1 {self.i32('icmp eq', same, -1)}, {known}"), end, new)
        self.label(new)
        self.do(f"store {kind} {away}, ptr {last}, align 64")
        self._look_up(key, element, away)
        self.jump(end)
        self.label(end)
        self._append(base if element == "i64" else self.widen(base))

    def _look_up(self, key: str, element: str, away: str) -> None:
        """Give the site the pattern of these distances, and see whether it is one of many new ones."""
        store = self.field("%w", Slot.PATTERNS, "ptr")
        before = self.field(store, PatternWord.USED)
        set_site(self, key, "%mask", element, away)
        is_new = self.i64("icmp ne", self.field(store, PatternWord.USED), before)
        streak = self.field("%site", SITE_STREAK)
        longer, half = self.i64("add", streak, 1), self.i64("lshr", streak, 1)
        streak = self.op(f"select i1 {is_new}, i64 {longer}, i64 {half}")
        most = STREAK + DOUBLINGS
        long = self.i64("icmp ugt", streak, most)
        streak = self.op(f"select i1 {long}, i64 {most}, i64 {streak}")
        self.set_field("%site", SITE_STREAK, streak)
        blind = self.i64("shl", str(BLIND), self.i64("sub", streak, STREAK))
        always = self.i64("icmp uge", streak, STREAK)
        self.set_field("%site", SITE_BLIND, self.op(f"select i1 {always}, i64 {blind}, i64 0"))

    def record_places(self, base: str, places: str, limit: str) -> None:
        """As `record_addresses` of %a, for lanes whose `places`, elements of the access from one address on, are known.

        Those of active lanes are at most `limit` (an i64).
        """
        if not self.traced:
            return
        blind = self.field("%site", SITE_BLIND)
        unseen = self.i64("icmp ne", blind, 0)
        if self.address == "i64":
            unseen = self.op(f"and i1 {unseen}, {fits_places(self, limit)}")
        new, known, end = self.fresh("unseen"), self.fresh("look"), self.fresh("recorded")
        self.branch(unseen, new, known)
        self.label(new)
        self.set_field("%site", SITE_BLIND, self.i64("sub", blind, 1))
        number = append_places(self, self.address, places, limit, self.shift, self.first, self.inactive)
        header = self.op(f"trunc i64 {self.i64('shl', number, SPACE_BITS)} to i32")
        append_record(self, self.i32("or", header, SPACE_INDEX[self.space]), self.wide(base))
        self.jump(end)
        self.label(known)
        self.record_addresses(self.address, base, "%a")
        self.jump(end)
        self.label(end)

    def fault(self, code: str, lane: str, address: str) -> None:
        """Report a fault at the address (i64) of a lane, as a generic address."""
        window = WINDOWS.get("shared" if self.space == "cluster" else self.space)
        if window:
            address = self.i64("add", address, window)
        pc = self.field("%site", SITE_PC)
        self.helper(("fault",), "void", ("ptr", "%w"), ("i64", code), ("i64", pc), ("i32", lane), ("i64", address))

    def refuse(self, code: Fault, mask: str) -> str:
        """Report a fault at the lowest lane of `mask`, which is not 0. Returns what it loads, zeros."""
        lane = self.first_lane(mask)
        self.fault(str(int(code)), lane, self.wide(self.extract(self.address, "%a", lane)))
        return "" if self.result == "void" else "zeroinitializer"

    def row_of(self, index: int) -> str:
        return self.op(f"getelementptr {vec(self.element)}, ptr %data, i64 {index}")

    def pointers(self, host: str, offsets: str) -> str:
        """Host pointers of the lanes from a host address and <32 x address> offsets (below 2^31 where 32-bit)."""
        return self.op(f"getelementptr i8, ptr {self.as_pointer(host)}, {vec(self.address)} {offsets}")

    def element_pointers(self, pointers: str, index: int) -> str:
        if index == 0:
            return pointers
        return self.op(f"getelementptr i8, {vec('ptr')} {pointers}, i64 {index * self.bytes}")

    def element_pointer(self, pointer: str, index: int) -> str:
        return self.offset_pointer(pointer, index * self.bytes)

    # data movement; overridden by stores ------------------------------------------------------------------------

    def done(self, value: str) -> None:
        self.do(f"ret {vec(self.element)} {value}" if self.length == 1 else "ret void")

    def finish(self, rows: list[str]) -> None:
        """Return the loaded rows."""
        for index, row in enumerate(rows if self.out else ()):
            at = self.op(f"getelementptr {vec(self.element)}, ptr {self.out}, i64 {index}")
            self.do(f"store {vec(self.element)} {row}, ptr {at}, align 8")
        self.done(rows[0])

    def empty(self) -> None:
        """Nothing moved: zeros for loads."""
        self.finish(["zeroinitializer"] * self.length)

    def move_same(self, pointer: str) -> None:
        rows = []
        for index in range(self.length):
            at = self.element_pointer(pointer, index)
            rows.append(self.splat(self.element, self.op(f"load {self.element}, ptr {at}, align 1")))
        self.finish(rows)

    def move_row(self, pointer: str) -> None:
        kind, s = vec(self.element), self.element
        if self.space == "global":
            self._fetch_next_row(pointer)
        value = self.call(
            kind, f"llvm.masked.load.v32{s}.p0",
            ("ptr", pointer), ("i32", "1"), (vec("i1"), self.flags), (kind, "zeroinitializer"),
        )  # fmt: skip
        self.finish([value])

    def _fetch_next_row(self, pointer: str) -> None:
        """Ask for the row behind this one: a next warp often loads it, long before its turn to wait for memory."""
        row = 32 * self.bytes
        for line in range(0, row, CACHE_LINE)[:2]:
            fetch(self, pointer, row + line, write=False)

    def move_scattered(self, pointers: str) -> None:
        kind, s = vec(self.element), self.element
        self.finish([
            self.call(
                kind, f"llvm.masked.gather.v32{s}.v32p0",
                (vec("ptr"), self.element_pointers(pointers, index)), ("i32", "1"),
                (vec("i1"), self.flags), (kind, "zeroinitializer"),
            )
            for index in range(self.length)
        ])  # fmt: skip

    def move_lane(self, pointer: str, lane: str) -> None:
        """One lane: into its place of the rows at %lanes."""
        for index in range(self.length):
            value = self.op(f"load {self.element}, ptr {self.element_pointer(pointer, index)}, align 1")
            at = self.op(f"getelementptr {self.element}, ptr %lanes, i64 {self.lane_offset(lane, index)}")
            self.do(f"store {self.element} {value}, ptr {at}, align 1")

    def lane_offset(self, lane: str, index: int) -> str:
        return self.i64("add", self.widen(lane), 32 * index)

    def reserve(self, name: str, kind: str) -> None:
        """Room for a value of type `kind` at the pointer `name`; in the entry, where that costs nothing."""
        self.lines.insert(1, f"  {name} = alloca {kind}, align 64")

    def before_lanes(self) -> None:
        self.reserve("%lanes", f"[{self.length} x {vec(self.element)}]")
        self.do(f"store [{self.length} x {vec(self.element)}] zeroinitializer, ptr %lanes, align 64")

    def after_lanes(self) -> None:
        rows = []
        for index in range(self.length):
            at = self.op(f"getelementptr {vec(self.element)}, ptr %lanes, i64 {index}")
            rows.append(self.op(f"load {vec(self.element)}, ptr {at}, align 64"))
        self.finish(rows)
