"""ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.matrix_layout import permutation
from ppt_gpu.emulator.forms.matrix_move_form import BlockMove, block_move, row_move, shares
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, items_of
from ppt_gpu.ptx.operations import space_of
from reference.interpreter.access import access_of, record
from reference.interpreter.block import LANES
from reference.interpreter.matrix import mma, need_whole_warp
from reference.interpreter.span import resolved, span
from reference.interpreter.warp import Execute, Warp, unsupported

Raw = NDArray[np.uint8]


def _whole(warp: Warp, ins: Instruction) -> bool:
    """Whether the warp executes the instruction. PptError when only some of its lanes do."""
    if warp.active.any():
        need_whole_warp(warp, ins)
    return bool(warp.active.all())


def registers(warp: Warp, operands: Sequence[Operand], width: int = 32) -> Raw:
    """The bytes of registers one after another, lane 0 first in each."""
    rows = [warp.read(operand, width).astype(f"u{width // 8}") for operand in operands]
    return np.concatenate(rows).view(np.uint8)


def write_registers(warp: Warp, operands: Sequence[Operand], raw: Raw, width: int = 32) -> None:
    """Give registers the bytes of `registers`; more registers than bytes repeat them."""
    rows = raw.view(f"u{width // 8}").reshape(-1, LANES).astype(np.uint64)
    for number, operand in enumerate(operands):
        warp.write(operand, rows[number % len(rows)])


def permuted(raw: Raw, bits: int, kind: str, *sizes: int) -> Raw:
    return np.ascontiguousarray(raw.view(f"u{bits // 8}")[permutation(kind, *sizes)]).view(np.uint8)


def move_rows(warp: Warp, ins: Instruction) -> None:
    """ldmatrix, stmatrix: every addressing lane moves a row of 16 B, as four words."""
    try:
        form = row_move(ins.opcode)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None
    everyone = warp.active
    _whole(warp, ins)
    loads = ins.base == "ldmatrix"
    warp.active = everyone & (np.arange(LANES) < form.lanes)
    access = access_of(warp, ins, ins.operands[1 if loads else 0], 16)
    record(warp, ins, access)
    lanes = np.flatnonzero(warp.active).tolist()
    warp.active = everyone
    words = np.zeros((4, LANES, 4), np.uint8)  # word, lane, byte
    if loads:
        for lane in lanes:
            words[:, lane] = np.frombuffer(access.load(lane), np.uint8).reshape(4, 4)
        write_registers(warp, items_of(ins.operands[0]), permuted(words.ravel(), form.bits, form.move, form.matrices))
        return
    raw = permuted(registers(warp, items_of(ins.operands[1])), form.bits, form.move, form.matrices)
    words[:] = raw.reshape(4, LANES, 4)
    for lane in lanes:
        access.store(lane, words[:, lane].tobytes())


def turn(warp: Warp, ins: Instruction) -> None:
    """movmatrix.trans."""
    if _whole(warp, ins):
        write_registers(warp, ins.operands[:1], permuted(registers(warp, ins.operands[1:2]), 16, "turn"))


def load_matrix(warp: Warp, ins: Instruction) -> None:
    """wmma.load: the lines of a matrix to a fragment."""
    form = _block(ins)
    lines = _lines(warp, ins, form, ins.operands[1], ins.operands[2:], form.by_eights)
    if lines:
        raw = permuted(np.concatenate(lines), form.unit, *form.key)
        write_registers(warp, items_of(ins.operands[0]), raw, form.fragment.width)


def store_matrix(warp: Warp, ins: Instruction) -> None:
    """wmma.store: a fragment to the lines of a matrix."""
    form = _block(ins)
    lines = _lines(warp, ins, form, ins.operands[0], ins.operands[2:])
    if lines:
        raw = registers(warp, items_of(ins.operands[1])[: form.fragment.registers], form.fragment.width)
        kind, *sizes = form.key
        data = permuted(raw, form.unit, f"to{kind}", *sizes).reshape(form.lines, form.line_bytes)
        for line, content in zip(lines, data, strict=True):
            line[:] = content


def _block(ins: Instruction) -> BlockMove:
    try:
        return block_move(ins.opcode)
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None


def _lines(
    warp: Warp, ins: Instruction, form: BlockMove, place: Operand, stride: Sequence[Operand], by_eights: bool = False
) -> list[Raw]:
    """Views of the matrix's lines; none when the guard is false. Recorded as one access, see `matrix.matrix_move`."""
    asked = space_of(ins.modifiers)
    if not _whole(warp, ins):
        warp.recorder.access(asked if asked != "generic" else "global", np.zeros(LANES, np.uint64), warp.active)
        return []
    assert isinstance(place, Mem)
    base = 0 if place.base is None else int(warp.read(place.base, _width(warp, place))[0])
    space, origin = resolved(asked, base + place.offset)
    pitch = form.line_bytes
    if stride:
        pitch = int(warp.read(stride[0], 32)[0]) * (1 if ins.opcode.endswith(".b1") else form.bits) // 8
    line, inside = np.array(shares(form.lines, form.line_bytes, by_eights and space == "shared")).T
    traced = origin + line * pitch + inside
    warp.recorder.access(space, traced.astype(np.uint64), warp.active)
    return [span(warp, space, origin + k * pitch, form.line_bytes) for k in range(form.lines)]


def _width(warp: Warp, place: Mem) -> int:
    return warp.register_width(place.base) if isinstance(place.base, Reg) else 64


def wmma(warp: Warp, ins: Instruction) -> None:
    if "load" in ins.modifiers:
        load_matrix(warp, ins)
    elif "store" in ins.modifiers:
        store_matrix(warp, ins)
    else:
        mma(warp, ins)


MATRIX_MOVE: dict[str, Execute] = {
    "ldmatrix": move_rows,
    "stmatrix": move_rows,
    "movmatrix": turn,
    "wmma": wmma,
}
