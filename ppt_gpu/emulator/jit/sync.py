"""Words of arrivals and waits in a trace (`ppt_gpu.emulator.memory.mbarrier_word`), as compiled code records them."""

from __future__ import annotations

from ppt_gpu.emulator.jit.emit import Emitter
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const, vec
from ppt_gpu.emulator.memory.mbarrier_word import GIVEN, PLACE, PLACE_BITS, SYNC_SPACE
from ppt_gpu.emulator.trace.record_words import SPACE_BITS, append_record
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction

W = vec("i64")


def record_words(e: Emitter, i: Instruction, place: str, given: str) -> None:
    """Record the instruction, if it is traced, with the places and the given numbers (<32 x i32>) of its lanes."""
    if not (e.traced and is_traced(i)):
        return
    near = e.widen_lanes(e.v32("and", place, const("i32", PLACE)))
    more = e.v64("shl", e.widen_lanes(e.v32("and", given, const("i32", GIVEN))), const("i64", PLACE_BITS))
    e.touched_memory = True
    e.helper(("record_words",), "void", ("ptr", "%w"), ("i32", e.exec), (W, e.v64("or", near, more)))


@writes("record_words")
def write_record_words() -> Helper:
    """Append the words of the active lanes to the warp's accesses."""
    f = Helper("void", "ptr %w", "i32 %mask", f"{W} %words")
    f.label("entry")
    f.branch(f.i32("icmp ne", "%mask", 0), "active", "nobody")
    f.label("nobody")
    f.helper(("record_nobody",), "void", ("ptr", "%w"), ("i32", str(SYNC_SPACE)))
    f.do("ret void")
    f.label("active")
    base = f.extract("i64", "%words", f.first_lane("%mask"))
    away = f.v64("sub", "%words", f.splat("i64", base))
    away = f.op(f"select {vec('i1')} {f.mask_flags('%mask')}, {W} {away}, {W} zeroinitializer")
    number = f.helper(("pattern", "i64"), "i64", ("ptr", "%w"), ("i32", "%mask"), (W, away))
    header = f.op(f"trunc i64 {f.i64('shl', number, SPACE_BITS)} to i32")
    append_record(f, f.i32("or", header, SYNC_SPACE), base)
    f.do("ret void")
    return f
