"""The address side of loads and stores: where an access goes in each state space, and whether it may go there."""

from __future__ import annotations

from ppt_gpu.emulator.jit.access import (
    RECORD_ROW,
    RECORD_SAME,
    SITE_COUNT,
    SITE_HOST,
    SITE_START,
    SPLIT_SPACES,
    Access,
    address_element,
)
from ppt_gpu.emulator.jit.memory.ranges import find, host_pointer, site_check
from ppt_gpu.emulator.jit.memory.split import Part, split
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const, lanes, vec
from ppt_gpu.emulator.memory.warp_context import Fault, Slot

#: kind of access -> that which is checked and recorded, but moves no data
PLACES = {"load": "load place", "store": "store place"}
#: space -> slots of its host pointer and of its size
FIXED = {"shared": (Slot.SHARED, Slot.SHARED_BYTES), "param": (Slot.PARAM, Slot.PARAM_BYTES)}


class Store(Access):
    """An access that writes `%data0` (or the rows behind `%data`)."""

    def __init__(self, result: str, space: str, element: str, count: int, traced: bool, *more: str) -> None:
        super().__init__(result, space, element, count, traced, *more)
        self.out = ""

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


class Place(Access):
    """An access that moves no data: it is checked and recorded."""

    def __init__(self, space: str, element: str, count: int, traced: bool) -> None:
        super().__init__("void", space, element, count, traced)
        self.out = ""

    def finish(self, rows: list[str]) -> None:
        self.do("ret void")

    def move_same(self, pointer: str) -> None:
        self.finish([])

    def move_row(self, pointer: str) -> None:
        self.finish([])

    def move_scattered(self, pointers: str) -> None:
        self.finish([])

    def move_lane(self, pointer: str, lane: str) -> None:
        pass

    def before_lanes(self) -> None:
        pass

    def after_lanes(self) -> None:
        self.finish([])


def _access(kind: str, space: str, element: str, count: int, traced: bool) -> Access:
    if kind in PLACES.values():
        return Place(space, element, count, traced)
    if kind == "store":
        data = f"{vec(element)} %data0" if count == 1 else "ptr %data"
        return Store("void", space, element, count, traced, data)
    if count == 1:
        return Access(vec(element), space, element, count, traced)
    return Access("void", space, element, count, traced, "ptr %data")


@writes("access")
def write_access(kind: str, space: str, element: str, count: int, traced: bool) -> Helper:
    """A load or store ("load", "store") of `count` elements a lane in `space`; or only its place (`PLACES`)."""
    f = _access(kind, space, element, count, traced)
    if space in SPLIT_SPACES:
        split(f, _parts(f, kind))
    else:
        {"global": _sited, "const": _sited, "local": _local}.get(space, _fixed)(f)
    return f


def _parts(f: Access, kind: str) -> Part:
    """Writes the access of some lanes in one space."""

    def part(space: str, mask: str, addresses: str, out: str) -> str:
        if space == "param" and kind in ("store", PLACES["store"]):
            return f.refuse(Fault.SPACE, mask)
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", mask), (vec(address_element(space)), addresses)]
        if kind == "store":
            arguments.append((vec(f.element), "%data0") if f.length == 1 else ("ptr", "%data"))
        elif kind == "load" and f.length > 1:
            arguments.append(("ptr", out))
        return f.helper(("access", kind, space, f.element, f.length, f.part_traced), f.result, *arguments)

    return part


def to_buffer(f: Access) -> None:
    """Go on where the site holds the buffer of the first lane's address; nothing is done where there is none."""
    f.branch(site_check(f, f.a0, f.size), "checked", "search")
    f.label("search")
    f.branch(find(f, f.a0, f.first, f.size), "checked", "failed")
    f.label("failed")
    f.empty()
    f.label("checked")


def _sited(f: Access) -> None:
    """Global and const: the buffer that this instruction hit last, else a search."""
    f.start_all()
    to_buffer(f)
    start, count, host = f.field("%site", SITE_START), f.field("%site", SITE_COUNT), f.field("%site", SITE_HOST)
    offset = f.i64("sub", f.a0, start)
    _same_or_row(f, f.i64("add", host, offset), offset, count)
    offsets = f.v64("sub", "%a", f.splat("i64", start))
    inside, *places = places_inside(f, offsets, count)
    f.branch(inside, "scattered", "by_lane")
    f.label("scattered")
    f.record_places(f.a0, *places)
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


def places_inside(f: Access, offsets: str, count: str) -> tuple[str, str, str]:
    """i1: is every active offset aligned and below `count` (an i64)? Then with the places of lanes, and the last one.

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
    return f.all_equal(offsets, f.splat(element, narrow), "ule"), offsets, limit


def all_inside(f: Access, offsets: str, count: str) -> str:
    """As `places_inside`, without the places."""
    return places_inside(f, offsets, count)[0]


def _fixed(f: Access) -> None:
    """Shared and param: one object from offset 0."""
    pointer_slot, size_slot = FIXED[f.space]
    f.start_all()
    count = fixed_check(f, f.field("%w", size_slot))
    base = f.field("%w", pointer_slot)
    offset = f.wide(f.a0)
    _same_or_row(f, f.i64("add", base, offset), offset, count)
    inside, *places = places_inside(f, "%a", count)
    f.branch(inside, "scattered", "bad")
    f.label("scattered")
    f.record_places(f.a0, *places)
    f.move_scattered(f.pointers(base, "%a"))
    fault_of_lanes(f, count)


def fixed_check(f: Access, size: str) -> str:
    """Go on at %checked when the first lane is in range, else at %bad. Returns the number of valid offsets."""
    valid = f.i64("sub", size, f.size - 1)
    room = f.i64("icmp sgt", valid, 0)
    f.do(f"%count = select i1 {room}, i64 {valid}, i64 0")
    inside = f.i64("icmp ult", f.wide(f.a0), "%count")
    aligned = f.i32("icmp eq", f.i32("and", f.a0, f.size - 1), 0)
    f.branch(f.op(f"and i1 {inside}, {aligned}"), "checked", "bad")
    f.label("checked")
    return "%count"


def fault_of_lanes(f: Access, count: str) -> None:
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


def _local(f: Access) -> None:
    """Local: each lane has its own object; host memory holds a thread's bytes together."""
    f.start_all()
    size = f.field("%w", Slot.LOCAL_BYTES)
    count = fixed_check(f, size)
    f.branch(all_inside(f, "%a", count), "inside", "bad")
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
    fault_of_lanes(f, count)
