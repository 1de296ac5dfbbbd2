"""Bulk copies, reductions and tensor maps, lane by lane: the one implementation that both engines call.

Copies are made where they are issued: their data is there early, and the barrier that they signal is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.bulk_form import BulkForm, check_reduction
from ppt_gpu.emulator.forms.float_formats import decode, encode
from ppt_gpu.emulator.forms.wgmma_form import swizzled
from ppt_gpu.emulator.memory.mbarrier_word import PLACE, updated
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT
from ppt_gpu.workload.box import Box
from ppt_gpu.workload.tensormap import BYTES, ELEMENTS, PIECE, TensorMap, replaced, unpack

Raw = NDArray[np.uint8]
#: swizzle code of a tensor map -> mode of a matrix descriptor
_MODES = {0: 0, 1: 3, 2: 2, 3: 1}
_PERIOD = 1024  # bytes after which all swizzles repeat
_PIECE = np.dtype(np.complex128)  # moved as it is; the widest type that NumPy moves fast
_NUMPY = {"u8": "u1", "u16": "u2", "s32": "i4", "u32": "u4", "b32": "u4", "u64": "u8", "s64": "i8", "b64": "u8",
          "f16": "f2", "f32": "f4", "f64": "f8", "bf16": "u2"}  # fmt: skip


class Memory(Protocol):
    """What a bulk instruction sees of the memory. Addresses in shared memory may name a block of the cluster."""

    def view(self, space: str, address: int, size: int, align: int = 16) -> Raw:
        """A writable view of `size` bytes. PptError or BulkFault when they are not all there.

        Spaces: "shared", "global", and "map": a tensor map in global memory or in the parameters, by generic address.
        """


def perform(form: BulkForm, values: Mapping[str, int], memory: Memory, moves: bool = True) -> Box | None:
    """Execute the instruction for one lane. Returns what it read or wrote of global memory, an empty box where it only
    tells an mbarrier, None for nothing. Without `moves` all is done but that data goes from one place to another.

    ValueError with the reason for operands that it cannot work with.
    """
    if form.action == "replace":
        raw = memory.view(form.to_space, values["to"], BYTES, 64)
        replaced(raw, form.field, values["field"], values["value"])
    elif form.action == "copy map":
        memory.view("global", values["to"], BYTES, 64)[:] = memory.view("shared", values["from"], BYTES, 64)
    elif form.action == "zero":
        if values["size"] % 8:
            raise ValueError(f"{values['size']} bytes are no multiple of 8")
        for target in _targets(form, values, "to"):
            place = memory.view("shared", target, values["size"], 16 if form.signals else 8)
            if moves:
                place[:] = 0
        _signal(form, values, memory, values["size"])
    elif form.action == "copy":
        size = values["size"] & 0xFFFFFFFF
        if size % 16:
            raise ValueError(f"{size} bytes are no multiple of 16")
        data = memory.view(form.from_space, values["from"], size)
        data = data.copy() if moves else data
        for target in _targets(form, values, "to"):
            place = memory.view(form.to_space, target, size)
            if moves:
                _put(form, place, data, form.kind)
        told = _signal(form, values, memory, size)
        far = {form.from_space: values["from"], form.to_space: values["to"]}.get("global")
        return Box(far, size, (), told) if far is not None and size else None
    elif form.action != "nothing":
        tensor = unpack(memory.view("map", values["map"], BYTES, 64).tobytes())
        corner = tuple(_signed(values[f"x{axis}"]) for axis in range(tensor.rank))
        told = (-1, 0)
        if form.action == "tensor load":
            told = _load(form, values, memory, tensor, corner, moves)
        else:
            _store(form, values, memory, tensor, corner, moves)
        box = tensor.box_at(corner)
        return box._replace(signal=told) if box else Box(0, 0, (), told) if told[1] else None
    return None


def _signed(value: int) -> int:
    return ((value & 0xFFFFFFFF) ^ (1 << 31)) - (1 << 31)


def _targets(form: BulkForm, values: Mapping[str, int], role: str) -> list[int]:
    """The address, or the same offset in every block that a multicast names."""
    address = values[role]
    if not form.multicast:
        return [address]
    offset = address & ((1 << CLUSTER_SHIFT) - 1)
    blocks = (1 << values["cluster"]) - 1 if "cluster" in values else values["blocks"]
    named = [block for block in range(16) if blocks >> block & 1]
    return [(block + 1) << CLUSTER_SHIFT | offset for block in named]


def _signal(form: BulkForm, values: Mapping[str, int], memory: Memory, size: int) -> tuple[int, int]:
    """Tell the mbarrier that the bytes have come. Returns `Box.signal`; of several blocks', the first."""
    if not form.signals:
        return -1, 0
    targets = _targets(form, values, "barrier")
    for target in targets:
        word = memory.view("shared", target, 8, 8).view(np.uint64)
        word[0] = updated(int(word[0]), expected_bytes=-size)
    return targets[0] & PLACE, size


