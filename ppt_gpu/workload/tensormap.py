"""A tensor map: how cp.async.bulk.tensor cuts boxes from a tensor in global memory, in 128 bytes.

NVIDIA keeps the layout to itself; this is our own, little-endian:

    0 u64 address          8 u8 rank - 1    9 u8 element    10 u8 interleave    11 u8 swizzle    12 u8 fill
    16 u32[5] extents of the tensor, innermost first         36 u32[5] extents of the box
    56 u32[5] steps between the elements taken (0 as 1)      80 u64[4] strides of axes 1 to 4 in bytes

The codes of element, interleave, swizzle and fill are those of tensormap.replace (PTX ISA 9.0, "tensormap.replace").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.workload.box import Box, box_of

BYTES = 128
PIECE = 16  # bytes that stay together
#: code of .elemtype -> PTX type
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "f32", "f32")
ELEMENT_BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2}
SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
FILLS = {"zero": 0, "nan": 1}
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}
_FORMAT = "<Q5B3x5I5I5I4x4Q16x"


@dataclass(frozen=True)
class TensorMap:
    """Axes innermost first; `strides` in bytes, without that of the innermost axis."""

    address: int
    element: int  # code
    extents: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    fill: int = 0

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[ELEMENTS[self.element]]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Elements of a box in shared memory, innermost first."""
        return tuple(-(-extent // max(1, step)) for extent, step in zip(self.box, self.steps, strict=True))

    @cached_property
    def box_bytes(self) -> int:
        return int(np.prod(self.shape)) * self.element_bytes

    @property
    def outside(self) -> int:
        """The bits of elements outside of the tensor."""
        return _NAN.get(ELEMENTS[self.element], 0) if self.fill else 0

    def places(self, corner: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """(global address, is inside the tensor, offset in shared memory before swizzling) of each element of a box.

        corner: coordinates of its first element, innermost first.
        """
        grid = np.indices(self.shape[::-1]).reshape(self.rank, -1)[::-1]
        steps = np.maximum(np.array(self.steps), 1)[:, None]
        at = np.array(corner, np.int64)[:, None] + grid * steps
        inside = ((at >= 0) & (at < np.array(self.extents, np.int64)[:, None])).all(axis=0)
        pitch = np.array([self.element_bytes, *self.strides], np.int64)[:, None]
        offset = np.arange(at.shape[1], dtype=np.int64) * self.element_bytes
        return self.address + (at * pitch).sum(axis=0), inside, offset

    @cached_property
    def pieces(self) -> NDArray[np.int64] | None:
        """[P] how far the 16 B pieces of a box lie in global memory behind its first, in units of 16 B.

        None where elements do not lie side by side.
        """
        if max(self.steps[0], 1) > 1 or any(stride % PIECE for stride in self.strides):
            return None
        far, _, _ = self.places((0,) * self.rank)
        return (far[:: PIECE // self.element_bytes] - self.address) // PIECE

    def start_of(self, corner: tuple[int, ...]) -> int | None:
        """The address of the first element of a box that lies in the tensor; None where a part lies outside."""
        last = (at + (n - 1) * max(1, step) for at, n, step in zip(corner, self.shape, self.steps, strict=True))
        if min(corner) < 0 or any(at >= extent for at, extent in zip(last, self.extents, strict=True)):
            return None
        pitches = (self.element_bytes, *self.strides)
        return self.address + sum(at * pitch for at, pitch in zip(corner, pitches, strict=True))

    def box_at(self, corner: tuple[int, ...]) -> Box | None:
        """What a box from `corner` on covers of the tensor in global memory; None when it lies outside."""
        start, axes = self.address, []
        pitches = (self.element_bytes, *self.strides)
        for at, n, step, extent, pitch in zip(corner, self.shape, self.steps, self.extents, pitches, strict=True):
            apart = max(1, step)
            first = max(0, -(at // apart))
            count = min(n, -((at - extent) // apart)) - first
            if count <= 0:
                return None
            start += (at + first * apart) * pitch
            axes.append((count, apart * pitch))
        return box_of(start, self.element_bytes, axes)


@lru_cache(maxsize=256)
def unpack(raw: bytes) -> TensorMap:
    """The map in 128 bytes. ValueError when they are none."""
    address, rank, element, interleave, swizzle, fill, *rest = struct.unpack(_FORMAT, raw)
    rank += 1
    extents, box, steps, strides = rest[:5], rest[5:10], rest[10:15], rest[15:]
    if rank > 5 or element >= len(ELEMENTS) or swizzle > 3 or fill > 1:
        raise ValueError("the 128 bytes are no tensor map of this program: make one with tensormap(...)")
    if interleave:
        raise ValueError("interleaved tensors are not copied")
    if not all(extents[:rank]) or not all(box[:rank]):
        raise ValueError("the tensor map has an extent of 0")
    found = TensorMap(
        address, element, tuple(extents[:rank]), tuple(box[:rank]), tuple(strides[: rank - 1]), tuple(steps[:rank]),
        swizzle, interleave, fill,
    )  # fmt: skip
    if found.box_bytes > 1 << 18 or found.shape[0] * found.element_bytes % 16:
        raise ValueError("a row of the box must have a multiple of 16 bytes, and the box fit shared memory")
    return found


#: field of tensormap.replace -> (offset, struct code, elements)
FIELDS = {
    "global_address": (0, "<Q", 1), "rank": (8, "<B", 1), "elemtype": (9, "<B", 1), "interleave_layout": (10, "<B", 1),
    "swizzle_mode": (11, "<B", 1), "fill_mode": (12, "<B", 1), "global_dim": (16, "<I", 5), "box_dim": (36, "<I", 5),
    "element_stride": (56, "<I", 5), "global_stride": (80, "<Q", 4), "swizzle_atomicity": (13, "<B", 1),
}  # fmt: skip


def replaced(raw: NDArray[np.uint8], field: str, ordinal: int, value: int) -> None:
    """Put `value` into a field of the map in `raw`. ValueError for a field or an ordinal that there is not."""
    if field not in FIELDS:
        raise ValueError(f"a tensor map has no field .{field}")
    offset, code, count = FIELDS[field]
    if not 0 <= ordinal < count:
        raise ValueError(f".{field} has no element {ordinal}")
    size = struct.calcsize(code)
    data = struct.pack(code, value & ((1 << 8 * size) - 1))
    raw[offset + ordinal * size :][:size] = np.frombuffer(data, np.uint8)
