"""wgmma.mma_async: what it multiplies, and where its operands lie in shared memory.

A warp of the warpgroup computes 16 of the 64 rows, so each warp's part is executed by itself when it issues; waits and
fences have nothing left to do. Matrices in shared memory lie in blocks of 8 rows of 16, 32, 64 or 128 bytes, whose
16 B pieces are swapped by the address bits above (PTX ISA 9.0, "Shared Memory Matrix Layout", "Matrix Descriptor
Format", "Strides").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.matrix_form import ELEMENT_BITS, Product, shape_of
from ppt_gpu.ptx.module import Imm, Instruction, Vec

DEPTH_BYTES = 32  # of K
GROUP = 4  # warps that multiply together
PIECE = 16  # B that lie side by side in every layout
#: swizzle mode of the descriptor -> bytes of a row of a block
ROW_BYTES = {0: 16, 1: 128, 2: 64, 3: 32}
_SUMS = {"f16": ("f16", "f32"), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",),
         "s8": ("s32",), "u8": ("s32",), "b1": ("s32",)}  # fmt: skip


@dataclass(frozen=True)
class Warpgroup:
    """A wgmma.mma_async. `a_shared`: A is a descriptor too; negated and turned (M- or N-major) operands."""

    product: Product  # of one warp: 16 rows
    a_shared: bool
    negate_a: bool
    negate_b: bool
    turn_a: bool
    turn_b: bool

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in shared memory, of a word of one-bit elements."""
        return 4 if self.product.a == "b1" else ELEMENT_BITS[self.product.a] // 8


def warpgroup(i: Instruction) -> Warpgroup:
    """The form of an instruction. ValueError for one that is not executed, or does not exist."""
    immediates = tuple(int(o.value) for o in i.operands[4:] if isinstance(o, Imm))
    return _warpgroup(i.opcode, not isinstance(i.operands[1], Vec), immediates)


@lru_cache(maxsize=256)
def _warpgroup(opcode: str, a_shared: bool, immediates: tuple[int, ...]) -> Warpgroup:
    words = tuple(opcode.split("."))[1:]
    if "sp" in words:
        raise ValueError("wgmma with a sparse A is not executed: it would need the metadata of the warpgroup")
    m, n, k = shape_of(words)
    types = [word for word in words if word in ELEMENT_BITS]
    if len(types) != 3:
        raise ValueError("it needs the types of D, A and B")
    d, a, b = types
    depth = 256 if a == "b1" else DEPTH_BYTES * 8 // ELEMENT_BITS[a]
    if m != 64 or n % 8 or not 8 <= n <= 256 or k != depth or d not in _SUMS.get(a, ()):
        raise ValueError(f"there is no wgmma of m{m}n{n}k{k} from {a} to {d}")
    product = Product(16, n, k, a, b, d, d, saturate="satfinite" in words, bits="and" if a == "b1" else "")
    scales, turns = immediates[:2], immediates[2:]
    turn_a = bool(turns[0]) if a_shared and len(turns) > 1 else False
    return Warpgroup(
        product, a_shared, scales[:1] == (-1,), scales[1:2] == (-1,), turn_a, bool(turns[-1]) if turns else False
    )


def offsets(rows: int, size: int, turned: bool, mode: int, leading: int, stride: int) -> NDArray[np.int64]:
    """[rows, elements of K] bytes of each element from the descriptor's start address, before swizzling.

    `rows` of A (or columns of B), `size` bytes an element; `mode`, `leading` and `stride` from the descriptor.
    """
    row, k = np.arange(rows)[:, None], np.arange(DEPTH_BYTES // size)[None, :]
    pitch = ROW_BYTES[mode]
    if turned:  # elements of a column of K lie side by side
        wide = pitch // size
        far, near = (stride, leading) if mode == 0 else (leading, stride)
        return row % wide * size + row // wide * far + k % 8 * pitch + k // 8 * near
    along = k * size
    if mode == 0:
        along = along // PIECE * leading + along % PIECE
    return row % 8 * pitch + row // 8 * stride + along


def swizzled(address: NDArray[np.int64], mode: int, base: int) -> NDArray[np.int64]:
    """Addresses with their 16 B pieces swapped; `base`: the base offset of the descriptor."""
    mask = {0: 0, 1: 7, 2: 3, 3: 1}[mode]
    return address ^ (((address >> 7) - base & mask) << 4)


def fields(descriptor: int) -> tuple[int, int, int, int, int]:
    """(start, leading byte offset, stride byte offset, base offset, swizzle mode) of a matrix descriptor."""
    return (
        (descriptor & 0x3FFF) << 4, (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4,
        descriptor >> 49 & 7, descriptor >> 62 & 3,
    )  # fmt: skip
