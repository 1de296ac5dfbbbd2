"""Bulk copies and tensor maps in compiled code: the operands of all lanes, then a call of `bulk_copy` in Python.

An instruction moves kilobytes, so the call costs little. Faults end in the warp's row, as those of compiled accesses.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.bulk_form import BulkForm, bulk_form, query_axis
from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.jit.async_copies import note_bulk
from ppt_gpu.emulator.jit.emit import Emitter, emits
from ppt_gpu.emulator.jit.memory.memory import address
from ppt_gpu.emulator.jit.patterns import listed_pattern
from ppt_gpu.emulator.llvm.text import const, vec
from ppt_gpu.emulator.memory.bulk_copy import perform
from ppt_gpu.emulator.memory.host_memory import host_bytes, host_words
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ppt_gpu.emulator.memory.warp_context import SLOTS, Fault, Slot
from ppt_gpu.emulator.trace.record_words import BASE_BYTES, RECORD_BYTES, SPACE_BITS
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Instruction, Mem, Sink, items_of
from ppt_gpu.workload.box import Box, together

#: forms of the instructions compiled so far, are they recorded, does data move; compiled code names them by number
_FORMS: list[tuple[BulkForm, bool, bool]] = []
_OFFSET = (1 << CLUSTER_SHIFT) - 1  # bits of a place in a block's own shared memory


class BulkFault(Exception):
    """An access that cannot be."""

    def __init__(self, code: Fault, address: int) -> None:
        super().__init__(code, address)
        self.code, self.address = code, address


def emit_bulk(e: Emitter, i: Instruction) -> None:
    try:
        form = bulk_form(i)
    except ValueError as reason:
        raise Unsupported(str(reason)) from None
    if form.action == "nothing":
        return
    number = len(_FORMS)
    _FORMS.append((form, e.traced and is_traced(i), e.keeps(form.to_space)))
    rows = e.wide(256 * len(form.operands))
    for k, (_, operand) in enumerate(form.operands):
        value = address(e, operand, "generic") if isinstance(operand, Mem) else e.read(operand, "b64")
        e.do(f"store {vec('i64')} {value}, ptr {e.offset_pointer(rows, 256 * k)}, align 8")
    e.touched_memory = True
    parts = f"ptr %w, i64 {number}, i32 {e.exec}, ptr {rows}, i64 {i.index}"
    e.do(f"call void inttoptr (i64 {_entry()} to ptr)({parts})")


@emits("tensormap")
def emit_map(e: Emitter, i: Instruction) -> None:
    """tensormap.replace and cp_fenceproxy."""
    emit_bulk(e, i)


@emits("clusterlaunchcontrol")
def emit_launch_control(e: Emitter, i: Instruction) -> None:
    """try_cancel, whose answer is no, and queries of an answer: bit 0 says yes, then words are x, y and z."""
    if i.modifiers[0] == "try_cancel":
        emit_bulk(e, i)
        return
    answer = e.read(i.operands[1], "b128")
    if "is_canceled" in i.modifiers:
        e.write(i.operands[0], "pred", e.convert("trunc", "i128", answer, "i1"))
        return
    for axis, item in enumerate(items_of(i.operands[0]), query_axis(i.modifiers)):
        word = e.binary("lshr", "i128", answer, const("i128", 32 * (axis + 1)))
        if not isinstance(item, Sink):
            e.write(item, "b32", e.convert("trunc", "i128", word, "i32") if axis < 3 else "zeroinitializer")


class _Memory:
    """The memory behind a warp's row."""

    def __init__(self, row: NDArray[np.int64]) -> None:
        self.row = row

    def view(self, space: str, address: int, size: int, align: int = 16) -> NDArray[np.uint8]:
        row = self.row
        if space == "shared":
            address &= 0xFFFF_FFFF
            tag, offset = address >> CLUSTER_SHIFT, address & ((1 << CLUSTER_SHIFT) - 1)
            if tag > int(row[Slot.CLUSTER_BLOCKS]) or offset + size > int(row[Slot.SHARED_BYTES]):
                raise BulkFault(Fault.BOUNDS, SHARED_WINDOW + address)
            if offset % align:
                raise BulkFault(Fault.ALIGNMENT, SHARED_WINDOW + address)
            base = int(row[Slot.SHARED])
            if tag:
                base = int(row[Slot.CLUSTER_SHARED]) + (tag - 1) * int(row[Slot.CLUSTER_STRIDE])
            return host_bytes(base + offset, size)
        if address % align:
            raise BulkFault(Fault.ALIGNMENT, address)
        if space == "map" and PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
            offset = address - PARAM_WINDOW
            if offset + size > int(row[Slot.PARAM_BYTES]):
                raise BulkFault(Fault.BOUNDS, address)
            return host_bytes(int(row[Slot.PARAM]) + offset, size)
        ranges = host_words(int(row[Slot.RANGES]), 2 * int(row[Slot.RANGE_COUNT])).reshape(-1, 2)
        inside = int(np.searchsorted(ranges[:, 0], address, side="right")) - 1
        if inside < 0 or address + size > int(ranges[inside, 1]):
            raise BulkFault(Fault.BOUNDS, address)
        return host_bytes(int(row[Slot.HOST]) + address, size)


def _call(row_address: int, number: int, mask: int, rows_address: int, pc: int) -> None:
    """Called by compiled code for all lanes of `mask`."""
    (form, recorded, moves), row = _FORMS[number], host_words(row_address, SLOTS)
    boxes: list[Box] = []
    copied: dict[int, tuple[int, int, int]] = {}
    values = host_words(rows_address, 32 * len(form.operands)).view(np.uint64).reshape(-1, 32)
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        try:
            given = {role: int(values[k, lane]) for k, (role, _) in enumerate(form.operands)}
            box = perform(form, given, _Memory(row), moves)
            boxes += [box] if box else []
            if box and form.signals:
                copied[lane] = (given["to"] & _OFFSET, box.signal[1], box.signal[0])
        except BulkFault as fault:
            _fault(row, fault.code, pc, lane, fault.address)
            return
        except ValueError:
            _fault(row, Fault.OPERANDS, pc, lane, 0)
            return

    if recorded:
        _record(row, together(boxes))
    if form.signals and not form.reduction and row[Slot.COPIES]:
        note_bulk(row, host_words(int(row[Slot.COPIES]), 2), pc, copied)


def _record(row: NDArray[np.int64], box: Box | None) -> None:
    """Append the access of the instruction (`ppt_gpu.emulator.jit.access`), which has made room for it."""
    distances = np.array(box.words() if box else (0,) * 32, np.int64)
    number = listed_pattern()(row.ctypes.data, box.mask if box else 0, distances.ctypes.data)
    header = int(row[Slot.RECORD])
    ctypes.c_uint32.from_address(header).value = number << SPACE_BITS
    host_words(header * (BASE_BYTES // RECORD_BYTES) + int(row[Slot.BASES]), 1)[:] = box.start if box else 0
    row[Slot.RECORD] += RECORD_BYTES


def _fault(row: NDArray[np.int64], code: Fault, pc: int, lane: int, address: int) -> None:
    if row[Slot.FAULT] == 0:
        address -= (address >> 63) << 64
        row[Slot.FAULT], row[Slot.FAULT_PC], row[Slot.FAULT_LANE], row[Slot.FAULT_ADDRESS] = code, pc, lane, address


_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
)  # fmt: skip
_callback = _TYPE(_call)  # kept alive as long as compiled code may call it


@lru_cache(maxsize=1)
def _entry() -> int:
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    assert address is not None
    return address
