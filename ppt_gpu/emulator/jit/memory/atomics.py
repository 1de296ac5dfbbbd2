"""Atomic operations as helper functions: one lane after another, the lowest first.

For one lane, scalar code makes what is left in memory of the old value and the operand.
"""

from __future__ import annotations

from ppt_gpu.emulator.forms.float_formats import canonical_nan, infinity
from ppt_gpu.emulator.jit.access import SITE_COUNT, SITE_HOST, SITE_START, SPLIT_SPACES, Access, address_element
from ppt_gpu.emulator.jit.memory.ranges import find, host_pointer, site_check
from ppt_gpu.emulator.jit.memory.spaces import FIXED, fault_of_lanes, fixed_check, places_inside, to_buffer
from ppt_gpu.emulator.jit.memory.split import Part, split
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, ELEMENT, Helper, vec
from ppt_gpu.emulator.memory.warp_context import Fault

_BITWISE = ("and", "or", "xor")
_FLOATS = ("f16", "bf16", "f32", "f64")
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def updated(f: Helper, operation: str, kind: str, old: str, b: str, c: str = "", *, flush: bool = False) -> str:
    """`operation` on integers as wide as PTX type `kind`. `flush`: subnormal inputs and results of an f32 addition
    become zero."""
    element = f"i{BITS[ELEMENT[kind]]}"
    if operation == "exch":
        return b
    if operation in _BITWISE:
        return f.op(f"{operation} {element} {old}, {b}")
    if operation == "cas":
        same = f.op(f"icmp eq {element} {old}, {b}")
        return f.op(f"select i1 {same}, {element} {c}, {element} {old}")
    if operation in ("inc", "dec"):
        return _wrapped(f, operation, element, old, b)
    if kind in PACKED:
        return _both_halves(f, operation, PACKED[kind], old, b)
    if kind in _FLOATS:
        return _sum(f, kind, old, b, flush) if operation == "add" else _extreme(f, operation, kind, old, b)
    if operation == "add":
        return f.op(f"add {element} {old}, {b}")
    predicate = ("s" if kind[0] == "s" else "u") + ("lt" if operation == "min" else "gt")
    return f.op(f"select i1 {f.op(f'icmp {predicate} {element} {old}, {b}')}, {element} {old}, {element} {b}")


def _wrapped(f: Helper, operation: str, element: str, old: str, b: str) -> str:
    """inc wraps to 0 from b on; dec wraps to b after 0 and from above b."""
    if operation == "inc":
        top = f.op(f"icmp uge {element} {old}, {b}")
        return f.op(f"select i1 {top}, {element} 0, {element} {f.op(f'add {element} {old}, 1')}")
    zero, above = f.op(f"icmp eq {element} {old}, 0"), f.op(f"icmp ugt {element} {old}, {b}")
    wrap = f.op(f"or i1 {zero}, {above}")
    return f.op(f"select i1 {wrap}, {element} {b}, {element} {f.op(f'sub {element} {old}, 1')}")


def _both_halves(f: Helper, operation: str, kind: str, old: str, b: str) -> str:
    total = ""
    for shift in (0, 16):
        parts = [f.op(f"trunc i32 {f.i32('lshr', value, shift)} to i16") for value in (old, b)]
        part = f.i32("shl", f.op(f"zext i16 {updated(f, operation, kind, *parts)} to i32"), shift)
        total = f.i32("or", total, part) if total else part
    return total


def _sum(f: Helper, kind: str, old: str, b: str, flush: bool) -> str:
    """Rounded to nearest even. Sums of f16 and bf16 are exact enough in f32 to be rounded twice (24 >= 2 p + 2)."""
    raw = f"i{BITS[ELEMENT[kind]]}"
    if flush:
        old, b = _flushed(f, old), _flushed(f, b)
    wide = "double" if kind == "f64" else "float"
    total = f.op(f"fadd {wide} {_widened(f, kind, old)}, {_widened(f, kind, b)}")
    nan = f.op(f"fcmp uno {wide} {total}, {total}")
    bits = _narrowed(f, kind, total)
    if flush:
        bits = _flushed(f, bits)
    return f.op(f"select i1 {nan}, {raw} {_constant(canonical_nan(kind), kind)}, {raw} {bits}")


def _flushed(f: Helper, bits: str) -> str:
    small = f.i32("icmp ult", f.i32("and", bits, 0x7FFFFFFF), 0x00800000)
    return f.op(f"select i1 {small}, i32 {f.i32('and', bits, -(1 << 31))}, i32 {bits}")


def _widened(f: Helper, kind: str, bits: str) -> str:
    if kind == "bf16":
        return f.op(f"bitcast i32 {f.i32('shl', f.op(f'zext i16 {bits} to i32'), 16)} to float")
    if kind == "f16":
        half = f.op(f"bitcast i16 {bits} to half")
        return f.op(f"fpext half {half} to float")
    return f.op(f"bitcast i{BITS[ELEMENT[kind]]} {bits} to {ELEMENT[kind]}")


