"""An array that grows at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.buffer_pool import empty


class Growing:
    """`data[:used]` is the content. Fresh room is not touched, so that unused room costs no memory."""

    def __init__(self, dtype: Any, capacity: int = 1 << 16) -> None:
        self.data: NDArray[Any] = np.empty(capacity, dtype)
        self.used = 0

    def room(self, more: int) -> None:
        """Make sure that `more` elements fit behind the content."""
        if self.used + more > len(self.data):
            new = empty(max(2 * len(self.data), self.used + more), self.data.dtype)
            new[: self.used] = self.data[: self.used]
            self.data = new

    def append(self, values: NDArray[Any]) -> None:
        self.room(len(values))
        self.data[self.used : self.used + len(values)] = values
        self.used += len(values)

    @property
    def content(self) -> NDArray[Any]:
        return self.data[: self.used]

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return self.used * self.data.itemsize
