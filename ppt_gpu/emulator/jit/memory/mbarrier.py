"""mbarrier instructions: the words of `mbarrier_word`, changed one lane after another."""

from __future__ import annotations

from ppt_gpu.emulator.forms.async_form import arrival
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.jit.memory.memory import address
from ppt_gpu.emulator.jit.memory.ranges import SITE_PC
from ppt_gpu.emulator.jit.sync import record_words
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const, vec
from ppt_gpu.emulator.memory.mbarrier_word import BYTES, BYTES_BITS, COUNT, COUNT_BITS, EXPECTED, PARITY
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, SHARED_WINDOW
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.ptx.instructions import form
from ppt_gpu.ptx.module import Instruction, Operand

V, W = vec("i32"), vec("i64")


@emits("mbarrier")
def emit_mbarrier(e: Emitter, i: Instruction) -> None:
    kind = i.modifiers[0]
    if kind == "init":
        count = e.v32("and", e.read(i.operands[1], "u32"), const("i32", COUNT))
        wide = e.widen_lanes(count)
        _set(e, i.operands[0], i, e.v64("or", wide, e.v64("shl", wide, const("i64", EXPECTED))))
        record_words(e, i, _place(e, i.operands[0], i), count)
    elif kind == "inval":
        _set(e, i.operands[0], i, "zeroinitializer")
    elif kind == "pending_count":
        pending = e.v64("and", e.read(i.operands[1], "b64"), const("i64", COUNT))
        e.write(i.operands[0], "b32", e.convert("trunc", "i64", pending, "i32"))
    elif kind in ("test_wait", "try_wait"):
        _wait(e, i)
    else:
        emit_arrival(e, i)


def emit_arrival(e: Emitter, i: Instruction) -> None:
    """arrive, arrive_drop, expect_tx, complete_tx, cp.async.mbarrier.arrive."""
    try:
        found = arrival(i)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None
    count = e.read(found.arrivals, "u32")
    missing = e.read(found.bytes, "u32") if found.bytes is not None else "zeroinitializer"
    if found.completes:
        missing = e.v32("sub", "zeroinitializer", missing)
    states = _update(e, found.place, i, count, count if found.drops else "zeroinitializer", missing)
    given = count if found.bytes is None else e.read(found.bytes, "u32")
    record_words(e, i, _place(e, found.place, i), given)
    if found.destination is not None:
        e.write(found.destination, "b64", states)


def complete_bytes(e: Emitter, i: Instruction, place: Operand, size: int) -> None:
    """Each lane's transfer of `size` bytes is done: st.async, red.async."""
    none = "zeroinitializer"
    _update(e, place, i, none, none, const("i32", -size))


def _wait(e: Emitter, i: Instruction) -> None:
    """Is the phase complete? A warp with lanes that wait gives its turn away."""
    flag, place, phase = i.operands[:3]
    word = _update(e, place, i, "zeroinitializer", "zeroinitializer", "zeroinitializer")
    now = e.v64("lshr", word, const("i64", PARITY))
    if "parity" in i.modifiers:
        asked = e.v64("and", e.widen_lanes(e.read(phase, "u32")), const("i64", 1))
    else:
        asked = e.v64("lshr", e.read(phase, "b64"), const("i64", PARITY))
    ready = e.v64("icmp ne", now, asked)
    waits = e.i32("and", e.exec, e.i32("xor", e.mask_bits(ready), -1))
    fuel = e.field("%w", Slot.FUEL)
    idle = e.i32("icmp ne", waits, 0)
    e.set_field("%w", Slot.FUEL, e.op(f"select i1 {idle}, i64 -1, i64 {fuel}"))
    record_words(e, i, _place(e, place, i), e.convert("trunc", "i64", asked, "i32"))
    e.write(flag, "pred", ready)


def _place(e: Emitter, place: Operand, i: Instruction) -> str:
    """Addresses in shared memory; those of other blocks keep their rank."""
    if (form(i.opcode).space or "generic") == "shared" or "shared" in ".".join(i.modifiers):
        return address(e, place, "shared")
    return e.convert("trunc", "i64", address(e, place, "generic"), "i32")


def _set(e: Emitter, place: Operand, i: Instruction, word: str) -> None:
    where = (V, _place(e, place, i))
    e.helper(("mbarrier", "set"), "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where, (W, word))


def _update(e: Emitter, place: Operand, i: Instruction, arrivals: str, dropped: str, missing: str) -> str:
    """Change the objects. Returns the words before."""
    where = (V, _place(e, place, i))
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), where]
    e.helper(("mbarrier", "update"), "void", *arguments, (V, arrivals), (V, dropped), (V, missing), ("ptr", "%scratch"))
    return e.op(f"load {W}, ptr %scratch, align 8")


