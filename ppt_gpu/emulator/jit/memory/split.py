"""Accesses whose lanes lie in several state spaces, or in the shared memory of several blocks of a cluster.

Lanes are taken in groups, that of the lowest lane left first, and each group makes an access of its own. One access
is recorded: that of the first group. Spaces: "generic" (64-bit addresses), "cluster" (32-bit addresses of
shared::cluster), "generic-cluster" (generic, in kernels that address the shared memory of other blocks).
"""

from __future__ import annotations

from collections.abc import Callable

from ppt_gpu.emulator.jit.access import Access
from ppt_gpu.emulator.llvm.text import const, vec
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.emulator.trace.record_words import BASE_BYTES, base_of

#: (space, mask, addresses, pointer for the rows that it returns) -> value; writes the access of one group
Part = Callable[[str, str, str, str], str]

_CURSORS = (Slot.RECORD, Slot.BASES)
_WINDOW_SHIFT = 40
_WINDOWED = ("shared", "local", "param")  # the windows, in order from 1
assert [w >> _WINDOW_SHIFT for w in (SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW)] == [1, 2, 3]
_OFFSET_MASK = (1 << CLUSTER_SHIFT) - 1


def split(f: Access, part: Part) -> None:
    """The body of an access in one of `SPLIT_SPACES`. With several rows, what it returns goes to `f.out`."""
    f.start_all()
    keys, plain = _window_keys(f) if f.space.startswith("generic") else _rank_keys(f)
    same = f.mask_bits(f.op(f"icmp eq {vec(f.address)} {keys}, zeroinitializer"))
    f.branch(f.i32("icmp eq", f.i32("or", same, f.inactive), -1), "plain", "groups")
    f.label("plain")
    _return(f, part(plain, "%mask", "%a", f.out))
    f.label("groups")
    _groups(f, part, keys, plain)


def _return(f: Access, value: str) -> None:
    f.do(f"ret {f.result} {value}" if f.result != "void" else "ret void")


def _window_keys(f: Access) -> tuple[str, str]:
    """The number of each lane's window, 0 for none, and the space without a window."""
    window = f.v64("lshr", "%a", const("i64", _WINDOW_SHIFT))
    rest = f.v64("and", f.v64("lshr", "%a", const("i64", 32)), const("i64", 0xFF))
    inside = f.v64("icmp eq", rest, "zeroinitializer")
    known = f.v64("icmp ule", window, const("i64", len(_WINDOWED)))
    both = f.op(f"and {vec('i1')} {inside}, {known}")
    return f.op(f"select {vec('i1')} {both}, {vec('i64')} {window}, {vec('i64')} zeroinitializer"), "global"


def _rank_keys(f: Access) -> tuple[str, str]:
    """The rank + 1 in each lane's shared::cluster address."""
    return f.v32("lshr", "%a", const("i32", CLUSTER_SHIFT)), "shared"


def _groups(f: Access, part: Part, keys: str, plain: str) -> None:
    rows = f.out and f.op(f"alloca [{f.length} x {vec(f.element)}], align 64")
    scratch = f.op(f"alloca [{2 * BASE_BYTES} x i8], align 64") if f.traced else ""
    if f.out:
        f.do(f"store [{f.length} x {vec(f.element)}] zeroinitializer, ptr {f.out}, align 8")
    f.jump("group")
    f.label("group")
    f.do("%left = phi i32 [ %mask, %groups ], [ %rest, %moved ]")
    if f.result != "void":
        f.do(f"%so_far = phi {f.result} [ zeroinitializer, %groups ], [ %merged, %moved ]")
    key = f.extract(f.address, keys, f.first_lane("%left"))
    flags = f.op(f"icmp eq {vec(f.address)} {keys}, {f.splat(f.address, key)}")
    mine = f.i32("and", "%left", f.mask_bits(flags))
    f.do(f"%rest = xor i32 %left, {mine}")
    restore = _divert(f, scratch)
    if f.space == "cluster":
        values = _of_ranks(f, part, key, mine, rows, scratch)
    else:
        values = _of_windows(f, part, key, mine, rows, plain)
    f.label("done")
    value = ""
    if f.result != "void":
        value = f.op(f"phi {f.result} " + ", ".join(f"[ {v}, %{label} ]" for v, label in values))
    restore()
    _merge(f, mine, value, rows)
    f.jump("moved")
    f.label("moved")
    f.branch(f.i32("icmp eq", "%rest", 0), "finished", "group")
    f.label("finished")
    _return(f, "%merged")


