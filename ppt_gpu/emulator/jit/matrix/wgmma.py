"""wgmma in compiled code: B, and A if it is there, gathered from shared memory in 16 B pieces, then as mma."""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.matrix_form import Product
from ppt_gpu.emulator.forms.wgmma_form import DEPTH_BYTES, PIECE, Warpgroup, warpgroup
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.jit.matrix.matrix import need_whole_warp, put_registers, take_registers
from ppt_gpu.emulator.jit.matrix.matrix_code import multiply, read_fragment, write_fragment
from ppt_gpu.emulator.jit.matrix.matrix_numbers import decoded, number_type
from ppt_gpu.emulator.jit.memory.ranges import SITE_PC
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, vec
from ppt_gpu.emulator.memory.memory import SHARED_WINDOW
from ppt_gpu.emulator.memory.warp_context import Fault, Slot
from ppt_gpu.ptx.module import Instruction, Operand, items_of

A_BYTES = 512  # of A's registers
SWAPPED = 128  # B within which all swizzles swap pieces


@emits("wgmma")
def emit_wgmma(e: Emitter, i: Instruction) -> None:
    """mma_async; fence, commit_group and wait_group have no effect on values."""
    if i.modifiers[0] != "mma_async":
        return
    try:
        form = warpgroup(i)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None
    need_whole_warp(e)
    p = form.product
    fragment = p.fragment_c(p.d)
    d, a, b, keep = i.operands[:4]
    if not e.wants(i.writes):
        _check_places(e, form, a, b)
        return
    rows = e.wide(A_BYTES + 128 * fragment.registers)
    if not form.a_shared:
        put_registers(e, items_of(a), 32, rows, 0)
    put_registers(e, items_of(d), 32, rows, A_BYTES)
    descriptors = [_first(e, a) if form.a_shared else "0", _first(e, b)]
    flags = e.mask_bits(e.read(keep, "pred"))
    key = (
        "wgmma", p.n, p.k, p.a, p.b, p.d, int(p.saturate), *(int(flag) for flag in _flags(form)),
    )  # fmt: skip
    e.helper(
        key, "void",
        ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), ("i64", descriptors[0]), ("i64", descriptors[1]),
        ("i32", flags), ("ptr", rows),
    )  # fmt: skip
    take_registers(e, items_of(d), fragment, e.offset_pointer(rows, A_BYTES))


def _flags(form: Warpgroup) -> tuple[bool, ...]:
    return form.a_shared, form.negate_a, form.negate_b, form.turn_a, form.turn_b


def _check_places(e: Emitter, form: Warpgroup, a: Operand, b: Operand) -> None:
    """Do the matrices lie in shared memory? Nothing is multiplied."""
    for operand, rows, turned, own in ((a, 16, form.turn_a, True), (b, form.product.n, form.turn_b, False)):
        if own and not form.a_shared:
            continue
        key = ("wgmma_place", rows, form.element_bytes, int(turned), int(own))
        e.helper(key, "void", ("ptr", "%w"), ("ptr", e.site()), ("i32", e.exec), ("i64", _first(e, operand)))


def _first(e: Emitter, operand: Operand) -> str:
    return e.extract("i64", e.read(operand, "b64"), "0")


@writes("wgmma")
def write_wgmma(
    n: int, k: int, a: str, b: str, d: str, saturate: int, a_shared: int, negate_a: int, negate_b: int, turn_a: int,
    turn_b: int,
) -> Helper:  # fmt: skip
    """One warp's 16 rows of D = A B + D. %rows: the registers of A, then those of D, which are replaced."""
    p = Product(16, n, k, a, b, d, d, bool(saturate), "and" if a == "b1" else "")
    form = Warpgroup(p, bool(a_shared), bool(negate_a), bool(negate_b), bool(turn_a), bool(turn_b))
    f = LoopHelper("void", "ptr %w", "ptr %site", "i32 %mask", "i64 %a", "i64 %b", "i32 %keep", "ptr %rows")
    f.label("entry")
    number = number_type(a)
    left, right, sums = f.room(number, 16 * p.steps), f.room(number, p.depth * n), f.room(number, 16 * n)
    line, raw = f.room(number, max(64, n) * p.steps), f.room("i8", max(64, n) * DEPTH_BYTES)
    f.branch(f.i32("icmp eq", "%mask", 0), "nobody", "some")
    f.label("nobody")
    f.do("ret void")
    f.label("some")
    fragment = p.fragment_c(d)
    own = f.offset_pointer("%rows", A_BYTES)
    read_fragment(f, fragment, d, own, line, sums)
    _forget(f, number, sums, 16 * n)
    if form.a_shared:
        rank = f.i64("and", f.field("%w", Slot.WARP), 3)
        _gather(f, form, "%a", 16, form.turn_a, raw, first=f.i64("mul", rank, 16))
        _numbers(f, form, a, 16, form.negate_a, raw, line)
        lines = (p.steps, 16) if form.turn_a else (16, p.steps)
        _place(f, number, line, left, *lines, turn=form.turn_a)
    else:
        read_fragment(f, p.fragment_a(), a, "%rows", line, left)
        if form.negate_a:
            _negate(f, number, left, 16 * p.steps)
    _gather(f, form, "%b", n, form.turn_b, raw)
    _numbers(f, form, b, n, form.negate_b, raw, line)
    lines = (p.depth, n) if form.turn_b else (n, p.depth)
    _place(f, number, line, right, *lines, turn=not form.turn_b)
    multiply(f, p, (left, right, sums))
    write_fragment(f, fragment, d, own, line, sums)
    f.do("ret void")
    return f


