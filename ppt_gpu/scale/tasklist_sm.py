"""A task list on one SM: call it with block ids and it lowers the list for them and simulates the SM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu import sm as simulator
from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import inner_sm, spread_grid
from ppt_gpu.scale.blocks.survey import Survey, uniform_survey
from ppt_gpu.scale.cache.block_timing import Feed
from ppt_gpu.scale.occupancy.occupancy import occupancy
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList, bases
from ppt_gpu.tasklist.model import grid_axes
from ppt_gpu.workload.workload import Launch


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskListSm(SimulatedSm):
    """A task list: every warp runs the same tasks on addresses, or hit rates, that the list gives."""

    flat: FlatTaskList

    @classmethod
    def of(cls, flat: FlatTaskList, launch: Launch, gpu: Gpu, policy: str | None) -> TaskListSm:
        """A launch of the list. PptError where its blocks have another size than those of the list."""
        tasklist = flat.tasklist
        if launch.threads_per_block != tasklist.block_size:
            raise PptError(
                f"the launch has blocks of {launch.threads_per_block} threads, the task list {tasklist.block_size}",
                path=tasklist.path or None,
            )
        shared = tasklist.shared + launch.dynamic_shared
        fit = occupancy(gpu, launch.threads_per_block, tasklist.registers, shared)
        spread = spread_grid(launch.blocks, fit.blocks_per_sm, gpu.sm.count)
        # at an edge the list's warps reach into the next row, which those of the kernel do not
        place = inner_sm(spread, launch.grid) if grid_axes(tasklist.body) > 1 else 0
        return cls(
            launch=launch,
            gpu=gpu,
            policy=policy,
            registers=tasklist.registers,
            shared=shared,
            room=tasklist.registers,
            occupancy=fit,
            spread=spread,
            place=place,
            flat=flat,
        )

    def survey(self, wanted: str | int = "sample") -> Survey:
        """All blocks are the same."""
        return uniform_survey(self.launch.blocks, self.occupancy.warps_per_block, len(self.flat.path))

    def lower(self, blocks: list[int]) -> tuple[Program, Feed]:
        warnings, axes = [], grid_axes(self.flat.tasklist.body)
        for own, stated, name in zip(self.launch.grid[:axes], self.flat.tasklist.grid, "xyz", strict=False):
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
