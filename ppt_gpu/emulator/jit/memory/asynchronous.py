"""cp.async, the waits for its groups, st and st.async: every copy is a load and a store, made at once."""

from __future__ import annotations

from ppt_gpu.emulator.forms.async_form import LaneCopy, lane_copy
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.opcode import parts
from ppt_gpu.emulator.jit.access import SITE_PC
from ppt_gpu.emulator.jit.async_copies import append_note
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.jit.memory.bulk import emit_bulk
from ppt_gpu.emulator.jit.memory.mbarrier import complete_bytes, emit_arrival
from ppt_gpu.emulator.jit.memory.memory import address, data_of, store
from ppt_gpu.emulator.jit.memory.spaces import PLACES
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import BITS, Helper, const, vec
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Instruction

V, W = vec("i32"), vec("i64")


@emits("st")
def emit_store(e: Emitter, i: Instruction) -> None:
    """st in all its forms; of st.async the bytes are there at once, which its mbarrier is told."""
    if "bulk" in i.modifiers:
        emit_bulk(e, i)
        return
    store(e, i)
    if "async" in i.modifiers and len(i.operands) > 2:
        kind = parts(i).kind
        element, each = data_of(kind)
        complete_bytes(e, i, i.operands[2], BITS[element] // 8 * each * vector_length(i))


@emits("cp")
def emit_copy(e: Emitter, i: Instruction) -> None:
    """cp.async in all its forms."""
    words = i.modifiers
    if words[:1] == ("reduce",):
        emit_bulk(e, i)
        return
    if words[:1] != ("async",):
        raise Unsupported("this copy")
    if "commit_group" in words or "wait_group" in words or "wait_all" in words:
        return
    if "mbarrier" in words:
        emit_arrival(e, i)
    elif "bulk" in words:
        emit_bulk(e, i)
    else:
        _lane_copy(e, i)


def _lane_copy(e: Emitter, i: Instruction) -> None:
    try:
        form = lane_copy(e.kernel, i)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None
    target = (V, address(e, i.operands[0], "shared"))
    source = (W, address(e, i.operands[1], "global"))
    places = [("ptr", "%w"), ("ptr", e.site()), ("ptr", e.site()), ("i32", e.exec), target, source]
    given = _given(e, form)
    key = ("copy", form.size, bool(given), e.traced, e.keeps("shared"))
    e.helper(key, "void", *places, *([(V, given)] if given else []))


def _given(e: Emitter, form: LaneCopy) -> str:
    """Bytes that each lane reads; "" for all."""
    whole = const("i32", form.size)
    if form.ignore is not None:
        return e.select(e.read(form.ignore, "pred"), "i32", "zeroinitializer", whole)
    return e.intrinsic("umin", "i32", e.read(form.given, "u32"), whole) if form.given is not None else ""


@writes("copy")
def write_copy(size: int, partial: bool, traced: bool, moves: bool) -> Helper:
    """Copy `size` bytes a lane from %from (global) to %to (shared). With `partial` only the first %given are read.

    Recorded is the read of the lanes that read all their bytes. Without `moves` no data goes from there to here.
    """
    parameters = ["ptr %w", "ptr %site", "ptr %store_site", "i32 %mask", f"{V} %to", f"{W} %from"]
    f = LoopHelper("void", *parameters, *([f"{V} %given"] if partial else []))
    f.label("entry")
    count = max(1, size // 8)
    element = "i32" if size == 4 else "i64"
    rows = f.room("i8", 32 * size)
    full = "%mask"
    if partial:
        full = f.i32("and", "%mask", f.mask_bits(f.v32("icmp eq", "%given", const("i32", size))))
    load = [("ptr", "%w"), ("ptr", "%site"), ("i32", full), (W, "%from")]
    key = ("access", "load" if moves else PLACES["load"], "global", element, count, traced)
    kept = f.mask_flags(full)
    loaded: list[str] = []
    if not moves:
        f.helper(key, "void", *load)
    elif count == 1:
        loaded = [f.helper(key, vec(element), *load)]
    else:
        f.helper(key, "void", *load, ("ptr", rows))
        loaded = [f.load(vec(element), f.at(vec(element), rows, k), 8) for k in range(count)]
    for k, row in enumerate(loaded):
        f.store(vec(element), f.select(kept, element, row, "zeroinitializer"), f.at(vec(element), rows, k), 8)
    if partial:
        _partial(f, element, rows, full)
    store = [("ptr", "%w"), ("ptr", "%store_site"), ("i32", "%mask"), (V, "%to")]
    if moves:
        store.append(("ptr", rows) if count > 1 else (vec(element), f.load(vec(element), rows, 8)))
    f.helper(("access", "store" if moves else PLACES["store"], "shared", element, count, False), "void", *store)
    if traced:
        append_note(f, f.field("%site", SITE_PC), "%mask", "%to", size)
    f.do("ret void")
    return f


def _partial(f: LoopHelper, element: str, rows: str, full: str) -> None:
    """Read the bytes of the lanes that read some of theirs."""
    width = int(element[1:]) // 8
    with f.loop(32) as (lane, _):
        number = f.op(f"trunc i64 {lane} to i32")
        bytes_ = f.widen(f.extract("i32", "%given", number))
        rest = f.i32("and", "%mask", f.i32("xor", full, -1))
        mine = f.i32("and", f.i32("lshr", rest, number), 1)
        asked = f.op(f"and i1 {f.i32('icmp ne', mine, 0)}, {f.i64('icmp ne', bytes_, 0)}")
        read, done = f.fresh("read"), f.fresh("done")
        f.branch(asked, read, done)
        f.label(read)
        at = f.extract("i64", "%from", number)
        host = f.helper(
            ("span", "global"), "ptr",
            ("ptr", "%w"), ("ptr", "%site"), ("i64", at), ("i64", bytes_), ("i32", number),
        )  # fmt: skip
        good = f.fresh("good")
        f.branch(f.op(f"icmp eq ptr {host}, null"), done, good)
        f.label(good)
        with f.loop(bytes_) as (k, _):
            row, inside = f.i64("udiv", k, width), f.i64("urem", k, width)
            line = f.i64("add", f.i64("mul", row, 32), lane)
            to = f.at("i8", rows, f.i64("add", f.i64("mul", line, width), inside))
            f.store("i8", f.load("i8", f.at("i8", host, k)), to)
        f.jump(done)
        f.label(done)
