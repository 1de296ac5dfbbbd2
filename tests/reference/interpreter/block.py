"""What the warps of the interpreter share: the launch, and each block's own memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.host.host_calls import Printed
from ppt_gpu.emulator.launch.layout import Layout
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.workload import Dim3, Launch

LANES = 32
Bits = NDArray[np.uint64]  # [32] zero-extended register contents
Mask = NDArray[np.bool_]  # [32]


def lane_bits(lanes: Mask) -> int:
    """A mask of lanes as an integer, lane 0 lowest."""
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())


@dataclass
class Launched:
    """What all blocks of a launch share."""

    module: Module
    kernel: LinkedKernel
    memory: DeviceMemory
    layout: Layout
    params: bytes
    launch: Launch
    notes: dict[int, int] = field(default_factory=dict)  # instruction -> Flag bits, for warnings
    printed: Printed = field(default_factory=Printed)

    @property
    def grid(self) -> Dim3:
        return self.launch.grid

    @property
    def block(self) -> Dim3:
        return self.launch.block

    @property
    def dynamic_shared(self) -> int:
        return self.launch.dynamic_shared


@dataclass
class Block:
    """One block's own memory and place in the grid."""

    launched: Launched
    linear: int  # block id, x fastest
    shared: NDArray[np.uint8]
    local: NDArray[np.uint8]  # [threads, bytes a thread]
    rank: int = 0  # in its cluster
    cluster: list[Block] = field(default_factory=list)  # by rank

    def __post_init__(self) -> None:
        self.cluster = self.cluster or [self]

    @property
    def ctaid(self) -> Dim3:
        x, y, _ = self.launched.grid
        return self.linear % x, self.linear // x % y, self.linear // (x * y)
