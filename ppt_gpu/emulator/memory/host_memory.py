"""Memory of this process by its address, as compiled code hands it to Python."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


def host_bytes(address: int, size: int) -> NDArray[np.uint8]:
    """A writable view of `size` bytes, which must be there."""
    return np.frombuffer(_buffer(size).from_address(address), np.uint8) if size else np.zeros(0, np.uint8)


def host_words(address: int, count: int) -> NDArray[np.int64]:
    """A writable view of `count` 64-bit words, at least one."""
    return np.frombuffer(_buffer(8 * count).from_address(address), np.int64)


@lru_cache(maxsize=1024)
def _buffer(size: int) -> Any:
    """The type of `size` bytes; to make one takes longer than to use it."""
    return ctypes.c_uint8 * size
