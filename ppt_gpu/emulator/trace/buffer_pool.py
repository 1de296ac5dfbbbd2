"""Large arrays in memory that earlier ones leave behind: the system would clear what it hands out.

To clear memory takes about as long as to write a trace into it. An array from here and all views of it hold a lease on
its memory; when the last of them is gone, the memory waits for the next array of about its size.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = 2 << 20  # B of a large page of the system: addresses in it are translated at once
LEAST = 2 << 20  # B; smaller arrays come from the allocator, which has memory of its own
MOST = 128 << 20  # B that wait for others at most
LARGER = 4  # times as large as what is asked for: memory that is used


class _Memory:
    """One piece, of whole large pages. It is equal to itself only."""

    def __init__(self, size: int) -> None:
        size = -(-size // PAGE) * PAGE
        whole = np.empty(size + PAGE, np.uint8)  # so large, NumPy asks for large pages
        first = -whole.ctypes.data % PAGE
        self.data = whole[first : first + size]


class _Lease:
    """What arrays in a piece of memory keep alive, as NumPy keeps what an array was made from."""

    def __init__(self, memory: _Memory) -> None:
        self.memory = memory
        self.__array_interface__ = memory.data.__array_interface__

    def __del__(self) -> None:
        _give_back(self.memory)


_waiting: list[_Memory] = []
_changing = RLock()  # of one thread, as collecting garbage may end a lease anywhere


def empty(count: int, dtype: Any) -> NDArray[Any]:
    """As np.empty(count, dtype)."""
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < LEAST:
        return np.empty(count, kind)
    memory = np.asarray(_Lease(_taken(size) or _Memory(size)))
    return memory[:size].view(kind)


def _taken(size: int) -> _Memory | None:
    """The smallest piece that is large enough, but not far too large."""
    with _changing:
        found = None
        for memory in list(_waiting):
            fits = size <= memory.data.nbytes <= LARGER * size
            if fits and (found is None or memory.data.nbytes < found.data.nbytes):
                found = memory
        if found is not None:
            _waiting.remove(found)
        return found


def _give_back(memory: _Memory) -> None:
    """The piece waits, and those that have waited longest go where there is too much."""
    with _changing:
        _waiting.append(memory)
        while sum(each.data.nbytes for each in _waiting) > MOST:
            del _waiting[0]


def waiting_bytes() -> int:
    """B that wait for arrays."""
    with _changing:
        return sum(memory.data.nbytes for memory in _waiting)
