"""The address side of loads and stores: where an access goes in each state space, and whether it may go there."""

from __future__ import annotations

from ppt_gpu.exec.jit_access import (
    RECORD_ROW,
    RECORD_SAME,
    SITE_COUNT,
    SITE_HOST,
    SITE_PC,
    SITE_START,
    WINDOWS,
    Access,
    address_element,
)
from ppt_gpu.exec.jit_context import Fault, Slot
from ppt_gpu.exec.jit_library import Helper, writes
from ppt_gpu.exec.jit_text import const, lanes, vec

#: space -> slots of its host pointer and of its size
FIXED = {"shared": (Slot.SHARED, Slot.SHARED_BYTES), "param": (Slot.PARAM, Slot.PARAM_BYTES)}


class Store(Access):
    """An access that writes `%data0` (or the rows behind `%data`)."""

    def value(self, index: int) -> str:
        if self.length == 1:
            return "%data0"
        return self.op(f"load {vec(self.element)}, ptr {self.row_of(index)}, align 8")

    def finish(self, rows: list[str]) -> None:
        self.do("ret void")

    def move_same(self, pointer: str) -> None:
        """Every lane writes one place: the highest active lane wins."""
        last = self.last_lane("%mask")
        for index in range(self.length):
            value = self.extract(self.element, self.value(index), last)
            self.do(f"store {self.element} {value}, ptr {self.element_pointer(pointer, index)}, align 1")
        self.finish([])

    def move_row(self, pointer: str) -> None:
        self.call(
            "void", f"llvm.masked.store.v32{self.element}.p0",
            (vec(self.element), self.value(0)), ("ptr", pointer), ("i32", "1"), (vec("i1"), self.flags),
        )  # fmt: skip
        self.finish([])

    def move_scattered(self, pointers: str) -> None:
        for index in range(self.length):
            self.call(
                "void", f"llvm.masked.scatter.v32{self.element}.v32p0",
                (vec(self.element), self.value(index)), (vec("ptr"), self.element_pointers(pointers, index)),
                ("i32", "1"), (vec("i1"), self.flags),
            )  # fmt: skip
        self.finish([])

    def move_lane(self, pointer: str, lane: str) -> None:
        for index in range(self.length):
            value = self.extract(self.element, self.value(index), lane)
            self.do(f"store {self.element} {value}, ptr {self.element_pointer(pointer, index)}, align 1")

    def before_lanes(self) -> None:
        pass

    def after_lanes(self) -> None:
        self.finish([])


def _access(kind: str, space: str, element: str, count: int, traced: bool) -> Access:
    if kind == "store":
        data = f"{vec(element)} %data0" if count == 1 else "ptr %data"
        return Store("void", space, element, count, traced, data)
    if count == 1:
        return Access(vec(element), space, element, count, traced)
    return Access("void", space, element, count, traced, "ptr %data")


@writes("access")
def write_access(kind: str, space: str, element: str, count: int, traced: bool) -> Helper:
    """A load or store ("load", "store") of `count` elements a lane in `space`."""
    f = _access(kind, space, element, count, traced)
    {"global": _sited, "const": _sited, "local": _local, "generic": _generic}.get(space, _fixed)(f, kind)
    return f


def _sited(f: Access, kind: str) -> None:
    """Global and const: the buffer that this instruction hit last, else a search."""
    f.start_all()
    f.branch(site_check(f, f.a0, f.size), "checked", "search")
    f.label("search")
    f.branch(find(f, f.a0, f.first, f.size), "checked", "failed")
    f.label("failed")
    f.empty()
    f.label("checked")
    start, count, host = f.field("%site", SITE_START), f.field("%site", SITE_COUNT), f.field("%site", SITE_HOST)
    offset = f.i64("sub", f.a0, start)
    _same_or_row(f, f.i64("add", host, offset), offset, count)
    offsets = f.v64("sub", "%a", f.splat("i64", start))
    f.branch(_inside(f, offsets, count), "scattered", "by_lane")
    f.label("scattered")
    f.record_addresses("i64", f.a0, "%a")
    f.move_scattered(f.pointers(host, offsets))
    f.label("by_lane")
    f.record_addresses("i64", f.a0, "%a")
    f.before_lanes()
    _each_lane(f)


