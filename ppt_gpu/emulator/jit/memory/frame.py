"""Stack frames in compiled code: every thread's own bytes of local memory at an offset that the warp's lanes share."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.jit.emit import Emitter
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, Helper, lanes, vec
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.ptx.module import Mem, Sym


@writes("frame")
def write_frame(kind: str, element: str) -> Helper:
    """Load or store one element a lane of %mask at `%offset` of the thread's local memory. The offset is in range."""
    data = (f"{vec(element)} %data",) if kind == "store" else ()
    f = Helper("void" if data else vec(element), "ptr %w", "i32 %mask", "i64 %offset", *data)
    f.label("entry")
    private = f.v64("mul", f.splat("i64", f.field("%w", Slot.LOCAL_BYTES)), lanes("i64", 1))
    base = f.i64("add", f.field("%w", Slot.LOCAL), "%offset")
    pointers = f.op(f"getelementptr i8, ptr {f.as_pointer(base)}, {vec('i64')} {private}")
    flags = (vec("i1"), f.mask_flags("%mask"))
    where = (vec("ptr"), pointers)
    if data:
        value = (vec(element), "%data")
        f.call("void", f"llvm.masked.scatter.v32{element}.v32p0", value, where, ("i32", "1"), flags)
        f.do("ret void")
        return f
    zero = (vec(element), "zeroinitializer")
    found = f.call(vec(element), f"llvm.masked.gather.v32{element}.v32p0", where, ("i32", "1"), flags, zero)
    f.do(f"ret {vec(element)} {found}")
    return f


@writes("frame_copy")
def write_frame_copy() -> Helper:
    """Copy `%bytes` in every lane of %mask, from one offset of the thread's local memory to another."""
    f = Helper("void", "ptr %w", "i32 %mask", "i64 %from", "i64 %to", "i64 %bytes")
    f.label("entry")
    size, local = f.field("%w", Slot.LOCAL_BYTES), f.field("%w", Slot.LOCAL)
    f.branch(f.i32("icmp eq", "%mask", 0), "end", "loop")
    f.label("loop")
    f.do("%left = phi i32 [ %mask, %entry ], [ %rest, %loop ]")
    lane = f.widen(f.first_lane("%left"))
    f.do(f"%rest = and i32 %left, {f.i32('sub', '%left', 1)}")
    base = f.i64("add", local, f.i64("mul", lane, size))
    target, source = (f.as_pointer(f.i64("add", base, offset)) for offset in ("%to", "%from"))
    f.call(
        "void", "llvm.memmove.p0.p0.i64", ("ptr", target), ("ptr", source), ("i64", "%bytes"), ("i1", "false")
    )  # fmt: skip
    f.branch(f.i32("icmp eq", "%rest", 0), "end", "loop")
    f.label("end")
    f.do("ret void")
    return f


@writes("frame_most")
def write_frame_most() -> Helper:
    """The largest unsigned 64-bit value that a lane of %mask has at an offset of its local memory."""
    f = Helper("i64", "ptr %w", "i32 %mask", "i64 %offset")
    f.label("entry")
    arguments = (("ptr", "%w"), ("i32", "%mask"), ("i64", "%offset"))
    value = f.helper(("frame", "load", "i64"), vec("i64"), *arguments)
    f.do(f"ret i64 {f.call('i64', 'llvm.vector.reduce.umax.v32i64', (vec('i64'), value))}")
    return f


def frame_load(e: Emitter, mask: str, offset: str, element: str) -> str:
    """A <32 x element> from the threads' frames; `offset` is an i64 from the start of local memory."""
    arguments = (("ptr", "%w"), ("i32", mask), ("i64", offset))
    if element == "i1":
        return e.op(f"trunc {vec('i8')} {frame_load(e, mask, offset, 'i8')} to {vec('i1')}")
    return e.helper(("frame", "load", element), vec(element), *arguments)


def frame_store(e: Emitter, mask: str, offset: str, element: str, value: str) -> None:
    """The opposite of `frame_load`."""
    if element == "i1":
        value, element = e.op(f"zext {vec('i1')} {value} to {vec('i8')}"), "i8"
    where = (("ptr", "%w"), ("i32", mask), ("i64", offset))
    e.helper(("frame", "store", element), "void", *where, (vec(element), value))


def frame_copy(e: Emitter, mask: str, source: str, target: str, size: int) -> None:
    """Copy `size` bytes in every lane of the mask."""
    arguments = (("ptr", "%w"), ("i32", mask), ("i64", source), ("i64", target), ("i64", str(size)))
    e.helper(("frame_copy",), "void", *arguments)


def parameter_place(e: Emitter, operand: Mem, size: int) -> str | None:
    """Where an access of `size` bytes to a parameter or result of a function lies in local memory; None for others."""
    if not isinstance(operand.base, Sym) or operand.base.name not in e.kernel.offsets:
        return None
    inside = operand.base.offset + operand.offset
    if inside < 0 or inside + size > e.kernel.sizes[operand.base.name]:
        raise Unsupported(f"an access outside of parameter '{operand.base.name}'")
    return e.i64("add", e.symbol(operand.base.name), inside)


def parameter_rows(e: Emitter, place: str, element: str, count: int) -> list[str]:
    """What ld.param finds there: `count` integer elements a lane."""
    step = BITS[element] // 8
    return [frame_load(e, e.exec, e.i64("add", place, k * step), element) for k in range(count)]


def store_parameter(e: Emitter, place: str, element: str, rows: list[str]) -> None:
    """st.param of <32 x integer> rows."""
    for k, row in enumerate(rows):
        frame_store(e, e.exec, e.i64("add", place, k * BITS[element] // 8), element, row)
