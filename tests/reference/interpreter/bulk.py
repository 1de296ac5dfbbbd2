"""Bulk copies and tensor maps in the interpreter: operands of each lane, then `bulk_copy`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.bulk_form import bulk_form, query_axis
from ppt_gpu.emulator.memory.bulk_copy import perform
from ppt_gpu.emulator.memory.memory import in_window
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg, items_of
from ppt_gpu.workload.box import together
from reference.interpreter.access import address_lanes
from reference.interpreter.span import shared_bytes, span
from reference.interpreter.warp import Warp, unsupported


class _Memory:
    """The memory as one warp sees it."""

    def __init__(self, warp: Warp) -> None:
        self.warp = warp

    def view(self, space: str, address: int, size: int, align: int = 16) -> NDArray[np.uint8]:
        if space == "shared":
            return shared_bytes(self.warp, address, size, align)
        if address % align:
            raise PptError(f"address {address:#x} is not aligned to {align} bytes")
        window, offset = in_window(address)
        if space == "map" and window == "param":
            found = np.frombuffer(self.warp.launched.params, np.uint8)[offset:][:size]
            if len(found) < size:
                raise PptError(f"the tensor map at {address:#x} ends outside of the parameters")
            return found
        return span(self.warp, "global", address, size)


def bulk(warp: Warp, ins: Instruction) -> None:
    """cp.async.bulk, cp.reduce.async.bulk, tensormap: the lanes one after another."""
    try:
        form = bulk_form(ins)
        rows = {}
        for role, operand in form.operands:
            place = isinstance(operand, Mem)
            rows[role] = address_lanes(warp, operand) if place else warp.read(operand, _width(warp, operand))
        boxes = []
        for lane in np.flatnonzero(warp.active).tolist():
            boxes.append(perform(form, {role: int(row[lane]) for role, row in rows.items()}, _Memory(warp)))
        if is_traced(ins):
            warp.recorder.box(together([box for box in boxes if box]))
    except ValueError as reason:
        raise unsupported(ins, str(reason)) from None


def launch_control(warp: Warp, ins: Instruction) -> None:
    """clusterlaunchcontrol: try_cancel, whose answer is no, and queries of an answer."""
    if ins.modifiers[0] == "try_cancel":
        bulk(warp, ins)
        return
    answer = warp.read_wide(ins.operands[1])
    if "is_canceled" in ins.modifiers:
        warp.write(ins.operands[0], np.array([value & 1 for value in answer], np.uint64))
        return
    for axis, item in enumerate(items_of(ins.operands[0]), query_axis(ins.modifiers)):
        words = [value >> 32 * (axis + 1) & 0xFFFFFFFF if axis < 3 else 0 for value in answer]
        warp.write(item, np.array(words, np.uint64))


def _width(warp: Warp, operand: Operand) -> int:
    return warp.register_width(operand) if isinstance(operand, Reg) else 64
