"""Matrix products in the interpreter: mma, mma.sp, wmma.mma and wgmma, element by element in the stated order.

Floating-point products are exact and added to the f32 (f64) accumulator one after another in the order of k, each sum
rounded to nearest even; a sum in f16 is kept in f32 and rounded once at the end. Hardware adds several products at a
time with truncation, in an order that NVIDIA does not publish: results differ from it in the last places. Integer
products are exact; .satfinite clamps the final sum. NaN results are the canonical NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.matrix_form import TENSOR_MEMORY, Product, product_of
from ppt_gpu.emulator.forms.matrix_layout import Fragment, sparse_bits
from ppt_gpu.ptx.module import Imm, Instruction, Operand, items_of
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import LANES, Bits
from reference.interpreter.matrix_numbers import numbers
from reference.interpreter.warp import Execute, Warp, unsupported


def read_fragment(warp: Warp, operands: Sequence[Operand], fragment: Fragment) -> Bits:
    """The dense matrix, flat, as the bits of its elements. Registers beyond the fragment's repeat others."""
    dense = np.zeros(fragment.elements, np.uint64)
    mask = np.uint64((1 << fragment.bits) - 1)
    for r in range(fragment.registers):
        word = warp.read(operands[r], fragment.width)
        for p in range(fragment.each):
            dense[fragment.place[r, p]] = word >> np.uint64(p * fragment.bits) & mask
    return dense


def write_fragment(warp: Warp, operands: Sequence[Operand], fragment: Fragment, dense: Bits) -> None:
    """Give the registers of a fragment the elements of a dense matrix."""
    for r, operand in enumerate(operands):
        word = np.zeros(LANES, np.uint64)
        for p in range(fragment.each):
            word |= dense[fragment.place[r % fragment.registers, p]] << np.uint64(p * fragment.bits)
        warp.write(operand, word)


def multiply(product: Product, a: NDArray, b: NDArray, c: NDArray, columns: NDArray[np.int64] | None = None) -> Bits:
    """The bits of D [m n] from the numbers of A [m, steps], B [depth, n] and C [m, n].

    `columns` [m, steps]: the row of B that each element of a sparse A meets.
    """
    rows = np.arange(a.shape[0])[:, None]
    where = np.broadcast_to(np.arange(a.shape[1]), a.shape) if columns is None else columns
    if product.kind in ("s32", "b1"):
        return _integers(product, a, b, c, where)
    kind = "f64" if product.kind == "f64" else "f32"
    total = c.ravel()
    for step in range(a.shape[1]):
        left = np.broadcast_to(a[rows, step], c.shape).ravel()
        total = fp.widen(fp.round_to(fp.fma(left, b[where[:, step]].ravel(), total, kind, "rn"), kind), kind)
    bits = fp.round_to(fp.exactly(total), product.d)
    return np.where(np.isnan(total), np.uint64(fp.canonical_nan(product.d)), bits)


def _integers(product: Product, a: NDArray, b: NDArray, c: NDArray, where: NDArray[np.int64]) -> Bits:
    total = np.zeros(c.shape, np.int64)
    for step in range(a.shape[1]):
        left, right = a[:, step, None], b[where[:, step]]
        if product.bits:
            total += np.bitwise_count((left & right) if product.bits == "and" else (left ^ right)).astype(np.int64)
        else:
            total += left * right
    total = total + c
    if product.saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return (total & 0xFFFFFFFF).astype(np.uint64).ravel()


def columns_of(product: Product, metadata: Bits) -> NDArray[np.int64]:
    """[16, steps] the column of the uncompressed A that each element of a sparse A stands in."""
    places, brings = product.chunk
    narrow = product.a not in ("f16", "bf16", "tf32")
    begin = sparse_bits(product.k // places, product.selector, narrow)
    code = metadata[begin // 32] >> (begin % 32).astype(np.uint64) & np.uint64(15)
    if product.a == "tf32":  # four bits an element: 0b0100 the first of two, 0b1110 the second
        return (np.arange(product.k // 2) * 2 + (code.astype(np.int64) >> 3)).astype(np.int64)
    first, second = (code & np.uint64(3)).astype(np.int64), (code >> np.uint64(2)).astype(np.int64)
    chunk = places * np.arange(product.k // places)
    pair = np.stack([chunk + brings * first, chunk + brings * second], axis=2)[..., None] + np.arange(brings)
    return pair.reshape(16, -1)


def mma(warp: Warp, ins: Instruction) -> None:
    """mma.sync and mma.sp: A, B, C (and metadata, selector) from registers, D to registers."""
    d, a, b, c, *rest = ins.operands
    product = form_of(ins)
    if not warp.active.any():
        return
    metadata = warp.read(rest[0], 32) if product.sparse else None
    need_whole_warp(warp, ins)
    dense = _dense(warp, product, a, b, c, metadata)
    write_fragment(warp, items_of(d), product.fragment_c(product.d), dense)


def form_of(ins: Instruction) -> Product:
    """The product of an instruction. PptError for a combination that does not exist or is not executed."""
    selector = ins.operands[5] if len(ins.operands) > 5 else None
    try:
        return product_of(ins.opcode, int(selector.value) if isinstance(selector, Imm) else 0)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None


def _dense(warp: Warp, product: Product, a: Operand, b: Operand, c: Operand, metadata: Bits | None) -> Bits:
    left = numbers(read_fragment(warp, items_of(a), product.fragment_a()), product.a)
    right = numbers(read_fragment(warp, items_of(b), product.fragment_b()), product.b)
    old = numbers(read_fragment(warp, items_of(c), product.fragment_c(product.c)), product.c)
    columns = None if metadata is None else columns_of(product, metadata)
    count = 4 if product.quad else 1
    shape_a, shape_b = (count, product.m, product.steps), (count, product.depth, product.n)
    parts = zip(left.reshape(shape_a), right.reshape(shape_b), old.reshape(count, product.m, product.n), strict=True)
    return np.concatenate([multiply(product, x, y, z, columns) for x, y, z in parts])


def need_whole_warp(warp: Warp, ins: Instruction) -> None:
    """PptError when only some of the lanes execute the instruction."""
    if not warp.active.all():
        raise PptError(f"'{ins.opcode}' needs all 32 lanes of the warp, {int(warp.active.sum())} execute it")


def tensor_memory(warp: Warp, ins: Instruction) -> None:
    """tcgen05 is refused."""
    raise unsupported(ins, TENSOR_MEMORY)


MATRIX: dict[str, Execute] = {"mma": mma, "tcgen05": tensor_memory}