def _narrowed(f: Helper, kind: str, value: str) -> str:
    """The bits of a sum, rounded to `kind`; for a NaN anything."""
    if kind == "f16":
        half = f.op(f"fptrunc float {value} to half")
        return f.op(f"bitcast half {half} to i16")
    if kind == "bf16":
        bits = f.op(f"bitcast float {value} to i32")
        odd = f.i32("and", f.i32("lshr", bits, 16), 1)
        rounded = f.i32("add", f.i32("add", bits, odd), 0x7FFF)
        return f.op(f"trunc i32 {f.i32('lshr', rounded, 16)} to i16")
    return f.op(f"bitcast {ELEMENT[kind]} {value} to i{BITS[ELEMENT[kind]]}")


def _extreme(f: Helper, operation: str, kind: str, old: str, b: str) -> str:
    """The other one where one is NaN, -0 below +0: floats ordered as integers with the negative ones reversed."""
    bits = BITS[ELEMENT[kind]]
    raw = f"i{bits}"
    magnitude = _constant((1 << (bits - 1)) - 1, kind)
    keys, nans = [], []
    for value in (old, b):
        sign = f.op(f"ashr {raw} {value}, {bits - 1}")
        keys.append(f.op(f"xor {raw} {value}, {f.op(f'lshr {raw} {sign}, 1')}"))
        size = f.op(f"and {raw} {value}, {magnitude}")
        nans.append(f.op(f"icmp ugt {raw} {size}, {_constant(infinity(kind), kind)}"))
    predicate = "slt" if operation == "min" else "sgt"
    chosen = f.op(f"select i1 {f.op(f'icmp {predicate} {raw} {keys[0]}, {keys[1]}')}, {raw} {old}, {raw} {b}")
    chosen = f.op(f"select i1 {nans[1]}, {raw} {old}, {raw} {chosen}")
    other = f.op(f"select i1 {nans[1]}, {raw} {_constant(canonical_nan(kind), kind)}, {raw} {b}")
    return f.op(f"select i1 {nans[0]}, {raw} {other}, {raw} {chosen}")


def _constant(bits: int, kind: str) -> str:
    width = BITS[ELEMENT[kind]]
    return str(bits - (1 << width) if bits >> (width - 1) else bits)


class Atomic(Access):
    """An atomic on `count` elements a lane of PTX type `kind`; "b128" is one element in two halves.

    One element: operands `%b` and `%c`, the old value is returned. More: the rows of b, then those of c, behind
    `%data`; the old rows go to `%old`.
    """

    def __init__(self, operation: str, kind: str, space: str, count: int, traced: bool) -> None:
        self.operation, self.kind = operation, kind
        self.whole = kind == "b128"
        element = "i64" if self.whole else f"i{BITS[ELEMENT[kind]]}"
        rows = 2 if self.whole else count
        self.operands = ("%b", "%c")[: 1 + (operation == "cas")] if rows == 1 else ()  # vectors
        self.in_memory = False  # they lie in memory, at names with _lanes
        if rows > 1:
            super().__init__("void", space, element, rows, traced, "ptr %data", "ptr %old")
            self.out = "%old"
        else:
            values = [f"{vec(element)} {name}" for name in self.operands]
            super().__init__(vec(element), space, element, 1, traced, *values)

    def operand(self, number: int, index: int, lane: str) -> str:
        """Element `index` of operand b (0) or c (1) in a lane."""
        if self.length == 1 and self.in_memory:
            place = self.op(f"getelementptr {self.element}, ptr {self.operands[number]}_lanes, i32 {lane}")
            return self.op(f"load {self.element}, ptr {place}")
        if self.length == 1:
            return self.extract(self.element, self.operands[number], lane)
        place = self.i64("add", self.widen(lane), 32 * (number * self.length + index))
        return self.op(f"load {self.element}, ptr {self.op(f'getelementptr {self.element}, ptr %data, i64 {place}')}")


@writes("atomic")
def write_atomic(operation: str, kind: str, space: str, count: int, traced: bool) -> Atomic:
    """`operation` on elements of PTX type `kind` (b32, b64, ... where the type does not matter)."""
    f = Atomic(operation, kind, space, count, traced)
    if space in SPLIT_SPACES:
        split(f, _parts(f, count))
        return f
    f.start_all()
    f.before_lanes()
    (_global if space == "global" else _shared)(f)
    return f


def _shared(f: Atomic) -> None:
    pointer_slot, size_slot = FIXED["shared"]
    count = fixed_check(f, f.field("%w", size_slot))
    inside, *places = places_inside(f, "%a", count)
    f.branch(inside, "inside", "bad")
    f.label("inside")
    f.record_places(f.a0, *places)
    _each_inside(f, f.field("%w", pointer_slot, "ptr"), "%a")
    fault_of_lanes(f, count)


