"""Barriers of a block in the interpreter: sixteen, each opens when enough warps have arrived."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ppt_gpu.errors import PptError
from ppt_gpu.exec.interp_warp import LANES, Warp, unsupported
from ppt_gpu.ptx.module import Instruction


@dataclass
class _Barrier:
    """Warps that arrived since it last opened, and those of them that wait."""

    arrived: list[Warp] = field(default_factory=list)
    waiting: list[tuple[Warp, Instruction, np.ndarray]] = field(default_factory=list)
    expected: int = 0  # warps; 0: all of the block that have not exited
    holds: int = 0  # threads whose predicate held (.red)
    threads: int = 0  # threads that arrived (.red)


class Barriers:
    """The barriers of one block. `barrier.sync` counts warps, as hardware does, and a warp arrives as a whole."""

    def __init__(self, warps: list[Warp]) -> None:
        self.live = list(warps)
        self.barriers: dict[int, _Barrier] = {}

    def waiting(self) -> list[Warp]:
        """Warps that may not run."""
        return [warp for barrier in self.barriers.values() for warp, _, _ in barrier.waiting]

    def arrive(self, warp: Warp, ins: Instruction) -> bool:
        """`warp` executes a bar or barrier instruction. Returns whether its turn ends.

        A barrier of the warp (.warp) has nobody to wait for.
        """
        if "warp" in ins.modifiers or not warp.active.any():
            return False
        if "cluster" in ins.modifiers:
            raise unsupported(ins, "the interpreter runs no clusters of blocks")
        reduces = "red" in ins.modifiers
        operands = list(ins.operands[1:] if reduces else ins.operands)
        predicate = operands.pop() if reduces else None
        lane = int(np.flatnonzero(warp.active)[0])
        numbers = [int(warp.read(operand, 32)[lane]) for operand in operands]
        number = numbers[0] if numbers else 0
        if number >= 16:
            raise PptError(f"there is no barrier {number}: a block has 16")
        barrier = self.barriers.setdefault(number, _Barrier())
        barrier.expected = -(-numbers[1] // LANES) if len(numbers) > 1 else 0
        barrier.arrived.append(warp)
        if predicate is not None:
            barrier.holds += int(((warp.read(predicate, 1) == 1) & warp.active).sum())
            barrier.threads += int(warp.active.sum())
        if "arrive" not in ins.modifiers:
            barrier.waiting.append((warp, ins, warp.active.copy()))
        return True

    def exited(self, warp: Warp) -> None:
        """`warp` has ended: nobody waits for it any more."""
        self.live.remove(warp)

    def open(self) -> None:
        """Let the warps go on whose barrier enough warps have reached: after each had its turn."""
        for number in list(self.barriers):
            self._open(number)

    def deadlock(self) -> PptError:
        """The error for warps that wait for ever."""
        number, barrier = next((n, b) for n, b in self.barriers.items() if b.waiting)
        warp, ins, _ = barrier.waiting[0]
        needed = barrier.expected or len(self.live)
        message = f"barrier {number} never opens: {len(barrier.arrived)} of {needed} warps arrived"
        return PptError(message, path=warp.launched.module.path, line=ins.line, column=ins.column)

    def _open(self, number: int) -> None:
        barrier = self.barriers[number]
        needed = barrier.expected or len(self.live)
        if not barrier.arrived or len(barrier.arrived) < needed:
            return
        del self.barriers[number]
        for warp, ins, lanes in barrier.waiting:
            if "red" in ins.modifiers:
                result = self._reduced(ins, barrier)
                warp.write_where(ins.operands[0], np.full(LANES, result, np.uint64), lanes)

    @staticmethod
    def _reduced(ins: Instruction, barrier: _Barrier) -> int:
        if "popc" in ins.modifiers:
            return barrier.holds
        return int(barrier.holds == barrier.threads) if "and" in ins.modifiers else int(barrier.holds > 0)
