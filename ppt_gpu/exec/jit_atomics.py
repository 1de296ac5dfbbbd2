"""Atomic operations as helper functions: one lane after another, the lowest first."""

from __future__ import annotations

from ppt_gpu.exec.jit_access import Access
from ppt_gpu.exec.jit_context import Fault, Slot
from ppt_gpu.exec.jit_library import Helper, writes
from ppt_gpu.exec.jit_spaces import FIXED, dispatch, find, host_pointer, site_check
from ppt_gpu.exec.jit_text import BITS, ELEMENT, vec

_SIMPLE = {"and": "and", "or": "or", "xor": "xor"}


@writes("atomic")
def write_atomic(operation: str, kind: str, space: str, traced: bool) -> Helper:
    """`operation` on elements of PTX type `kind` (b32, b64, ... where the type does not matter). Returns old values."""
    element = f"i{BITS[ELEMENT[kind]]}"
    values = [f"{vec(element)} %b", *([f"{vec(element)} %c"] if operation == "cas" else [])]
    f = Access(vec(element), space, element, 1, traced, *values)
    f.start_all()
    if space == "generic":
        _generic(f, operation, kind)
        return f
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
    pointer = _pointer(f, address)
    old = f.op(f"load {element}, ptr {pointer}, align 1")
    b = f.extract(element, "%b", lane)
    c = f.extract(element, "%c", lane) if operation == "cas" else ""
    f.do(f"store {element} {_result(f, operation, kind, element, old, b, c)}, ptr {pointer}, align 1")
    f.do(f"store {element} {old}, ptr {f.op(f'getelementptr {element}, ptr %lanes, i32 {lane}')}")
    f.branch(f.i32("icmp eq", "%rest", 0), "finished", "loop")
    f.label("finished")
    f.after_lanes()
    return f


def _check(f: Access, address: str, lane: str) -> None:
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


def _pointer(f: Access, address: str) -> str:
    if f.space == "global":
        return host_pointer(f, address)
    return f.offset_pointer(f.field("%w", Slot.SHARED, "ptr"), f.wide(address))


def _result(f: Helper, operation: str, kind: str, element: str, old: str, b: str, c: str) -> str:
    """What the operation leaves in memory."""
    if operation == "exch":
        return b
    if operation in _SIMPLE:
        return f.op(f"{operation} {element} {old}, {b}")
    if operation == "cas":
        same = f.op(f"icmp eq {element} {old}, {b}")
        return f.op(f"select i1 {same}, {element} {c}, {element} {old}")
    if operation == "inc":  # wraps to 0 after b
        top = f.op(f"icmp uge {element} {old}, {b}")
        return f.op(f"select i1 {top}, {element} 0, {element} {f.op(f'add {element} {old}, 1')}")
    if operation == "dec":  # wraps to b after 0, and from above b
        zero, above = f.op(f"icmp eq {element} {old}, 0"), f.op(f"icmp ugt {element} {old}, {b}")
        wrap = f.op(f"or i1 {zero}, {above}")
        return f.op(f"select i1 {wrap}, {element} {b}, {element} {f.op(f'sub {element} {old}, 1')}")
    if kind in ("f32", "f64"):
        return _float_result(f, operation, ELEMENT[kind], element, old, b)
    if operation == "add":
        return f.op(f"add {element} {old}, {b}")
    predicate = ("s" if kind[0] == "s" else "u") + ("lt" if operation == "min" else "gt")
    return f.op(f"select i1 {f.op(f'icmp {predicate} {element} {old}, {b}')}, {element} {old}, {element} {b}")


def _float_result(f: Helper, operation: str, element: str, raw: str, old: str, b: str) -> str:
    left, right = (f.op(f"bitcast {raw} {v} to {element}") for v in (old, b))
    if operation == "add":
        result = f.op(f"fadd {element} {left}, {right}")
    else:
        predicate = "olt" if operation == "min" else "ogt"
        first = f.op(f"fcmp {predicate} {element} {left}, {right}")
        nan = f.op(f"fcmp uno {element} {right}, {right}")
        keep = f.op(f"or i1 {first}, {nan}")
        result = f.op(f"select i1 {keep}, {element} {left}, {element} {right}")
    return f.op(f"bitcast {element} {result} to {raw}")


def _generic(f: Access, operation: str, kind: str) -> None:
    """All active lanes in one window; local memory knows no atomics."""
    offsets = f.op(f"trunc {vec('i64')} %a to {vec('i32')}")
    dispatch(f)
    for space in ("shared", "global"):
        f.label(f"in_{space}")
        where = ("<32 x i64>", "%a") if space == "global" else ("<32 x i32>", offsets)
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", "%mask"), where, (vec(f.element), "%b")]
        if operation == "cas":
            arguments.append((vec(f.element), "%c"))
        f.do(f"ret {f.result} {f.helper(('atomic', operation, kind, space, f.generic_traced), f.result, *arguments)}")
    for label, code in (("in_local", Fault.BOUNDS), ("mixed", Fault.MIXED)):
        f.label(label)
        f.fault(str(int(code)), f.first, f.a0)
        f.empty()