def _each_lane(f: Access) -> None:
    """Move lane by lane, lowest first, each in the buffer where its own address lies."""
    f.jump("begin")
    f.label("begin")
    f.jump("loop")
    f.label("loop")
    f.do("%left = phi i32 [ %mask, %begin ], [ %rest, %moved ]")
    lane = f.first_lane("%left")
    f.do(f"%rest = and i32 %left, {f.i32('sub', '%left', 1)}")
    address = f.extract("i64", "%a", lane)
    f.branch(site_check(f, address, f.size), "move", "search2")
    f.label("search2")
    f.branch(find(f, address, lane, f.size), "move", "failed2")
    f.label("failed2")
    f.empty()
    f.label("move")
    f.move_lane(host_pointer(f, address), lane)
    f.jump("moved")
    f.label("moved")
    f.branch(f.i32("icmp eq", "%rest", 0), "finished", "loop")
    f.label("finished")
    f.after_lanes()


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


def _same_or_row(f: Access, host: str, offset: str, count: str) -> None:
    """The two fast ways, for a first lane that is in range; goes on at label %other.

    `host` is the host address of the first lane's data, `offset` its offset and `count` the number of valid offsets.
    """
    element = f.address
    same = f.all_equal("%a", f.splat(element, f.a0))
    pointer = f.as_pointer(host)
    f.branch(same, "same", "different")
    f.label("same")
    f.record(RECORD_SAME, f.wide(f.a0), shift=0)
    f.move_same(pointer)
    f.label("different")
    before = f.i32("mul", f.first, f.size)
    step = before if element == "i32" else f.widen(before)
    origin = f.op(f"sub {element} {f.a0}, {step}")
    row = f.op(f"add {vec(element)} {f.splat(element, origin)}, {lanes(element, f.size)}")
    in_row = f.all_equal("%a", row)
    span = f.i32("mul", f.i32("sub", f.last_lane("%mask"), f.first), f.size)
    end = f.i64("add", offset, f.widen(span))
    fits = f.op(f"and i1 {in_row}, {f.i64('icmp ult', end, count)}")
    f.branch(fits, "row", "other")
    f.label("row")
    f.record(RECORD_ROW, f.wide(f.a0))
    if f.length == 1:
        f.move_row(f.as_pointer(f.i64("sub", host, f.widen(before))))
    else:
        f.move_scattered(f.pointers(f.i64("sub", host, f.wide(f.a0)), "%a"))
    f.label("other")


def _inside(f: Access, offsets: str, count: str) -> str:
    """i1: is every active offset aligned and below `count` (an i64)?

    Rotating the offset right by log2(size) moves the low bits, which must be 0, to the top: one comparison for both.
    """
    element = f.address
    if f.shift:
        offsets = f.call(
            vec(element), f"llvm.fshr.v32{element}",
            (vec(element), offsets), (vec(element), offsets), (vec(element), const(element, f.shift)),
        )  # fmt: skip
    limit = f.i64("lshr", f.i64("sub", count, 1), f.shift)
    narrow = limit if element == "i64" else f.op(f"trunc i64 {limit} to i32")
    return f.all_equal(offsets, f.splat(element, narrow), "ule")


def _fixed(f: Access, kind: str) -> None:
    """Shared and param: one object from offset 0."""
    pointer_slot, size_slot = FIXED[f.space]
    f.start_all()
    count = _fixed_check(f, f.field("%w", size_slot))
    base = f.field("%w", pointer_slot)
    offset = f.wide(f.a0)
    _same_or_row(f, f.i64("add", base, offset), offset, count)
    f.branch(_inside(f, "%a", count), "scattered", "bad")
    f.label("scattered")
    f.record_addresses("i32", f.a0, "%a")
    f.move_scattered(f.pointers(base, "%a"))
    _fault_of_lanes(f, count)


def _fixed_check(f: Access, size: str) -> str:
    """Go on at %checked when the first lane is in range, else at %bad. Returns the number of valid offsets."""
    valid = f.i64("sub", size, f.size - 1)
    room = f.i64("icmp sgt", valid, 0)
    f.do(f"%count = select i1 {room}, i64 {valid}, i64 0")
    inside = f.i64("icmp ult", f.wide(f.a0), "%count")
    aligned = f.i32("icmp eq", f.i32("and", f.a0, f.size - 1), 0)
    f.branch(f.op(f"and i1 {inside}, {aligned}"), "checked", "bad")
    f.label("checked")
    return "%count"