def _global(f: Atomic) -> None:
    """All lanes in the buffer that this instruction hit last, else each where its own address lies."""
    to_buffer(f)
    start, count, host = f.field("%site", SITE_START), f.field("%site", SITE_COUNT), f.field("%site", SITE_HOST, "ptr")
    offsets = f.v64("sub", "%a", f.splat("i64", start))
    inside, *places = places_inside(f, offsets, count)
    f.branch(inside, "inside", "by_lane")
    f.label("inside")
    f.record_places(f.a0, *places)
    _each_inside(f, host, offsets)
    f.label("by_lane")
    f.record_addresses("i64", f.a0, "%a")
    lane = _begin_loop(f, "%left", "%rest", "loop", "operate")
    address = f.extract("i64", "%a", lane)
    f.branch(site_check(f, address, f.size), "operate", "search2")
    f.label("search2")
    f.branch(find(f, address, lane, f.size), "operate", "failed2")
    f.label("failed2")
    f.empty()
    f.label("operate")
    _operate(f, host_pointer(f, address), lane)
    f.branch(f.i32("icmp eq", "%rest", 0), "finished", "loop")
    f.label("finished")
    f.after_lanes()


def _each_inside(f: Atomic, base: str, offsets: str) -> None:
    """Operate on lanes whose places, so many bytes behind the pointer `base`, are all valid, and return.

    Vectors that are read lane by lane lie in memory: LLVM would store them anew for every lane.
    """
    f.reserve("%places", vec(f.address))
    f.do(f"store {vec(f.address)} {offsets}, ptr %places, align 64")
    for name in f.operands:
        f.reserve(f"{name}_lanes", vec(f.element))
        f.do(f"store {vec(f.element)} {name}, ptr {name}_lanes, align 64")
    lane = _begin_loop(f, "%left_inside", "%rest_inside", "each", "each")
    offset = f.op(f"load {f.address}, ptr {f.op(f'getelementptr {f.address}, ptr %places, i32 {lane}')}")
    f.in_memory = True
    _operate(f, f.offset_pointer(base, f.wide(offset)), lane)
    f.in_memory = False
    f.branch(f.i32("icmp eq", "%rest_inside", 0), "finished_inside", "each")
    f.label("finished_inside")
    f.after_lanes()


def _begin_loop(f: Atomic, left: str, rest: str, head: str, latch: str) -> str:
    """Begin the loop `head` over the active lanes, lowest first, which goes on from `latch`. Returns the lane."""
    before = f"before_{head}"
    f.jump(before)
    f.label(before)
    f.jump(head)
    f.label(head)
    f.do(f"{left} = phi i32 [ %mask, %{before} ], [ {rest}, %{latch} ]")
    lane = f.first_lane(left)
    f.do(f"{rest} = and i32 {left}, {f.i32('sub', left, 1)}")
    return lane


def _parts(f: Atomic, count: int) -> Part:
    """Writes the atomic of some lanes in one space; parameters and local memory know none."""

    def part(space: str, mask: str, addresses: str, out: str) -> str:
        if space in ("local", "param"):
            return f.refuse(Fault.SPACE, mask)
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", mask), (vec(address_element(space)), addresses)]
        if f.length == 1:
            arguments += [(vec(f.element), name) for name in f.operands]
        else:
            arguments += [("ptr", "%data"), ("ptr", out)]
        return f.helper(("atomic", f.operation, f.kind, space, count, f.part_traced), f.result, *arguments)

    return part


def _operate(f: Atomic, pointer: str, lane: str) -> None:
    """One lane: the old elements go to %lanes, the new ones to memory."""
    places = [f.element_pointer(pointer, index) for index in range(f.length)]
    old = [f.op(f"load {f.element}, ptr {place}, align 1") for place in places]
    b = [f.operand(0, index, lane) for index in range(f.length)]
    c = [f.operand(1, index, lane) if f.operation == "cas" else "" for index in range(f.length)]
    if f.whole:
        new = _exchanged(f, old, b, c)
    else:
        flush = f.kind == "f32" and f.space == "global"  # PTX ISA, atom: add.f32 flushes there, not in shared memory
        values = zip(old, b, c, strict=True)
        new = [updated(f, f.operation, f.kind, *value, flush=flush) for value in values]
    for index, place in enumerate(places):
        f.do(f"store {f.element} {new[index]}, ptr {place}, align 1")
        at = f.op(f"getelementptr {f.element}, ptr %lanes, i64 {f.lane_offset(lane, index)}")
        f.do(f"store {f.element} {old[index]}, ptr {at}, align 1")


def _exchanged(f: Atomic, old: list[str], b: list[str], c: list[str]) -> list[str]:
    """exch and cas of 128 bits."""
    if f.operation == "exch":
        return b
    halves = [f.i64("icmp eq", old[k], b[k]) for k in range(2)]
    same = f.op(f"and i1 {halves[0]}, {halves[1]}")
    return [f.op(f"select i1 {same}, i64 {c[k]}, i64 {old[k]}") for k in range(2)]
