"""The device memory that a workload's first launch finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload


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