@writes("mbarrier")
def write_mbarrier(operation: str) -> Helper:
    """Set or update the words at the lanes' addresses, the lowest lane first; "update" leaves the old ones at %out."""
    more = [f"{W} %word"] if operation == "set" else [f"{V} %arrivals", f"{V} %dropped", f"{V} %missing", "ptr %out"]
    f = LoopHelper("void", "ptr %w", "ptr %site", "i32 %mask", f"{V} %a", *more)
    f.label("entry")
    with f.loop(32) as (index, _):
        lane = f.op(f"trunc i64 {index} to i32")
        mine, done, good = f.fresh("mine"), f.fresh("done"), f.fresh("good")
        f.branch(f.i32("icmp ne", f.i32("and", f.i32("lshr", "%mask", lane), 1), 0), mine, done)
        f.label(mine)
        at = f.extract("i32", "%a", lane)
        host = f.helper(
            ("shared_host",), "ptr",
            ("ptr", "%w"), ("i64", f.field("%site", SITE_PC)), ("i32", at), ("i64", "8"), ("i64", "8"), ("i32", lane),
        )  # fmt: skip
        f.branch(f.op(f"icmp eq ptr {host}, null"), done, good)
        f.label(good)
        if operation == "set":
            f.store("i64", f.op(f"extractelement {W} %word, i32 {lane}"), host, 8)
        else:
            old = f.load("i64", host, 8)
            f.store("i64", old, f.at("i64", "%out", index), 8)
            changes = [f.extract("i32", name, lane) for name in ("%arrivals", "%dropped", "%missing")]
            f.store("i64", _updated(f, old, *changes), host, 8)
        f.jump(done)
        f.label(done)
    f.do("ret void")
    return f


def _updated(f: LoopHelper, word: str, arrivals: str, dropped: str, missing: str) -> str:
    """`mbarrier_word.updated`."""
    pending = f.i64("and", f.i64("sub", word, f.widen(arrivals)), COUNT)
    expected = f.i64("and", f.i64("sub", f.i64("lshr", word, EXPECTED), f.widen(dropped)), COUNT)
    change = f.op(f"sext i32 {missing} to i64")
    bytes_ = f.i64("and", f.i64("add", f.i64("lshr", word, BYTES), change), (1 << BYTES_BITS) - 1)
    complete = f.i64("icmp eq", f.i64("or", pending, bytes_), 0)
    pending = f.op(f"select i1 {complete}, i64 {expected}, i64 {pending}")
    flip = f.op(f"select i1 {complete}, i64 {-(1 << PARITY)}, i64 0")
    parity = f.i64("xor", f.i64("and", word, -(1 << PARITY)), flip)
    low = f.i64("or", pending, f.i64("shl", expected, COUNT_BITS))
    return f.i64("or", f.i64("or", parity, f.i64("shl", bytes_, BYTES)), low)


@writes("shared_host")
def write_shared_host() -> Helper:
    """The host pointer of %bytes aligned bytes of this block's, or another's, shared memory; a fault and null else.

    The rank + 1 of a block of the cluster stands above the offset in %address; 0 there is this block.
    """
    f = Helper("ptr", "ptr %w", "i64 %pc", "i32 %address", "i64 %bytes", "i64 %align", "i32 %lane")
    f.label("entry")
    offset = f.widen(f.i32("and", "%address", (1 << CLUSTER_SHIFT) - 1))
    tag = f.widen(f.i32("lshr", "%address", CLUSTER_SHIFT))
    size, blocks = f.field("%w", Slot.SHARED_BYTES), f.field("%w", Slot.CLUSTER_BLOCKS)
    inside = f.i64("icmp ule", f.i64("add", offset, "%bytes"), size)
    inside = f.op(f"and i1 {inside}, {f.i64('icmp ule', tag, blocks)}")
    aligned = f.i64("icmp eq", f.i64("and", offset, f.i64("sub", "%align", 1)), 0)
    f.branch(f.op(f"and i1 {inside}, {aligned}"), "there", "bad")
    f.label("there")
    own = f.field("%w", Slot.SHARED, "ptr")
    rank = f.i64("sub", tag, 1)
    away = f.i64("mul", rank, f.field("%w", Slot.CLUSTER_STRIDE))
    other = f.offset_pointer(f.field("%w", Slot.CLUSTER_SHARED, "ptr"), away)
    base = f.op(f"select i1 {f.i64('icmp eq', tag, 0)}, ptr {own}, ptr {other}")
    f.do(f"ret ptr {f.offset_pointer(base, offset)}")
    f.label("bad")
    code = f.op(f"select i1 {inside}, i64 {int(Fault.ALIGNMENT)}, i64 {int(Fault.BOUNDS)}")
    window = f.i64("add", f.widen("%address"), SHARED_WINDOW)
    f.helper(("fault",), "void", ("ptr", "%w"), ("i64", code), ("i64", "%pc"), ("i32", "%lane"), ("i64", window))
    f.do("ret ptr null")
    return f


@emits("setmaxnreg")
def emit_register_count(e: Emitter, i: Instruction) -> None:
    """setmaxnreg: registers move between warps, no value changes."""
