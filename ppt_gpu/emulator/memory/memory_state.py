"""Device memory that is built when a run needs it, and known by a digest before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

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
