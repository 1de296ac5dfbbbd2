"""Atomic operations as helper functions: one lane after another, the lowest first."""

from __future__ import annotations

from ppt_gpu.exec.jit_access import SPLIT_SPACES, Access, address_element
from ppt_gpu.exec.jit_atomic_values import updated
from ppt_gpu.exec.jit_context import Fault, Slot
from ppt_gpu.exec.jit_library import writes
from ppt_gpu.exec.jit_ranges import find, host_pointer, site_check
from ppt_gpu.exec.jit_spaces import FIXED
from ppt_gpu.exec.jit_split import Part, split
from ppt_gpu.exec.jit_text import BITS, ELEMENT, vec


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
        if rows > 1:
            super().__init__("void", space, element, rows, traced, "ptr %data", "ptr %old")
            self.out = "%old"
        else:
            values = [f"{vec(element)} %{name}" for name in ("b", "c")[: 1 + (operation == "cas")]]
            super().__init__(vec(element), space, element, 1, traced, *values)

    def operand(self, number: int, index: int, lane: str) -> str:
        """Element `index` of operand b (0) or c (1) in a lane."""
        if self.length == 1:
            return self.extract(self.element, ("%b", "%c")[number], lane)
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
    f.record_addresses(f.address, f.a0, "%a")
    f.before_lanes()
    f.jump("begin")
    f.label("begin")
    f.jump("loop")
    f.label("loop")
    f.do("%left = phi i32 [ %mask, %begin ], [ %rest, %operate ]")
    lane = f.first_lane("%left")
    f.do(f"%rest = and i32 %left, {f.i32('sub', '%left', 1)}")
    address = f.extract(f.address, "%a", lane)
    _check(f, address, lane)
    f.label("operate")
    _operate(f, _pointer(f, address), lane)
    f.branch(f.i32("icmp eq", "%rest", 0), "finished", "loop")
    f.label("finished")
    f.after_lanes()
    return f


def _parts(f: Atomic, count: int) -> Part:
    """Writes the atomic of some lanes in one space; parameters and local memory know none."""

    def part(space: str, mask: str, addresses: str, out: str) -> str:
        if space in ("local", "param"):
            return f.refuse(Fault.SPACE, mask)
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", mask), (vec(address_element(space)), addresses)]
        if f.length == 1:
            arguments += [(vec(f.element), f"%{name}") for name in ("b", "c")[: 1 + (f.operation == "cas")]]
        else:
            arguments += [("ptr", "%data"), ("ptr", out)]
        return f.helper(("atomic", f.operation, f.kind, space, count, f.part_traced), f.result, *arguments)

    return part


def _check(f: Atomic, address: str, lane: str) -> None:
    """Go on at %operate when the lane's address is valid, else fault and return."""
    if f.space == "global":
        f.branch(site_check(f, address, f.size), "operate", "search")
        f.label("search")
        f.branch(find(f, address, lane, f.size), "operate", "failed")
        f.label("failed")
        f.empty()
        return
    size = f.field("%w", FIXED[f.space][1])
    end = f.i64("add", f.wide(address), f.size)
    inside = f.i64("icmp ule", end, size)
    odd = f.i32("and", address, f.size - 1)
    f.branch(f.op(f"and i1 {inside}, {f.i32('icmp eq', odd, 0)}"), "operate", "bad")
    f.label("bad")
    code = f.op(f"select i1 {inside}, i64 {int(Fault.ALIGNMENT)}, i64 {int(Fault.BOUNDS)}")
    f.fault(code, lane, f.wide(address))
    f.empty()


def _pointer(f: Atomic, address: str) -> str:
    if f.space == "global":
        return host_pointer(f, address)
    return f.offset_pointer(f.field("%w", Slot.SHARED, "ptr"), f.wide(address))


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