def _load(
    form: BulkForm, values: Mapping[str, int], memory: Memory, tensor: TensorMap, corner: tuple[int, ...], moves: bool
) -> tuple[int, int]:
    """A box of the tensor into shared memory. Returns `Box.signal`."""
    whole = _whole(memory, tensor, corner)
    if whole is not None:
        pieces = whole[tensor.pieces] if moves else None
        for target in _targets(form, values, "to"):
            raw = memory.view("shared", target, tensor.box_bytes, 128)
            if moves:
                raw.view(_PIECE)[_order(tensor, target % _PERIOD)] = pieces
        return _signal(form, values, memory, tensor.box_bytes)
    address, inside, offset = tensor.places(corner)
    size = tensor.element_bytes
    box = np.full(len(address), tensor.outside, np.uint64).astype(f"u{size}").view(np.uint8).reshape(-1, size)
    if inside.any():
        low, high = int(address[inside].min()), int(address[inside].max()) + size
        source = memory.view("global", low, high - low, 1)
        if moves:
            box[inside] = source[(address[inside] - low)[:, None] + np.arange(size)]
    for target in _targets(form, values, "to"):
        raw = memory.view("shared", target, tensor.box_bytes, 128)
        if moves:
            raw[_swizzle(tensor, target, offset)[:, None] + np.arange(size)] = box
    return _signal(form, values, memory, tensor.box_bytes)


def _store(
    form: BulkForm, values: Mapping[str, int], memory: Memory, tensor: TensorMap, corner: tuple[int, ...], moves: bool
) -> None:
    """A box from shared memory into the tensor; what lies outside is left out."""
    whole = None if form.reduction else _whole(memory, tensor, corner)
    if whole is not None:
        raw = memory.view("shared", values["from"], tensor.box_bytes, 128)
        if moves:
            whole[tensor.pieces] = raw.view(_PIECE)[_order(tensor, values["from"] % _PERIOD)]
        return
    address, inside, offset = tensor.places(corner)
    size = tensor.element_bytes
    raw = memory.view("shared", values["from"], tensor.box_bytes, 128)
    if not inside.any():
        return
    low, high = int(address[inside].min()), int(address[inside].max()) + size
    target = memory.view("global", low, high - low, 1)
    if not moves:
        return
    box = raw[_swizzle(tensor, values["from"], offset)[:, None] + np.arange(size)]
    places = (address[inside] - low)[:, None] + np.arange(size)
    old = np.ascontiguousarray(target[places])
    _put(form, old.reshape(-1), np.ascontiguousarray(box[inside]).reshape(-1), ELEMENTS[tensor.element])
    target[places] = old


def _whole(memory: Memory, tensor: TensorMap, corner: tuple[int, ...]) -> NDArray[np.complex128] | None:
    """The bytes from the first to the last of a box, by pieces; None where it is not all there, or not in pieces."""
    start = None if tensor.pieces is None else tensor.start_of(corner)
    if start is None or start % PIECE or tensor.pieces is None:
        return None
    return memory.view("global", start, (int(tensor.pieces[-1]) + 1) * PIECE, 1).view(_PIECE)


@lru_cache(maxsize=256)
def _order(tensor: TensorMap, start: int) -> NDArray[np.int64]:
    """[P] where the pieces of a box stand in shared memory from `start` on, which is known up to `_PERIOD`."""
    return _swizzle(tensor, start, np.arange(0, tensor.box_bytes, PIECE, dtype=np.int64)) // PIECE


def _swizzle(tensor: TensorMap, target: int, offset: NDArray[np.int64]) -> NDArray[np.int64]:
    start = target & ((1 << CLUSTER_SHIFT) - 1)
    return swizzled(start + offset, _MODES[tensor.swizzle], 0) - start


def _put(form: BulkForm, old: Raw, new: Raw, kind: str) -> None:
    """Replace the bytes, or combine them element by element."""
    if not form.reduction:
        old[:] = new
        return
    element = form.kind or kind
    check_reduction(form.reduction, element)
    a, b = old.view(_NUMPY[element]), new.view(_NUMPY[element])
    with np.errstate(all="ignore"):
        if element == "bf16":
            x, y = (decode(part.astype(np.uint64), "bf16") for part in (a, b))
            a[:] = encode(_combined(form.reduction, x, y), "bf16").astype(np.uint16)
        else:
            a[:] = _combined(form.reduction, a, b)


def _combined(reduction: str, a: NDArray, b: NDArray) -> NDArray:
    if reduction == "inc":
        return np.where(a >= b, 0, a + 1).astype(a.dtype)
    if reduction == "dec":
        return np.where((a == 0) | (a > b), b, a - 1).astype(a.dtype)
    operations = {"add": np.add, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or}
    return operations.get(reduction, np.bitwise_xor)(a, b)
