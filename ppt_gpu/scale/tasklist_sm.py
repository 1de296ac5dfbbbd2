"""A task list on one SM: call it with block ids and it lowers the list for them and simulates the SM."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu import sm as simulator
from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import inner_sm
from ppt_gpu.scale.blocks.survey import Survey, uniform_survey
from ppt_gpu.scale.cache.block_timing import Feed
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList, bases
from ppt_gpu.tasklist.model import grid_axes
from ppt_gpu.workload.workload import Launch


class TaskListSm(SimulatedSm):
    """A task list: every warp runs the same tasks on addresses, or hit rates, that the list gives."""

    def __init__(self, flat: FlatTaskList, launch: Launch, gpu: Gpu, policy: str | None) -> None:
        tasklist = flat.tasklist
        if launch.threads_per_block != tasklist.block_size:
            raise PptError(
                f"the launch has blocks of {launch.threads_per_block} threads, the task list {tasklist.block_size}",
                path=tasklist.path or None,
            )
        self.flat = flat
        self.axes = grid_axes(tasklist.body)
        super().__init__(launch, gpu, policy, tasklist.registers, tasklist.shared + launch.dynamic_shared)

    def give_out(self, bunched: bool = False) -> None:
        super().give_out(bunched)
        if self.axes > 1:  # at an edge the list's warps reach into the next row, which those of the kernel do not
            self.place = inner_sm(self.spread, self.launch.grid)

    def survey(self, wanted: str | int = "sample") -> Survey:
        """All blocks are the same."""
        return uniform_survey(self.launch.blocks, self.occupancy.warps_per_block, len(self.flat.path))

    def lower(self, blocks: list[int]) -> tuple[Program, Feed]:
        warnings = []
        for own, stated, name in zip(self.launch.grid[: self.axes], self.flat.tasklist.grid, "xyz", strict=False):
            if own == 1 < stated:
                warnings.append(f"one block along {name}, where the task list has steps and {stated} blocks")
        threads = float(len(self.flat.path) * self.occupancy.warps_per_block * self.gpu.sm.warp_size)
        of_global = self.flat.in_global_memory[self.flat.access_task]

        def of_block(position: int) -> NDArray[np.int64]:
            return bases(self.flat, 0, blocks[position], self.launch.grid)[of_global]

        others, notes = self.neighbours(blocks, threads, of_block) if of_global.any() else ([], ())
        program = simulator.lower_tasklist(
            self.flat,
            self.gpu,
            warps_per_block=self.occupancy.warps_per_block,
            blocks=blocks,
            active_sms=self.spread.active_sms,
            grid=self.launch.grid,
            neighbours=[other.block for other in others],
            neighbour_sm=[other.offset for other in others],
            neighbour_stands_for=[other.stands_for for other in others],
            resident=self.spread.resident,
        )
        return program, Feed(tuple(warnings), notes)