def _divert(f: Access, scratch: str) -> Callable[[], None]:
    """Let every group but the first record into `scratch`. Returns what puts the cursors back."""
    if not f.traced:
        return lambda: None
    before = [f.field("%w", slot) for slot in _CURSORS]
    first = f.i32("icmp eq", "%left", "%mask")
    into = f.op(f"ptrtoint ptr {scratch} to i64")
    others = (into, f.i64("sub", str(BASE_BYTES), into))  # the base address stands behind the header, see `base_of`
    for slot, value, other in zip(_CURSORS, before, others, strict=True):
        f.set_field("%w", slot, f.op(f"select i1 {first}, i64 {value}, i64 {other}"))

    def restore() -> None:
        for slot, value in zip(_CURSORS, before, strict=True):
            after = f.field("%w", slot)
            f.set_field("%w", slot, f.op(f"select i1 {first}, i64 {after}, i64 {value}"))

    return restore


def _of_windows(f: Access, part: Part, key: str, mine: str, rows: str, plain: str) -> list[tuple[str, str]]:
    """One group of a generic access. Returns (value, label) of each way to %done."""
    offsets = f.op(f"trunc {vec('i64')} %a to {vec('i32')}")
    cases = " ".join(f"i64 {number}, label %in_{space}" for number, space in enumerate(_WINDOWED, 1))
    f.do(f"switch i64 {key}, label %in_plain [ {cases} ]")
    values = []
    for space in ("plain", *_WINDOWED):
        f.label(f"in_{space}")
        if space == "param":
            f.record_nobody()
        own = {"plain": plain, "shared": "cluster" if f.space == "generic-cluster" else "shared"}.get(space, space)
        values.append((part(own, mine, "%a" if space == "plain" else offsets, rows), f"in_{space}"))
        f.jump("done")
    return values


def _of_ranks(f: Access, part: Part, key: str, mine: str, rows: str, scratch: str) -> list[tuple[str, str]]:
    """One group of a shared::cluster access: with the slot of the shared memory pointing to that block's."""
    rank = f.wide(f.i32("sub", key, 1))
    own = f.field("%w", Slot.SHARED)
    offsets = f.v32("and", "%a", const("i32", _OFFSET_MASK))
    f.branch(f.i32("icmp eq", key, 0), "in_own", "remote")
    f.label("in_own")
    values = [(part("shared", mine, "%a", rows), "in_own")]
    f.jump("done")
    f.label("remote")
    f.branch(f.i64("icmp ult", rank, f.field("%w", Slot.CLUSTER_BLOCKS)), "in_block", "in_none")
    f.label("in_block")
    place = f.i64("mul", rank, f.field("%w", Slot.CLUSTER_STRIDE))
    f.set_field("%w", Slot.SHARED, f.i64("add", f.field("%w", Slot.CLUSTER_SHARED), place))
    before = f.field("%w", Slot.RECORD)
    values.append((part("shared", mine, offsets, rows), "in_block"))
    f.set_field("%w", Slot.SHARED, own)
    if f.traced:
        _mark_remote(f, key, rank, before, scratch)
    f.jump("done")
    f.label("in_none")
    values.append((f.refuse(Fault.BOUNDS, mine), "in_none"))
    f.jump("done")
    return values


def _mark_remote(f: Access, key: str, rank: str, before: str, scratch: str) -> None:
    """Put the rank + 1 of another block into the address of the record just made; after a fault there is none."""
    made = f.i64("icmp ne", f.field("%w", Slot.RECORD), before)
    base = f.op(f"select i1 {made}, ptr {base_of(f, before)}, ptr {scratch}")
    other = f.i64("icmp ne", rank, f.field("%w", Slot.CLUSTER_RANK))
    tag = f.op(f"select i1 {other}, i64 {f.i64('shl', f.wide(key), CLUSTER_SHIFT)}, i64 0")
    f.do(f"store i64 {f.i64('or', f.op(f'load i64, ptr {base}, align 8'), tag)}, ptr {base}, align 8")


def _merge(f: Access, mine: str, value: str, rows: str) -> None:
    """Add what a group returned to what the groups before it did."""
    if not value and not rows:
        return
    flags = f.mask_flags(mine)
    kind = vec(f.element)
    if value:
        f.do(f"%merged = select {vec('i1')} {flags}, {f.result} {value}, {f.result} %so_far")
        return
    for index in range(f.length):
        from_row = f.op(f"getelementptr {kind}, ptr {rows}, i64 {index}")
        to_row = f.op(f"getelementptr {kind}, ptr {f.out}, i64 {index}")
        new, old = f.op(f"load {kind}, ptr {from_row}, align 8"), f.op(f"load {kind}, ptr {to_row}, align 8")
        merged = f.op(f"select {vec('i1')} {flags}, {kind} {new}, {kind} {old}")
        f.do(f"store {kind} {merged}, ptr {to_row}, align 8")
