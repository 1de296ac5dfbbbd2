"""Helper functions of matrix products: registers to dense matrices, the product, and back to registers.

The order of summation is that of `tests/reference/interpreter/matrix.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.matrix_form import Product
from ppt_gpu.emulator.forms.matrix_layout import Fragment, sparse_bits
from ppt_gpu.emulator.jit.loops import LoopHelper
from ppt_gpu.emulator.jit.matrix.matrix_numbers import decoded, element_bits, encoded, number_type
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, const

TILE = 8  # rows and columns of D that are summed together


def row_bytes(fragment: Fragment) -> int:
    """Bytes of a fragment's registers in memory, 32 lanes each."""
    return fragment.registers * 4 * fragment.width


def key_of(product: Product) -> tuple[object, ...]:
    """The product as the key of a helper function."""
    p = product
    return (
        "matrix", p.m, p.n, p.k, p.a, p.b, p.c, p.d, int(p.saturate), p.bits, int(p.sparse), p.selector, p.a_layout,
        p.b_layout,
    )  # fmt: skip


@writes("matrix")
def write_product(
    m: int, n: int, k: int, a: str, b: str, c: str, d: str, saturate: int, bits: str, sparse: int, selector: int,
    a_layout: str, b_layout: str,
) -> Helper:  # fmt: skip
    """D = A B + C of one warp. %rows: the registers of A, B, C and the metadata one after another; D replaces them."""
    p = Product(m, n, k, a, b, c, d, bool(saturate), bits, bool(sparse), selector, a_layout, b_layout)
    f = LoopHelper("void", "ptr %rows")
    f.label("entry")
    parts = ((p.fragment_a(), a), (p.fragment_b(), b), (p.fragment_c(c), c))
    rooms = [f.room(number_type(kind), fragment.elements) for fragment, kind in parts]
    line = f.room(number_type(a), max(fragment.place.size for fragment, _ in parts))
    where = f.room("i32", m * p.steps) if sparse else ""
    at = 0
    for (fragment, kind), dense in zip(parts, rooms, strict=True):
        read_fragment(f, fragment, kind, f.offset_pointer("%rows", at), line, dense)
        at += row_bytes(fragment)
    if sparse:
        _read_metadata(f, p, f.offset_pointer("%rows", at), where)
    if p.quad:
        with f.loop(4) as (q, _):
            starts = [
                f.at("float", dense, f.i64("mul", q, size)) for dense, size in zip(rooms, (32, 32, 64), strict=True)
            ]
            multiply(f, p, starts, where)
    else:
        multiply(f, p, rooms, where)
    write_fragment(f, p.fragment_c(d), d, "%rows", line, rooms[2])
    f.do("ret void")
    return f


def read_fragment(f: LoopHelper, fragment: Fragment, kind: str, rows: str, line: str, dense: str) -> None:
    """The numbers of a fragment's registers at `rows` into the matrix `dense`; `line`: room in lane order."""
    number = number_type(kind)
    word = f"i{fragment.width}"
    for r in range(fragment.registers):
        value = f.load(f"<32 x {word}>", f.at(f"<32 x {word}>", rows, r), 8)
        for p in range(fragment.each):
            part = decoded(f, element_bits(f, value, kind, p), kind)
            f.store(f"<32 x {number}>", part, f.at(f"<32 x {number}>", line, r * fragment.each + p), 8)
    table = f.table("i32", fragment.place.ravel().tolist())
    with f.loop(fragment.place.size) as (index, _):
        place = f.widen(f.load("i32", f.at("i32", table, index), 4))
        f.store(number, f.load(number, f.at(number, line, index), 4), f.at(number, dense, place), 4)


def write_fragment(f: LoopHelper, fragment: Fragment, kind: str, rows: str, line: str, dense: str) -> None:
    """The matrix `dense` into a fragment's registers at `rows`."""
    number = number_type(kind)
    table = f.table("i32", fragment.place.ravel().tolist())
    with f.loop(fragment.place.size) as (index, _):
        place = f.widen(f.load("i32", f.at("i32", table, index), 4))
        f.store(number, f.load(number, f.at(number, dense, place), 4), f.at(number, line, index), 4)
    word = f"i{fragment.width}"
    for r in range(fragment.registers):
        value = ""
        for p in range(fragment.each):
            part = encoded(
                f, f.load(f"<32 x {number}>", f.at(f"<32 x {number}>", line, r * fragment.each + p), 8), kind
            )
            if p:
                part = f.v32("or", value, f.v32("shl", part, const("i32", p * fragment.bits)))
            value = part
        f.store(f"<32 x {word}>", value, f.at(f"<32 x {word}>", rows, r), 8)


