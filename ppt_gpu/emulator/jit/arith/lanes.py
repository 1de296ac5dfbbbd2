"""Helper functions that move values between lanes, push the divergence stack, or stop the warp."""

from __future__ import annotations

from ppt_gpu.emulator.forms.floating import extremum_of
from ppt_gpu.emulator.forms.value import given
from ppt_gpu.emulator.jit.arith.described import Writer
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const, lanes, vec
from ppt_gpu.emulator.memory.warp_context import Fault, Flag, Slot

V = vec("i32")


@writes("shuffle")
def write_shuffle(mode: str) -> Helper:
    """shfl.MODE.b32 (PTX ISA, "shfl.sync"): `%b` lane offset or index, `%c` clamp and segment mask.

    Lane j's source must stay inside its segment, else the lane keeps its own value and `in range` is false. A source
    outside of %exec, which the manual leaves undefined, gives the lane's own value too. Stores the values at %out, and
    returns the flags of lanes whose source was in range.
    """
    f = Helper("i32", f"{V} %a", f"{V} %b", f"{V} %c", "i32 %exec", "ptr %out")
    f.label("entry")
    lane = lanes("i32", 1)
    b = f.v32("and", "%b", const("i32", 31))
    clamp = f.v32("and", "%c", const("i32", 31))
    segment = f.v32("and", f.v32("lshr", "%c", const("i32", 8)), const("i32", 31))
    outside = f.v32("xor", segment, const("i32", 31))
    own = f.v32("and", lane, segment)
    top = f.v32("or", own, f.v32("and", clamp, outside))
    if mode == "up":
        source = f.v32("sub", lane, b)
        valid = f.v32("icmp sge", source, top)
    elif mode == "down":
        source = f.v32("add", lane, b)
        valid = f.v32("icmp sle", source, top)
    elif mode == "bfly":
        source = f.v32("xor", lane, b)
        valid = f.v32("icmp sle", source, top)
    else:
        source = f.v32("or", own, f.v32("and", b, outside))
        valid = f.v32("icmp sle", source, top)
    source = f.v32("and", source, const("i32", 31))
    runs = f.convert("trunc", "i32", f.v32("lshr", f.splat("i32", "%exec"), source), "i1")
    index = f.select(f.binary("and", "i1", valid, runs), "i32", source, lane)
    f.do(f"%rows = alloca {V}, align 128")
    f.do(f"store {V} %a, ptr %rows, align 128")
    pointers = f.op(f"getelementptr i32, ptr %rows, {V} {index}")
    value = f.call(
        V, "llvm.masked.gather.v32i32.v32p0",
        (vec("ptr"), pointers), ("i32", "4"), (vec("i1"), const("i1", 1)), (V, "zeroinitializer"),
    )  # fmt: skip
    f.do(f"store {V} {value}, ptr %out, align 8")
    f.do(f"ret i32 {f.mask_bits(valid)}")
    return f


@writes("match")
def write_match(bits: int) -> Helper:
    """For each lane of %mask the lanes of %mask that hold the same value."""
    element = f"i{bits}"
    f = Helper(V, "i32 %mask", f"{vec(element)} %a")
    f.label("entry")
    f.do(f"%rows = alloca {V}, align 128")
    f.do(f"store {V} zeroinitializer, ptr %rows, align 128")
    f.branch(f.i32("icmp eq", "%mask", 0), "end", "loop")
    f.label("loop")
    f.do("%left = phi i32 [ %mask, %entry ], [ %rest, %loop ]")
    lane = f.first_lane("%left")
    f.do(f"%rest = and i32 %left, {f.i32('sub', '%left', 1)}")
    value = f.splat(element, f.extract(element, "%a", lane))
    same = f.i32("and", f.mask_bits(f.op(f"icmp eq {vec(element)} %a, {value}")), "%mask")
    f.do(f"store i32 {same}, ptr {f.op(f'getelementptr i32, ptr %rows, i32 {lane}')}")
    f.branch(f.i32("icmp eq", "%rest", 0), "end", "loop")
    f.label("end")
    f.do(f"ret {V} {f.op(f'load {V}, ptr %rows, align 128')}")
    return f


@writes("reduce")
def write_reduce(operation: str, signed: bool) -> Helper:
    """One value from the lanes of %mask."""
    f = Helper("i32", "i32 %mask", f"{V} %a")
    f.label("entry")
    neutral = {"add": 0, "or": 0, "xor": 0, "and": -1}.get(operation)
    if neutral is None:
        low, high = (-0x80000000, 0x7FFFFFFF) if signed else (0, -1)
        neutral = high if operation == "min" else low
    name = operation if operation in ("add", "or", "xor", "and") else ("s" if signed else "u") + operation
    kept = f.op(f"select {vec('i1')} {f.mask_flags('%mask')}, {V} %a, {V} {const('i32', neutral)}")
    f.do(f"ret i32 {f.call('i32', f'llvm.vector.reduce.{name}.v32i32', (V, kept))}")
    return f


