"""Bulk copies and tensor maps in the interpreter: operands of each lane, then `bulk_copy`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import PptError
from ppt_gpu.exec.box import together
from ppt_gpu.exec.bulk_copy import perform
from ppt_gpu.exec.bulk_form import bulk_form
from ppt_gpu.exec.interp_access import address_lanes
from ppt_gpu.exec.interp_span import shared_bytes, span
from ppt_gpu.exec.interp_warp import Warp, unsupported
from ppt_gpu.exec.memory import in_window
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction, Mem, Operand, Reg


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


def _width(warp: Warp, operand: Operand) -> int:
    return warp.register_width(operand) if isinstance(operand, Reg) else 64
