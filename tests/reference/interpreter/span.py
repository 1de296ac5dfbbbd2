"""Bytes of memory that lie side by side, for instructions of the interpreter that move more than a lane's element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import CLUSTER_SHIFT, in_window
from reference.interpreter.warp import Warp


def resolved(space: str, address: int) -> tuple[str, int]:
    """(space, address in it) of a generic address; other addresses stay as they are."""
    if space != "generic":
        return space, address
    window, offset = in_window(address)
    if window == "local":
        raise PptError(f"address {address:#x} lies in local memory, which this instruction cannot access")
    return ("shared", offset) if window == "shared" else ("global", address)


def span(warp: Warp, space: str, address: int, size: int) -> NDArray[np.uint8]:
    """A writable view of `size` bytes of shared or global memory. PptError when they do not all belong together."""
    if space == "shared":
        shared = warp.block.shared
        if not 0 <= address <= len(shared) - size:
            raise PptError(f"{size} bytes at {address:#x} are outside the {len(shared)} shared bytes")
        return shared[address : address + size]
    memory = warp.launched.memory
    if not memory.holds(address, size):
        raise PptError(f"{size} bytes at {address:#x}, {memory.nearest_buffer(address)}")
    return memory.data[address - memory.base :][:size]


def shared_bytes(warp: Warp, address: int, size: int, align: int) -> NDArray[np.uint8]:
    """A view of aligned bytes of the block's shared memory, or of another block's of the cluster."""
    address &= 0xFFFF_FFFF
    tag, offset = address >> CLUSTER_SHIFT, address & ((1 << CLUSTER_SHIFT) - 1)
    if tag > len(warp.block.cluster):
        raise PptError(f"address {address:#x} is in no block of the cluster, which has {len(warp.block.cluster)}")
    shared = warp.block.cluster[tag - 1].shared if tag else warp.block.shared
    if offset % align or offset + size > len(shared):
        problem = f"not aligned to {align}" if offset % align else f"outside the {len(shared)} shared bytes"
        raise PptError(f"{size} bytes at {address:#x} of shared memory are {problem}")
    return shared[offset : offset + size]