@writes("reduce_float")
def write_reduce_float(operation: str, flags: str) -> Helper:
    """redux.min or .max of f32: the bits of the result in every lane. Lanes outside of %mask repeat its first one."""
    f = Helper(V, "i32 %mask", f"{V} %a")
    f.label("entry")
    lane = f.i32("and", f.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false")), 31)
    value = f.select(f.mask_flags("%mask"), "i32", "%a", f.splat("i32", f.extract("i32", "%a", lane)))
    for distance in (16, 8, 4, 2, 1):
        order = ", ".join(f"i32 {k ^ distance}" for k in range(32))
        other = f.op(f"shufflevector {V} {value}, {V} poison, <32 x i32> <{order}>")
        lower = extremum_of(operation, "f32", flags.split("_"), given(0, 32), given(1, 32))
        value = Writer(f, [(value, "i32"), (other, "i32")])(lower)
    f.do(f"ret {V} {value}")
    return f


@writes("reduce_groups")
def write_reduce_groups(*key: str | bool) -> Helper:
    """The reduction `key` in groups: the executing lanes whose %members are the same."""
    f = Helper(V, "i32 %exec", f"{V} %members", f"{V} %a")
    f.label("entry")
    f.branch(f.i32("icmp eq", "%exec", 0), "nobody", "loop")
    f.label("nobody")
    f.do(f"ret {V} zeroinitializer")
    f.label("loop")
    f.do("%left = phi i32 [ %exec, %entry ], [ %rest, %loop ]")
    f.do(f"%found = phi {V} [ zeroinitializer, %entry ], [ %more, %loop ]")
    named = f.extract("i32", "%members", f.first_lane("%left"))
    group = f.op(f"icmp eq {V} %members, {f.splat('i32', named)}")
    whole = key[0] == "reduce_float"
    value = f.helper(key, V if whole else "i32", ("i32", named), (V, "%a"))
    f.do(f"%more = select {vec('i1')} {group}, {V} {value if whole else f.splat('i32', value)}, {V} %found")
    f.do(f"%rest = and i32 %left, {f.i32('xor', f.mask_bits(group), -1)}")
    f.branch(f.i32("icmp eq", "%rest", 0), "end", "loop")
    f.label("end")
    f.do(f"ret {V} %more")
    return f


@writes("push")
def write_push() -> Helper:
    """Push an entry (resume point, mask, rpc, the function's frame) on the divergence stack."""
    f = Helper("void", "ptr %w", "i32 %point", "i32 %mask", "i32 %rpc")
    f.label("entry")
    depth = f.field("%w", Slot.DEPTH)
    f.branch(f.i64("icmp ult", depth, f.field("%w", Slot.STACK_ROOM)), "room", "full")
    f.label("full")
    lane, pc = f.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false")), f.field("%w", Slot.FAULT_PC)
    code = str(int(Fault.STACK))
    f.helper(("fault",), "void", ("ptr", "%w"), ("i64", code), ("i64", pc), ("i32", lane), ("i64", "0"))
    f.do("ret void")
    f.label("room")
    at = f.op(f"getelementptr [4 x i32], ptr {f.field('%w', Slot.STACK, 'ptr')}, i64 {depth}")
    frame = f.op(f"trunc i64 {f.field('%w', Slot.FRAME_OFFSET)} to i32")
    for word, value in enumerate(("%point", "%mask", "%rpc", frame)):
        f.do(f"store i32 {value}, ptr {f.offset_pointer(at, 4 * word)}")
    f.set_field("%w", Slot.DEPTH, f.i64("add", depth, 1))
    f.do("ret void")
    return f


@writes("stop")
def write_stop() -> Helper:
    """A fault of the lowest lane in %mask, if there is one."""
    f = Helper("void", "ptr %w", "i32 %mask", "i64 %code", "i64 %pc")
    f.label("entry")
    f.branch(f.i32("icmp eq", "%mask", 0), "end", "stop")
    f.label("stop")
    lane = f.first_lane("%mask")
    f.helper(("fault",), "void", ("ptr", "%w"), ("i64", "%code"), ("i64", "%pc"), ("i32", lane), ("i64", "0"))
    f.jump("end")
    f.label("end")
    f.do("ret void")
    return f


@writes("together")
def write_together() -> Helper:
    """Note when a .sync instruction names live lanes (%members) that do not take part."""
    f = Helper("void", "ptr %w", "i32 %members", "i32 %exec", "i64 %pc")
    f.label("entry")
    live = f.op(f"trunc i64 {f.field('%w', Slot.LIVE)} to i32")
    absent = f.i32("and", f.i32("and", live, "%members"), f.i32("xor", "%exec", -1))
    together = f.op(f"or i1 {f.i32('icmp eq', absent, 0)}, {f.i32('icmp eq', '%exec', 0)}")
    f.branch(together, "end", "note")
    f.label("note")
    at = f.op(f"getelementptr i64, ptr {f.field('%w', Slot.NOTES, 'ptr')}, i64 %pc")
    f.do(f"store i64 {f.i64('or', f.op(f'load i64, ptr {at}'), int(Flag.DIVERGENT_SYNC))}, ptr {at}")
    f.jump("end")
    f.label("end")
    f.do("ret void")
    return f