def _fault_of_lanes(f: Access, count: str) -> None:
    """At %bad: report the lowest active lane that is out of range or misaligned."""
    f.label("bad")
    outside = f.op(f"trunc i64 {count} to i32")
    beyond = f.v32("icmp uge", "%a", f.splat("i32", outside))
    low = f.v32("and", "%a", const("i32", f.size - 1))
    odd = f.v32("icmp ne", low, "zeroinitializer")
    either = f.op(f"or {vec('i1')} {beyond}, {odd}")
    lanes_bad = f.i32("and", "%mask", f.mask_bits(either))
    lane = f.call("i32", "llvm.cttz.i32", ("i32", lanes_bad), ("i1", "false"))
    safe = f.i32("and", lane, 31)
    is_odd = f.extract("i1", odd, safe)
    code = f.op(f"select i1 {is_odd}, i64 {int(Fault.ALIGNMENT)}, i64 {int(Fault.BOUNDS)}")
    f.fault(code, safe, f.wide(f.extract("i32", "%a", safe)))
    f.empty()


def _local(f: Access, kind: str) -> None:
    """Local: each lane has its own object; host memory holds a thread's bytes together."""
    f.start_all()
    size = f.field("%w", Slot.LOCAL_BYTES)
    count = _fixed_check(f, size)
    f.branch(_inside(f, "%a", count), "inside", "bad")
    f.label("inside")
    base, trace = f.field("%w", Slot.LOCAL), f.field("%w", Slot.LOCAL_TRACE)
    private = f.v64("mul", f.splat("i64", size), lanes("i64", 1))
    offsets = f.widen_lanes("%a")
    total = f.v64("add", f.v64("add", offsets, private), f.splat("i64", base))
    pointers = f.op(f"inttoptr {vec('i64')} {total} to {vec('ptr')}")
    f.branch(f.all_equal("%a", f.splat("i32", f.a0)), "same", "different")
    f.label("same")
    own = f.i64("mul", f.widen(f.first), f.size)
    spread = f.i64("mul", f.wide(f.a0), 32)
    f.record(RECORD_ROW, f.i64("add", trace, f.i64("add", spread, own)))
    f.jump("move")
    f.label("different")
    spreads = f.v64("mul", offsets, const("i64", 32))
    shifted = f.v64("add", spreads, lanes("i64", f.size))
    addresses = f.v64("add", shifted, f.splat("i64", trace))
    f.record_addresses("i64", f.extract("i64", addresses, f.first), addresses)
    f.jump("move")
    f.label("move")
    f.move_scattered(pointers)
    _fault_of_lanes(f, count)


def window_masks(f: Helper, mask: str) -> tuple[str, str]:
    """The active lanes whose generic address `%a` lies in the shared and in the local window."""
    top = f.v64("lshr", "%a", const("i64", 32))
    masks = []
    for space in ("shared", "local"):
        flags = f.v64("icmp eq", top, const("i64", WINDOWS[space] >> 32))
        masks.append(f.i32("and", mask, f.mask_bits(flags)))
    return masks[0], masks[1]


def _generic(f: Access, kind: str) -> None:
    """Generic: all active lanes in one window, then as in that space."""
    f.start_all()
    offsets = f.op(f"trunc {vec('i64')} %a to {vec('i32')}")
    dispatch(f)
    for space in ("shared", "local", "global"):
        f.label(f"in_{space}")
        address = "%a" if space == "global" else offsets
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", "%mask"), (vec(address_element(space)), address)]
        if kind == "store":
            arguments.append((vec(f.element), "%data0") if f.length == 1 else ("ptr", "%data"))
        elif f.length > 1:
            arguments.append(("ptr", "%data"))
        key = ("access", kind, space, f.element, f.length, f.generic_traced)
        value = f.helper(key, f.result, *arguments)
        f.do(f"ret {f.result} {value}" if value else "ret void")
    f.label("mixed")
    f.fault(str(int(Fault.MIXED)), f.first, f.a0)
    f.empty()


def dispatch(f: Helper) -> None:
    """Branch to %in_shared, %in_local, %in_global or %mixed by the windows of the active lanes."""
    shared, local = window_masks(f, "%mask")
    f.branch(f.i32("icmp eq", shared, "%mask"), "in_shared", "not_shared")
    f.label("not_shared")
    f.branch(f.i32("icmp eq", local, "%mask"), "in_local", "not_local")
    f.label("not_local")
    f.branch(f.i32("icmp eq", f.i32("or", shared, local), 0), "in_global", "mixed")


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
    over = f.i64("add", "%address", "%size")
    f.branch(f.i64("icmp ule", over, end), "inside", "outside")
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
