"""The device memory that a workload's first launch finds.

It is built when a run needs it, and known by a digest before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

if TYPE_CHECKING:
    from ppt_gpu.emulator.memory.memory import DeviceMemory


class MemoryState:
    """What a launch finds: the content that the workload describes, changed by the launches before."""

    def __init__(self, build: Callable[[], DeviceMemory], digest: str) -> None:
        self.digest = digest  # of the content
        self._build = build
        self._memory: DeviceMemory | None = None
        self._due: list[Callable[[DeviceMemory], None]] = []
        self._making = RLock()  # launches that are predicted at the same time ask for it

    @property
    def memory(self) -> DeviceMemory:
        """The content itself. Whatever `build` and the changes raise."""
        with self._making:
            if self._memory is None:
                self._memory = self._build()
            while self._due:
                self._memory = replace(self._memory, blank=frozenset())
                self._due.pop(0)(self._memory)
            return self._memory

    def copy(self) -> DeviceMemory:
        """A copy to run in."""
        return self.memory.copy()

    def change(self, how: Callable[[DeviceMemory], None], digest: str) -> None:
        """The content becomes what `how` makes of it, named `digest`; `how` is called when the content is needed."""
        self._due.append(how)
        self.digest = digest


def device_memory(
    module: Module, workload: Workload, contents: Mapping[str, NDArray[Any]], budget: Budget, unread: bool = False
) -> DeviceMemory:
    """Buffers as the workload describes them, or as `contents` gives them by name. PptError when sizes differ.

    unread: it makes no difference what buffers hold, as in `DeviceMemory.build`.
    """
    folder = Path(workload.path).parent
    memory = DeviceMemory.build(
        module, workload.buffers, workload.symbols, directory=folder, budget=budget, textures=workload.textures,
        unread=unread,
    )  # fmt: skip
    left_out = {buffer.name for buffer in workload.buffers} if unread else set()  # a variable may be constant memory
    for name, values in contents.items():
        flat = np.ravel(values, order="K")  # as it lies in memory
        room = memory.bytes_of(name)
        if flat.nbytes != len(room):
            raise PptError(f"contents of '{name}' have {flat.nbytes} bytes, the buffer has {len(room)}")
        if name not in left_out:
            room[:] = flat.view(np.uint8)
    return replace(memory, blank=memory.blank - (set(contents) - left_out))