@writes("wgmma_place")
def write_wgmma_place(rows: int, size: int, turned: int, own: int) -> Helper:
    """A fault where a piece of the matrix that %descriptor names ends outside of shared memory.

    Pieces swap places within 128 B, so that those of the largest distances along each axis say it of most matrices; of
    others each piece is looked at. own: of the 16 rows of the warp in A.
    """
    f = LoopHelper("void", "ptr %w", "ptr %site", "i32 %mask", "i64 %descriptor")
    f.label("entry")
    f.branch(f.i32("icmp eq", "%mask", 0), "nobody", "some")
    f.label("nobody")
    f.do("ret void")
    f.label("some")
    first = f.i64("mul", f.i64("and", f.field("%w", Slot.WARP), 3), 16) if own else "0"
    pieces = _Pieces(f, size, "%descriptor", rows, bool(turned), first)
    f.branch(f.i64("icmp ugt", pieces.beyond(), f.field("%w", Slot.SHARED_BYTES)), "each", "nobody")
    f.label("each")
    with f.loop(pieces.outer) as (i, _), f.loop(pieces.inner) as (j, _):
        _check(f, pieces.place(i, j))
    f.do("ret void")
    return f


def _forget(f: LoopHelper, number: str, sums: str, count: int) -> None:
    """Zeros instead of the old D unless %keep."""
    clear, kept = f.fresh("clear"), f.fresh("kept")
    f.branch(f.i32("icmp eq", f.i32("and", "%keep", 1), 0), clear, kept)
    f.label(clear)
    with f.loop(count // 8) as (index, _):
        f.store(f"<8 x {number}>", "zeroinitializer", f.at(f"<8 x {number}>", sums, index), 4)
    f.jump(kept)
    f.label(kept)


def _gather(
    f: LoopHelper, form: Warpgroup, descriptor: str, rows: int, turned: bool, raw: str, first: str = "0"
) -> None:
    """The 16 B pieces of `rows` rows from `first` on into `raw`: row by row, or K by K where `turned`."""
    pieces = _Pieces(f, form.element_bytes, descriptor, rows, turned, first)
    with f.loop(pieces.outer) as (i, _), f.loop(pieces.inner) as (j, _):
        at = pieces.place(i, j)
        _check(f, at)
        piece = f.load(f"<{PIECE} x i8>", f.at("i8", f.field("%w", Slot.SHARED, "ptr"), at))
        index = f.i64("add", f.i64("mul", i, pieces.inner), j)
        f.store(f"<{PIECE} x i8>", piece, f.at(f"<{PIECE} x i8>", raw, index))


class _Pieces:
    """Where the 16 B pieces of a matrix lie: `wgmma_form.offsets` and `swizzled`, with the descriptor known only here.

    `outer` times `inner` pieces: row by row, or K by K where `turned`.
    """

    def __init__(self, f: LoopHelper, size: int, descriptor: str, rows: int, turned: bool, first: str) -> None:
        self.f, self.size, self.turned, self.first = f, size, turned, first
        part = [f.i64("and", f.i64("lshr", descriptor, shift), mask) for shift, mask in ((0, 0x3FFF), (16, 0x3FFF))]
        self.stride = f.i64("shl", f.i64("and", f.i64("lshr", descriptor, 32), 0x3FFF), 4)
        self.start, self.leading = (f.i64("shl", value, 4) for value in part)
        self.base, mode = f.i64("and", f.i64("lshr", descriptor, 49), 7), f.i64("lshr", descriptor, 62)
        self.plain = f.i64("icmp eq", mode, 0)
        # log2 of the bytes of a row
        self.shift = f.op(f"select i1 {self.plain}, i64 4, i64 {f.i64('sub', '8', mode)}")
        self.mask = f.op(f"select i1 {self.plain}, i64 0, i64 {f.i64('sub', f.i64('lshr', '16', mode), 1)}")
        self.each = PIECE // size
        self.outer, self.inner = (DEPTH_BYTES // size, rows // self.each) if turned else (rows, DEPTH_BYTES // PIECE)

    def place(self, i: str, j: str) -> str:
        """The offset in shared memory of piece j of line i."""
        f = self.f
        if self.turned:
            row = f.i64("add", f.i64("mul", j, self.each), self.first)
            near = f.i64("mul", row, self.size)
            at = self._turned(f.i64("and", near, self._width()), f.i64("lshr", near, self.shift), f.i64("and", i, 7), i)
        else:
            row = f.i64("add", i, self.first)
            at = self._straight(f.i64("and", row, 7), row, j)
        turns = f.i64("and", f.i64("sub", f.i64("lshr", at, 7), self.base), self.mask)
        return f.i64("xor", at, f.i64("shl", turns, 4))

    def beyond(self) -> str:
        """No piece ends behind this offset: the farthest along each axis, and the end of the 128 B that it lies in."""
        f = self.f
        if self.turned:
            near = f.i64("mul", f.i64("add", self.first, self.inner * self.each - 1), self.size)
            at = self._turned(self._width(), f.i64("lshr", near, self.shift), "7", str(self.outer - 1))
        else:
            at = self._straight("7", f.i64("add", self.first, self.outer - 1), str(self.inner - 1))
        return f.i64("add", f.i64("or", at, SWAPPED - 1), 1)

    def _width(self) -> str:
        return self.f.i64("sub", self.f.i64("shl", "1", self.shift), 1)

    def _turned(self, inside: str, across: str, down: str, k: str) -> str:
        """Elements of a column of K lie side by side."""
        f = self.f
        far = f.op(f"select i1 {self.plain}, i64 {self.stride}, i64 {self.leading}")
        step = f.op(f"select i1 {self.plain}, i64 {self.leading}, i64 {self.stride}")
        at = f.i64("add", inside, f.i64("mul", across, far))
        at = f.i64("add", at, f.i64("add", f.i64("shl", down, self.shift), f.i64("mul", f.i64("lshr", k, 3), step)))
        return f.i64("add", at, self.start)

    def _straight(self, down: str, row: str, j: str) -> str:
        f = self.f
        along = f.i64("mul", j, f.op(f"select i1 {self.plain}, i64 {self.leading}, i64 {PIECE}"))
        at = f.i64("add", f.i64("shl", down, self.shift), along)
        at = f.i64("add", at, f.i64("mul", f.i64("lshr", row, 3), self.stride))
        return f.i64("add", at, self.start)


def _check(f: LoopHelper, at: str) -> None:
    """Return with a fault when a piece ends outside of shared memory."""
    bad, good = f.fresh("bad"), f.fresh("good")
    end = f.i64("add", at, PIECE)
    f.branch(f.i64("icmp ugt", end, f.field("%w", Slot.SHARED_BYTES)), bad, good)
    f.label(bad)
    f.helper(
        ("fault",), "void",
        ("ptr", "%w"), ("i64", str(int(Fault.BOUNDS))), ("i64", f.field("%site", SITE_PC)), ("i32", "0"),
        ("i64", f.i64("add", at, SHARED_WINDOW)),
    )  # fmt: skip
    f.do("ret void")
    f.label(good)


def _numbers(f: LoopHelper, form: Warpgroup, kind: str, rows: int, negate: bool, raw: str, line: str) -> None:
    """Decode `rows` rows of elements, 32 at a time."""
    size = form.element_bytes
    number = number_type(kind)
    with f.loop(rows * DEPTH_BYTES // size // 32) as (index, _):
        bits = f.load(vec(f"i{8 * size}"), f.at(vec(f"i{8 * size}"), raw, index))
        if size < 4:
            bits = f.op(f"zext {vec(f'i{8 * size}')} {bits} to {vec('i32')}")
        value = decoded(f, bits, kind)
        if negate:
            value = f.op(f"fneg {vec(number)} {value}")
        f.store(vec(number), value, f.at(vec(number), line, index), 4)


def _negate(f: LoopHelper, number: str, values: str, count: int) -> None:
    with f.loop(count // 8) as (index, _):
        at = f.at(f"<8 x {number}>", values, index)
        f.store(f"<8 x {number}>", f.op(f"fneg <8 x {number}> {f.load(f'<8 x {number}>', at, 4)}"), at, 4)


def _place(f: LoopHelper, number: str, line: str, dense: str, lines: int, length: int, turn: bool) -> None:
    """`lines` lines of `length` numbers as they are, or as columns of the dense matrix."""
    with f.loop(lines) as (i, _), f.loop(length) as (j, _):
        straight = f.i64("add", f.i64("mul", i, length), j)
        index = f.i64("add", f.i64("mul", j, lines), i) if turn else straight
        f.store(number, f.load(number, f.at(number, line, straight), 4), f.at(number, dense, index), 4)
