"""Loads and stores of the interpreter."""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.instructions import vector_length
from ppt_gpu.ptx.module import Imm, Instruction, Operand, items_of
from ppt_gpu.ptx.operations import space_of
from reference.interpreter.access import Access, access_of, record
from reference.interpreter.block import LANES
from reference.interpreter.warp import Execute, Warp, is_signed, signed, type_of, unsupported, width_of

Elements = list[list[int]]  # [elements][32] unsigned values of any width
TOUCHED_BYTES = 128  # that discard and applypriority work on


def read_elements(warp: Warp, operand: Operand, kind: str) -> Elements:
    """The elements of a source operand as values of `kind`."""
    if kind == "b128":
        return [warp.read_wide(item) for item in items_of(operand)]
    return [warp.read_typed(item, kind).tolist() for item in items_of(operand)]


def write_elements(warp: Warp, operand: Operand, kind: str, elements: Elements) -> None:
    """Give the elements of a destination their values; a wider register takes the sign of signed types."""
    for item, row in zip(items_of(operand), elements, strict=True):
        if kind == "b128":
            warp.write_wide(item, row)
            continue
        bits = np.array(row, np.uint64)
        warp.write(item, signed(bits, width_of(kind)).view(np.uint64) if is_signed(kind) else bits)


def load(warp: Warp, ins: Instruction) -> None:
    """ld, ldu: signed values fill a wider register with their sign, all others with zeros."""
    count, kind = vector_length(ins), type_of(ins)
    size = width_of(kind) // 8
    access = access_of(warp, ins, ins.operands[1], count * size)
    record(warp, ins, access)
    fill_elements(warp, ins.operands[0], kind, count, access)


def fill_elements(warp: Warp, destination: Operand, kind: str, count: int, access: Access) -> None:
    """Load `count` elements into a destination; lanes without a place get zeros."""
    size = width_of(kind) // 8
    elements: Elements = [[0] * LANES for _ in range(count)]
    for lane in access.lanes():
        data = access.load(lane)
        for i in range(count):
            elements[i][lane] = int.from_bytes(data[i * size : (i + 1) * size], "little")
    write_elements(warp, destination, kind, elements)


def store(warp: Warp, ins: Instruction) -> None:
    """st: where lanes write the same bytes the highest lane wins."""
    if "bulk" in ins.modifiers:
        from reference.interpreter.bulk import bulk

        bulk(warp, ins)
        return
    count, kind = vector_length(ins), type_of(ins)
    size = width_of(kind) // 8
    if space_of(ins.modifiers) == "constant":
        raise PptError(f"the {space_of(ins.modifiers)} space cannot be written")
    access = access_of(warp, ins, ins.operands[0], count * size)
    access.only_in(("global", "shared", "local", "frame"))
    record(warp, ins, access)
    keep_elements(warp, ins.operands[1], kind, access)
    complete_async(warp, ins, count * size)


def complete_async(warp: Warp, ins: Instruction, size: int) -> None:
    """st.async, red.async: the transfer of `size` bytes a lane is done, which its mbarrier counts if it has one."""
    from reference.interpreter.asynchronous import complete_bytes

    if "async" in ins.modifiers and len(ins.operands) > 2:
        complete_bytes(warp, ins.operands[2], size)


def keep_elements(warp: Warp, source: Operand, kind: str, access: Access) -> None:
    """Store the elements of a source operand; where lanes write the same bytes the highest lane wins."""
    elements = read_elements(warp, source, kind)
    for lane in access.lanes():
        access.store(lane, b"".join(row[lane].to_bytes(width_of(kind) // 8, "little") for row in elements))


def touch(warp: Warp, ins: Instruction) -> None:
    """discard, applypriority: no effect on values, but the bytes must be aligned and exist."""
    size = ins.operands[1]
    if not isinstance(size, Imm) or size.value != TOUCHED_BYTES:
        raise unsupported(ins, f"another size than {TOUCHED_BYTES}")
    access_of(warp, ins, ins.operands[0], TOUCHED_BYTES).only_in(("global",))


MEMORY: dict[str, Execute] = {
    **dict.fromkeys(("ld", "ldu"), load),
    **dict.fromkeys(("discard", "applypriority"), touch),
    "st": store,
}
