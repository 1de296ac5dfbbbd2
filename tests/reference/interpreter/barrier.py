"""Barriers of a block in the interpreter: sixteen, each opens when enough warps have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.wgmma_form import GROUP
from ppt_gpu.emulator.memory.warp_context import BARRIER_OF_CLUSTER, BARRIER_OF_GROUP, BARRIERS
from ppt_gpu.ptx.module import Instruction
from reference.interpreter.block import LANES, Mask
from reference.interpreter.warp import Warp


@dataclass
class Arrival:
    """What a warp brings to a barrier; lanes that come apart from each other bring it together."""

    number: int = 0
    expected: int = 0  # warps; 0: all of the block, or of the warpgroup, that have not exited
    waits: bool = True  # not for bar.arrive
    of_warp: bool = False  # bar.warp.sync: lanes of this warp only
    holds: int = 0  # threads whose predicate held (.red)
    threads: int = 0  # threads that arrived (.red)
    results: list[tuple[Instruction, Mask]] = field(default_factory=list)  # of .red, to be written when it opens

    def add(self, warp: Warp, ins: Instruction) -> None:
        """`warp` executes a barrier of the block with its active lanes."""
        reduces = "red" in ins.modifiers
        operands = list(ins.operands[1:] if reduces else ins.operands)
        predicate = operands.pop() if reduces else None
        lane = int(np.flatnonzero(warp.active)[0])
        numbers = [int(warp.read(operand, 32)[lane]) for operand in operands]
        self.number = numbers[0] if numbers else 0
        if self.number >= 16:
            raise PptError(f"there is no barrier {self.number}: a block has 16")
        self.expected = -(-numbers[1] // LANES) if len(numbers) > 1 else 0
        self.waits, self.of_warp = "arrive" not in ins.modifiers, False
        if predicate is not None:
            self.holds += int(((warp.read(predicate, 1) == 1) & warp.active).sum())
            self.threads += int(warp.active.sum())
            self.results.append((ins, warp.joined.copy()))


class Barriers:
    """The barriers of one block. They count warps, as hardware does."""

    def __init__(self) -> None:
        self.arrived = [0] * BARRIERS  # without waiting
        self.waiting: dict[Warp, Arrival] = {}  # in the order of the block's warps when they open

    def arrive(self, warp: Warp, arrival: Arrival) -> None:
        """`warp` has arrived as a whole."""
        if arrival.waits:
            self.waiting[warp] = arrival
        else:
            self.arrived[arrival.number] += 1

    def open(self, live: Sequence[Warp]) -> None:
        """Let the warps go on whose barrier enough of the `live` warps have reached: after each had its turn."""
        for warp in sorted(self.waiting, key=lambda w: w.number):
            if warp not in self.waiting:
                continue
            number = self.waiting[warp].number
            if number == BARRIER_OF_CLUSTER:
                continue
            here = {w: a for w, a in self.waiting.items() if a.number == number}
            takes = [w for w in live if number < BARRIER_OF_GROUP or w.number // GROUP == number - BARRIER_OF_GROUP]
            if len(here) + self.arrived[number] < (self.waiting[warp].expected or len(takes)):
                continue
            self.arrived[number] = 0
            for other in here:
                del self.waiting[other]
            holds, threads = sum(a.holds for a in here.values()), sum(a.threads for a in here.values())
            for other, arrival in here.items():
                for ins, lanes in arrival.results:
                    value = np.full(LANES, _reduced(ins, holds, threads), np.uint64)
                    other.write_where(ins.operands[0], value, lanes)

    def at_cluster(self) -> bool:
        """Does a warp wait for other blocks of the cluster?"""
        return any(arrival.number == BARRIER_OF_CLUSTER for arrival in self.waiting.values())

    def open_cluster(self) -> None:
        """Let the warps go on that wait for other blocks of the cluster."""
        self.waiting = {w: a for w, a in self.waiting.items() if a.number != BARRIER_OF_CLUSTER}


def _reduced(ins: Instruction, holds: int, threads: int) -> int:
    if "popc" in ins.modifiers:
        return holds
    return int(holds == threads) if "and" in ins.modifiers else int(holds > 0)
