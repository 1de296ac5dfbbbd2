"""wgmma in the interpreter: each warp multiplies its 16 rows when it issues the instruction."""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.wgmma_form import Warpgroup, fields, offsets, swizzled, warpgroup
from ppt_gpu.ptx.module import Instruction, items_of
from reference.interpreter.block import Bits
from reference.interpreter.matrix import multiply, need_whole_warp, read_fragment, write_fragment
from reference.interpreter.matrix_numbers import numbers
from reference.interpreter.warp import Execute, Warp, unsupported


def wgmma(warp: Warp, ins: Instruction) -> None:
    """wgmma.mma_async; at fence and wait_group warps meet (`interp_runner`), commit_group has no effect on values."""
    if ins.modifiers[0] != "mma_async":
        return
    try:
        form = warpgroup(ins)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None
    if not warp.active.any():
        return
    need_whole_warp(warp, ins)
    p = form.product
    if form.a_shared:
        rows = _shared(warp, form, int(warp.read(ins.operands[1], 64)[0]), 64, form.turn_a)
        first = 16 * (warp.number % 4)
        left = rows[first : first + 16].ravel()
    else:
        left = read_fragment(warp, items_of(ins.operands[1]), p.fragment_a())
    right = _shared(warp, form, int(warp.read(ins.operands[2], 64)[0]), p.n, form.turn_b).T
    a, b = numbers(left, p.a).reshape(16, p.steps), numbers(np.ascontiguousarray(right).ravel(), p.b)
    fragment = p.fragment_c(p.d)
    old = numbers(read_fragment(warp, items_of(ins.operands[0]), fragment), p.d)
    if not warp.read(ins.operands[3], 1)[0]:
        old = np.zeros_like(old)
    a = -a if form.negate_a else a
    b = -b if form.negate_b else b
    result = multiply(p, a, b.reshape(p.depth, p.n), old.reshape(16, p.n))
    write_fragment(warp, items_of(ins.operands[0]), fragment, result)


def _shared(warp: Warp, form: Warpgroup, descriptor: int, rows: int, turned: bool) -> Bits:
    """[rows, K] the element bits of a matrix in shared memory."""
    start, leading, stride, base, mode = fields(descriptor)
    size = form.element_bytes
    places = swizzled(start + offsets(rows, size, turned, mode, leading, stride), mode, base)
    shared = warp.block.shared
    if int(places.max()) + size > len(shared):
        raise PptError(f"the matrix at {start:#x} ends outside of the {len(shared)} shared bytes")
    raw = shared[places[..., None] + np.arange(size)]
    return np.ascontiguousarray(raw).view(f"u{size}")[..., 0].astype(np.uint64)


WGMMA: dict[str, Execute] = {"wgmma": wgmma}
