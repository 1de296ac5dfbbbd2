"""ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store: data moved by the helpers of memory, then permuted."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.matrix_layout import permutation
from ppt_gpu.emulator.forms.matrix_move_form import BlockMove, RowMove, block_move, row_move, shares
from ppt_gpu.emulator.jit.access import SITE_COUNT, SITE_HOST, SITE_PC, SITE_START, Access, address_element
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.jit.matrix.matrix import emit_mma, need_whole_warp, put_registers, take_registers
from ppt_gpu.emulator.jit.memory.memory import address, space_of
from ppt_gpu.emulator.jit.memory.ranges import find
from ppt_gpu.emulator.jit.memory.spaces import PLACES
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, vec
from ppt_gpu.emulator.memory.memory import SHARED_WINDOW
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.ptx.module import Instruction, Operand, items_of

ROWS = 512  # B: four registers of 32 lanes


@emits("ldmatrix", "stmatrix")
def emit_row_move(e: Emitter, i: Instruction) -> None:
    """Every addressing lane moves one 16 B row of a matrix."""
    try:
        form = row_move(i.opcode)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None
    need_whole_warp(e)
    loads = i.base == "ldmatrix"
    rows = e.wide(2 * ROWS)
    other = e.offset_pointer(rows, ROWS)
    mask = e.i32("and", e.exec, (1 << form.lanes) - 1 if form.lanes < 32 else -1)
    where = (vec("i32"), address(e, i.operands[1 if loads else 0], "shared"))
    arguments = [("ptr", "%w"), ("ptr", e.site()), ("i32", mask), where]
    key = ("access", "load" if loads else "store", "shared", "i32", 4, e.traced)
    permute = ("permute", form.bits, form.move, *(() if form.move == "turn" else (form.matrices,)))
    if loads and not e.wants(i.writes):
        e.helper(("access", PLACES["load"], *key[2:]), "void", *arguments)
    elif not loads and not e.keeps("shared"):
        e.helper(("access", PLACES["store"], *key[2:]), "void", *arguments)
    elif loads:
        e.helper(key, "void", *arguments, ("ptr", rows))
        e.helper(permute, "void", ("ptr", rows), ("ptr", other))
        _take(e, items_of(i.operands[0]), form, other)
    else:
        put_registers(e, items_of(i.operands[1]), 32, rows, 0)
        e.helper(permute, "void", ("ptr", rows), ("ptr", other))
        e.helper(key, "void", *arguments, ("ptr", other))


def _take(e: Emitter, operands: Sequence[Operand], form: RowMove, rows: str) -> None:
    for r, operand in zip(range(form.registers), operands, strict=True):
        value = e.op(f"load {vec('i32')}, ptr {e.offset_pointer(rows, 128 * r)}, align 8")
        e.write(operand, "b32", value)


@emits("movmatrix")
def emit_turn(e: Emitter, i: Instruction) -> None:
    """movmatrix.trans: the transpose of one 8 x 8 fragment."""
    need_whole_warp(e)
    rows = e.wide(2 * ROWS)
    other = e.offset_pointer(rows, ROWS)
    put_registers(e, i.operands[1:2], 32, rows, 0)
    e.helper(("permute", 16, "turn"), "void", ("ptr", rows), ("ptr", other))
    e.write(i.operands[0], "b32", e.op(f"load {vec('i32')}, ptr {other}, align 8"))


@writes("permute")
def write_permute(bits: int, kind: str, *sizes: int) -> Helper:
    """Elements of `bits` at %from to their places at %to, by `matrix_layout.permutation`."""
    f = LoopHelper("void", "ptr %from", "ptr %to")
    f.label("entry")
    element = f"i{bits}"
    places = permutation(kind, *sizes)
    table = f.table("i32", places.tolist())
    with f.loop(len(places)) as (index, _):
        place = f.widen(f.load("i32", f.at("i32", table, index), 4))
        f.store(element, f.load(element, f.at(element, "%from", place)), f.at(element, "%to", index))
    f.do("ret void")
    return f


# wmma -----------------------------------------------------------------------------------------------------------------


@emits("wmma")
def emit_wmma(e: Emitter, i: Instruction) -> None:
    if "load" in i.modifiers:
        _emit_load(e, i)
    elif "store" in i.modifiers:
        _emit_store(e, i)
    else:
        emit_mma(e, i)


def _emit_load(e: Emitter, i: Instruction) -> None:
    form = _block(i)
    buffer, registers = _block_rooms(e, form)
    if not e.wants(i.writes):
        _lines(e, i, form, PLACES["load"], i.operands[1], i.operands[2:], buffer)
        return
    _lines(e, i, form, "load", i.operands[1], i.operands[2:], buffer)
    e.helper(("permute", form.unit, *form.key), "void", ("ptr", buffer), ("ptr", registers))
    take_registers(e, items_of(i.operands[0]), form.fragment, registers)


def _emit_store(e: Emitter, i: Instruction) -> None:
    form = _block(i)
    buffer, registers = _block_rooms(e, form)
    if not e.keeps(space_of(e, i)):
        _lines(e, i, form, PLACES["store"], i.operands[0], i.operands[2:], buffer)
        return
    put_registers(e, items_of(i.operands[1])[: form.fragment.registers], form.fragment.width, registers, 0)
    kind, *sizes = form.key
    e.helper(("permute", form.unit, f"to{kind}", *sizes), "void", ("ptr", registers), ("ptr", buffer))
    _lines(e, i, form, "store", i.operands[0], i.operands[2:], buffer)


def _block(i: Instruction) -> BlockMove:
    try:
        return block_move(i.opcode)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None


def _block_rooms(e: Emitter, form: BlockMove) -> tuple[str, str]:
    size = form.lines * form.line_bytes
    need_whole_warp(e)
    start = e.wide(2 * size)
    return start, e.offset_pointer(start, size)


def _lines(
    e: Emitter, i: Instruction, form: BlockMove, kind: str, place: Operand, stride: Sequence[Operand], buffer: str
) -> None:
    """Move the lines of the matrix between memory and `buffer`."""
    space = space_of(e, i).removesuffix("-cluster")
    if space not in ("global", "shared", "generic"):
        raise Unsupported(f"matrices in {space} memory")
    where = address(e, place, space)
    if stride:
        lane = e.call("i32", "llvm.cttz.i32", ("i32", e.exec), ("i1", "false"))
        pitch = e.widen(e.extract("i32", e.read(stride[0], "b32"), e.i32("and", lane, 31)))
        pitch = e.i64("lshr", e.i64("mul", pitch, 1 if i.opcode.endswith(".b1") else form.bits), 3)
    else:
        pitch = str(form.line_bytes)
    by_eights = form.by_eights and kind in ("load", PLACES["load"])
    key = ("lines", kind, space, form.lines, form.line_bytes, by_eights, e.traced)
    e.helper(
        key, "void",
        ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), (vec(address_element(space)), where), ("i64", pitch),
        ("ptr", buffer),
    )  # fmt: skip


class Lines(Access, LoopHelper):
    """A move of whole lines, of which the lowest lane gives the first address."""

    def empty(self) -> None:
        self.do("ret void")


@writes("lines")
def write_lines(kind: str, space: str, lines_: int, line_bytes: int, by_eights: bool, traced: bool) -> Helper:
    """`lines_` lines of `line_bytes`, %pitch bytes apart, between memory and %data.

    Recorded as one access: each lane moves the same share of the matrix, as `shares` tells.
    """
    f = Lines("void", space, "i8", 1, traced, "i64 %pitch", "ptr %data")
    f.start_all()
    if space == "generic":
        _generic(f, kind, lines_, line_bytes, by_eights)
        return f
    of_lanes = shares(lines_, line_bytes, by_eights and space == "shared")
    numbers = f"<{', '.join(f'i64 {line}' for line, _ in of_lanes)}>"
    inside = f"<{', '.join(f'i64 {byte}' for _, byte in of_lanes)}>"
    origin = f.wide(f.a0)
    away = f.v64("add", f.v64("mul", f.splat("i64", "%pitch"), numbers), inside)
    places = f.v64("add", f.splat("i64", origin), away)
    if f.address == "i32":
        places = f.op(f"trunc {vec('i64')} {places} to {vec('i32')}")
    f.record_addresses(f.address, f.a0, places)
    f.jump("lines")
    f.label("lines")
    with f.loop(lines_) as (index, _):
        at = f.i64("add", origin, f.i64("mul", index, "%pitch"))
        host = f.helper(
            ("span", space), "ptr",
            ("ptr", "%w"), ("ptr", "%site"), ("i64", at), ("i64", str(line_bytes)), ("i32", f.first),
        )  # fmt: skip
        bad, good = f.fresh("bad"), f.fresh("good")
        f.branch(f.op(f"icmp eq ptr {host}, null"), bad, good)
        f.label(bad)
        f.empty()
        f.label(good)
        near = f.offset_pointer("%data", f.i64("mul", index, line_bytes))
        if kind not in PLACES.values():
            source, target = (host, near) if kind == "load" else (near, host)
            f.store(f"<{line_bytes} x i8>", f.load(f"<{line_bytes} x i8>", source), target)
    f.empty()
    return f


def _generic(f: Lines, kind: str, lines_: int, line_bytes: int, by_eights: bool) -> None:
    """The space that the one address lies in."""
    top = f.i64("lshr", f.a0, 32)
    f.branch(f.i64("icmp eq", top, SHARED_WINDOW >> 32), "in_shared", "in_global")
    for space in ("shared", "global"):
        f.label(f"in_{space}")
        offsets = "%a" if space == "global" else f.op(f"trunc {vec('i64')} %a to {vec('i32')}")
        where = (vec(address_element(space)), offsets)
        key = ("lines", kind, space, lines_, line_bytes, by_eights, f.part_traced)
        arguments = [("ptr", "%w"), ("ptr", "%site"), ("i32", "%mask"), where, ("i64", "%pitch"), ("ptr", "%data")]
        f.helper(key, "void", *arguments)
        f.empty()


@writes("span")
def write_span(space: str) -> Helper:
    """The host pointer of %bytes bytes from an address on; a fault and null when they are not all there."""
    f = Helper("ptr", "ptr %w", "ptr %site", "i64 %address", "i64 %bytes", "i32 %lane")
    f.label("entry")
    if space == "shared":
        end, size = f.i64("add", "%address", "%bytes"), f.field("%w", Slot.SHARED_BYTES)
        good = f.op(f"and i1 {f.i64('icmp ule', '%address', size)}, {f.i64('icmp ule', end, size)}")
        f.branch(good, "there", "outside")
        f.label("there")
        f.do(f"ret ptr {f.offset_pointer(f.field('%w', Slot.SHARED, 'ptr'), '%address')}")
    else:
        f.branch(_in_site(f), "there", "search")
        f.label("search")
        f.branch(find(f, "%address", "%lane", 1), "again", "failed")
        f.label("failed")
        f.do("ret ptr null")
        f.label("again")
        f.branch(_in_site(f), "there", "outside")
        f.label("there")
        offset = f.i64("sub", "%address", f.field("%site", SITE_START))
        f.do(f"ret ptr {f.as_pointer(f.i64('add', f.field('%site', SITE_HOST), offset))}")
    f.label("outside")
    window = "%address" if space != "shared" else f.i64("add", "%address", SHARED_WINDOW)
    f.helper(
        ("fault",), "void",
        ("ptr", "%w"), ("i64", str(int(Fault.BOUNDS))), ("i64", f.field("%site", SITE_PC)), ("i32", "%lane"),
        ("i64", window),
    )  # fmt: skip
    f.do("ret ptr null")
    return f


def _in_site(f: Helper) -> str:
    """i1: do all the bytes lie in the object that the site knows? Its count is that of single bytes."""
    offset, size = f.i64("sub", "%address", f.field("%site", SITE_START)), f.field("%site", SITE_COUNT)
    first = f.i64("icmp ult", offset, size)
    return f.op(f"and i1 {first}, {f.i64('icmp ule', f.i64('add', offset, '%bytes'), size)}")
