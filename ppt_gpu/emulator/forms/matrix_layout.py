"""Matrix fragments: which element of a matrix each lane holds, in which register and which bits.

Source: PTX ISA 9.0, "Matrix Fragments for mma.*", "Register Fragments and Shared Memory Matrix Layouts" (wgmma). With
g = lane / 4 and t = lane % 4, all shapes but m8n8k4.f16 follow one rule. A register holds P elements; 4 P of them side
by side along K, P a lane, are a chunk:

    A [M, K]   register r: row g + 8 (r % (M / 8)),  columns 4 P (r / (M / 8)) + P t + 0 .. P-1
    B [K, N]   register r: rows 4 P (r % chunks) + P t + 0 .. P-1,  column g + 8 (r / chunks)
    C [M, N]   element i: row g + 8 (i / 2 % (M / 8)),  column 8 (i / (2 M / 8)) + 2 t + i % 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
LANES = np.arange(32)
GROUP, THREAD = LANES >> 2, LANES & 3


@dataclass(frozen=True, eq=False)
class Fragment:
    """A matrix spread over the lanes of a warp."""

    place: Places  # [registers, elements of a register, 32] index of the element in the dense matrix, row by row
    bits: int  # of an element
    width: int  # of a register: 32 or 64

    @property
    def registers(self) -> int:
        return self.place.shape[0]

    @property
    def each(self) -> int:
        """Elements of a register."""
        return self.place.shape[1]

    @property
    def elements(self) -> int:
        """Elements of the dense matrix (of all matrices that the fragment holds)."""
        return int(self.place.max()) + 1


@lru_cache(maxsize=512)
def fragment_a(m: int, k: int, bits: int) -> Fragment:
    """A row by row [m, k]."""
    width = max(32, bits)
    each, blocks = width // bits, m // 8
    place = np.empty((blocks * (k // (4 * each)), each, 32), np.int64)
    for r, p in np.ndindex(place.shape[:2]):
        row = GROUP + 8 * (r % blocks)
        place[r, p] = row * k + 4 * each * (r // blocks) + each * THREAD + p
    return Fragment(place, bits, width)


@lru_cache(maxsize=512)
def fragment_b(n: int, k: int, bits: int) -> Fragment:
    """B row by row [k, n]."""
    width = max(32, bits)
    each = width // bits
    chunks = k // (4 * each)
    place = np.empty((chunks * (n // 8), each, 32), np.int64)
    for r, p in np.ndindex(place.shape[:2]):
        row = 4 * each * (r % chunks) + each * THREAD + p
        place[r, p] = row * n + GROUP + 8 * (r // chunks)
    return Fragment(place, bits, width)


@lru_cache(maxsize=512)
def fragment_c(m: int, n: int, bits: int) -> Fragment:
    """C or D row by row [m, n]."""
    width = max(32, bits)
    each, blocks = width // bits, m // 8
    place = np.empty((m * n // 32 // each, each, 32), np.int64)
    for r, p in np.ndindex(place.shape[:2]):
        i = r * each + p
        place[r, p] = (GROUP + 8 * (i // 2 % blocks)) * n + 8 * (i // (2 * blocks)) + 2 * THREAD + i % 2
    return Fragment(place, bits, width)


#: m8n8k4.f16 multiplies four pairs of matrices at once; lanes 4 q .. 4 q + 3 and 16 + 4 q .. hold those of pair q
_PAIR, _LOW, _HIGH = LANES >> 2 & 3, LANES & 3, (LANES >> 4) * 4


@lru_cache(maxsize=8)
def quad_a(layout: str) -> Fragment:
    """A [4 pairs, 8, 4] of m8n8k4.f16."""
    i = np.arange(4)[:, None]
    row, column = (_LOW + _HIGH + 0 * i, i + 0 * _LOW) if layout == "row" else (i + _HIGH, _LOW + 0 * i)
    return Fragment((_PAIR * 32 + row * 4 + column).reshape(2, 2, 32), 16, 32)


@lru_cache(maxsize=8)
def quad_b(layout: str) -> Fragment:
    """B [4 pairs, 4, 8] of m8n8k4.f16."""
    i = np.arange(4)[:, None]
    row, column = (_LOW + 0 * i, i + _HIGH) if layout == "row" else (i + 0 * _LOW, _LOW + _HIGH + 0 * i)
    return Fragment((_PAIR * 32 + row * 8 + column).reshape(2, 2, 32), 16, 32)


@lru_cache(maxsize=8)
def quad_c(bits: int) -> Fragment:
    """C or D [4 pairs, 8, 8] of m8n8k4.f16."""
    i = np.arange(8)[:, None]
    if bits == 16:
        row, column = _LOW + _HIGH + 0 * i, i + 0 * _LOW
        return Fragment((_PAIR * 64 + row * 8 + column).reshape(4, 2, 32), 16, 32)
    row, column = (LANES & 1) + (i & 2) + _HIGH, (i & 4) + (LANES & 2) + (i & 1)
    return Fragment((_PAIR * 64 + row * 8 + column).reshape(8, 1, 32), 32, 32)


@lru_cache(maxsize=64)
def sparse_bits(chunks: int, selector: int, narrow: bool) -> NDArray[np.int64]:
    """[16 rows, chunks] bit of the metadata (32 lane + bit) at which the four bits of a chunk of a sparse A begin.

    `narrow`: 8- and 4-bit elements, where a lane holds 32 bits of one row; otherwise it holds 16 bits of row g and 16
    of row g + 8 (PTX ISA, "Sparse matrix storage" and the metadata figures of mma.sp).
    """
    row, chunk = np.arange(16)[:, None], np.arange(chunks)[None, :]
    below = row // 8
    if narrow:
        lane = chunk // 8 * 2 + below
        per_selector = chunks // 8 * 2
        return 32 * (row % 8 * 4 + selector * per_selector + lane) + 4 * (chunk % 8)
    per_selector = chunks // 4
    return 32 * (row % 8 * 4 + selector * per_selector + chunk // 4) + 16 * below + 4 * (chunk % 4)


@lru_cache(maxsize=256)
def permutation(kind: str, *sizes: int) -> Places:
    """Where each element of the result comes from, for moves of matrices between rows, lanes and memory.

    Elements are counted in the order of registers in memory: register, lane, part of the register. Kinds (PTX ISA,
    "ldmatrix", "stmatrix", "movmatrix", "wmma.load"), elements of 16 bits unless said otherwise:

    "load", "load_trans" (matrices): 16 B rows, one a lane, to fragments; "store", "store_trans": back
    "bytes" (matrices): as "load_trans", with 16 x 16 matrices of 8-bit elements
    "turn": the transpose of one fragment
    "a", "b", "c" + "row" or "col" (m, n, k, bits, unit): lines of a matrix in memory to a wmma fragment, in elements
    of `unit` bits; "to" + the same: back
    """
    if kind in _MOVES:
        return _MOVES[kind](*sizes)
    if kind.startswith("to"):
        there = permutation(kind[2:], *sizes)
        back = np.zeros(len(np.unique(there)), np.int64)
        back[there[::-1]] = np.arange(len(there))[::-1]
        return back
    m, n, k, bits, unit = sizes
    fragment, columns = {
        "a": lambda: (fragment_a(m, k, bits), k),
        "b": lambda: (fragment_b(n, k, bits), n),
        "c": lambda: (fragment_c(m, n, bits), n),
    }[kind[0]]()
    rows = fragment.elements // columns
    row, column = np.divmod(fragment.place, columns)
    place = row * columns + column if kind[1:] == "row" else column * rows + row
    place = np.moveaxis(place, 1, 2).ravel()  # [register, lane, part]
    return place[:: unit // bits] // (unit // bits) if unit > bits else place


def _rows_to_fragments(matrices: int, turned: bool) -> Places:
    j, lane, half = np.ogrid[:matrices, :32, :2]
    g, t = lane >> 2, lane & 3
    row, column = (2 * t + half, g) if turned else (g, 2 * t + half)
    return _in_rows(8 * j + row, column).ravel()


def _fragments_to_rows(matrices: int, turned: bool) -> Places:
    word, lane, half = np.ogrid[:4, :32, :2]
    j, row, column = lane >> 3, lane & 7, 2 * word + half
    g, c = (column, row) if turned else (row, column)
    place = ((np.minimum(j, matrices - 1) * 32 + 4 * g + c // 2) * 2 + c % 2).ravel()
    return np.broadcast_to(place, (256,))


def _in_rows(lane: Places, column: Places) -> Places:
    """The place of 16-bit column `column` of the 16 B that `lane` loaded as four words."""
    return (column // 2 * 32 + lane) * 2 + column % 2


def _bytes_to_fragments(matrices: int) -> Places:
    r, lane, part = np.ogrid[: 2 * matrices, :32, :4]
    row, column = 16 * (r // 2) + 4 * (lane & 3) + part, (lane >> 2) + 8 * (r % 2)
    return ((column // 4 * 32 + row) * 4 + column % 4).ravel()


def _turned() -> Places:
    lane, half = np.ogrid[:32, :2]
    g, t = lane >> 2, lane & 3
    return ((4 * (2 * t + half) + g // 2) * 2 + g % 2).ravel()


_MOVES: dict[str, Callable[..., Places]] = {
    "load": lambda matrices: _rows_to_fragments(matrices, False),
    "load_trans": lambda matrices: _rows_to_fragments(matrices, True),
    "store": lambda matrices: _fragments_to_rows(matrices, False),
    "store_trans": lambda matrices: _fragments_to_rows(matrices, True),
    "bytes": _bytes_to_fragments,
    "turn": _turned,
}