def multiply(f: LoopHelper, p: Product, matrices: Sequence[str], where: str = "") -> None:
    """C += A B in place, for dense matrices A, B, C; `where`: the rows of B for the elements of a sparse A."""
    a, b, c = matrices
    number = number_type(p.a)
    tile = f"<{TILE} x {number}>"
    integer = p.kind in ("s32", "b1")
    with f.loop(p.n // TILE) as (column, _):
        first = f.i64("mul", column, TILE)
        for block in range(0, p.m, TILE):
            places = [f.at(number, c, f.i64("add", first, row * p.n)) for row in range(block, block + TILE)]
            start = [f.load(tile, place, 4) for place in places]
            carried = [(tile, "zeroinitializer" if integer else value) for value in start]
            with f.loop(p.steps, carried) as (step, sums):
                _step(f, p, a, b, where, block, first, step, sums)
            for place, old, total in zip(places, start, sums, strict=True):
                f.store(tile, _with_old(f, p, old, total, tile) if integer else total, place, 4)


def _step(
    f: LoopHelper, p: Product, a: str, b: str, where: str, block: int, first: str, step: str, sums: list[str]
) -> None:
    """One product for each element of a tile of D."""
    number = number_type(p.a)
    tile = f"<{TILE} x {number}>"

    def row_of_b(row: str) -> str:
        return f.load(tile, f.at(number, b, f.i64("add", f.i64("mul", row, p.n), first)), 4)

    right = "" if where else row_of_b(step)
    for i in range(TILE):
        index = f.i64("add", step, (block + i) * p.steps)
        left = f.spread(number, f.load(number, f.at(number, a, index), 4), TILE)
        if where:
            right = row_of_b(f.widen(f.load("i32", f.at("i32", where, index), 4)))
        if p.kind in ("f32", "f64"):
            name = f"llvm.fma.v{TILE}{p.kind}"
            sums[i] = f.call(tile, name, (tile, left), (tile, right), (tile, sums[i]))
            continue
        if p.bits:
            both = f.op(f"{p.bits} {tile} {left}, {right}")
            product = f.call(tile, f"llvm.ctpop.v{TILE}i32", (tile, both))
        else:
            product = f.op(f"mul {tile} {left}, {right}")
        sums[i] = f.op(f"add {tile} {sums[i]}, {product}")


def _with_old(f: LoopHelper, p: Product, old: str, total: str, tile: str) -> str:
    """Integer sums: the products fit 32 bits, adding C wraps or saturates."""
    if p.saturate:
        return f.call(tile, f"llvm.sadd.sat.v{TILE}i32", (tile, old), (tile, total))
    return f.op(f"add {tile} {old}, {total}")


def _read_metadata(f: LoopHelper, p: Product, rows: str, where: str) -> None:
    """The row of B that each element of the sparse A meets: `columns_of` of the interpreter."""
    places, brings = p.chunk
    chunks = p.k // places
    begin = f.table("i32", sparse_bits(chunks, p.selector, p.a not in ("f16", "bf16", "tf32")).ravel().tolist())
    with f.loop(16 * chunks) as (index, _):
        bit = f.load("i32", f.at("i32", begin, index), 4)
        word = f.load("i32", f.at("i32", rows, f.widen(f.i32("lshr", bit, 5))), 4)
        code = f.i32("and", f.i32("lshr", word, f.i32("and", bit, 31)), 15)
        chunk = f.i32("mul", f.op(f"trunc i64 {f.i64('urem', index, chunks)} to i32"), places)
        if p.a == "tf32":
            codes = [f.i32("lshr", code, 3)]
        else:
            codes = [f.i32("mul", half, brings) for half in (f.i32("and", code, 3), f.i32("lshr", code, 2))]
        at = f.i64("mul", index, len(codes) * brings)
        for k, offset in enumerate(codes):
            for extra in range(brings):
                column = f.i32("add", f.i32("add", chunk, offset), extra)
                f.store("i32", column, f.at("i32", where, f.i64("add", at, k * brings + extra)), 4)
