"""Branches around code that only some lanes run: which become guards, and where lanes that parted meet again.

ptxas has no branch around a short arm: it guards the arm's instructions. Limits and reasons are those of ptxas 13.0,
found with arms of multiply-adds, loads and stores, under conditions that all threads share and that they do not.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from ppt_gpu.machine.values import is_pure
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import access_kind, is_barrier, is_branch, is_call, is_exit, memory_space, operation
from ppt_gpu.ptx.liveness import live_out
from ppt_gpu.ptx.module import Instruction, Kernel, Special

#: machine instructions of an arm that becomes guarded: where all lanes go the same way, where they may part
SHORT, SHORT_DIVERGENT = 6, 8
#: PTX instructions between two conditions of one guarded arm, as in `if (a && b)`
BETWEEN = 5
#: special registers that differ between the lanes of a warp
_LANES = ("tid.", "laneid", "lanemask", "clock")
_FREE = frozenset(("mov", "cvta"))


class Arms:
    """The branches of a kernel."""

    def __init__(self, kernel: Kernel, flow: ControlFlow, branching: Collection[int] = ()) -> None:
        """branching: instructions that branch within, which are under no guard."""
        self.kernel, self.flow, self.branching = kernel, flow, branching
        self.before: list[list[int]] = [[] for _ in flow.block_start]
        for block, following in enumerate(flow.successors):
            for other in following:
                if other < len(self.before):
                    self.before[other].append(block)
        self.branches = [block for block in range(len(flow.block_start)) if self._parts(block)]

    def _code(self, block: int) -> tuple[Instruction, ...]:
        return self.kernel.instructions[self.flow.block_start[block] : self.flow.block_end[block]]

    def _parts(self, block: int) -> bool:
        last = self._code(block)[-1]
        return is_branch(last) and last.guard is not None and len(self.flow.successors[block]) == 2

    @cached_property
    def differing(self) -> set[int]:
        """Registers whose values may differ between the lanes of a warp."""
        found: set[int] = set()
        size = -1
        while len(found) != size:
            size = len(found)
            for instruction in self.kernel.instructions:
                if not found.issuperset(instruction.writes) and (
                    _differs(instruction) or not found.isdisjoint(instruction.reads)
                ):
                    found.update(instruction.writes)
        return found

    @cached_property
    def without(self) -> set[int]:
        """Branches that are not there: guarded arms', and those that a block consists of. As instruction indices.

        The branch before such a block goes where it would, if need be under the opposite condition.
        """
        return self.guarded | {
            self.flow.block_start[block] for block in range(len(self.before)) if self._only_passes(block)
        }

    def _only_passes(self, block: int) -> bool:
        code = self._code(block)
        return len(code) == 1 and is_branch(code[0]) and code[0].guard is None and bool(self.before[block])

    def _ends(self, block: int) -> bool:
        """Does the kernel end where control goes from here?"""
        seen: set[int] = set()
        while block not in seen and self._only_passes(block) and len(self.flow.successors[block]) == 1:
            seen.add(block)
            block = self.flow.successors[block][0]
        return block >= len(self.before) or is_exit(self._code(block)[0])

    @cached_property
    def guarded(self) -> set[int]:
        """Branches that are none: the instructions of their arms are guarded. As instruction indices."""
        found: set[int] = set()
        for block in reversed(self.branches):
            meeting = self.flow.ipdom[block]
            arms = [arm for arm in self.flow.successors[block] if arm != meeting]
            followed = meeting < len(self.before) and self.flow.block_end[meeting] - 1 in found
            if all(
                self._is_short(arm, block, meeting, followed=followed) or self._is_second(arm, block, meeting, found)
                for arm in arms
            ):
                found.add(self.flow.block_end[block] - 1)
                ends = [self.flow.block_end[arm] - 1 for arm in arms]
                found.update(end for end in ends if is_branch(self.kernel.instructions[end]))
        return found

    def _is_short(self, arm: int, branch: int, meeting: int, *, followed: bool) -> bool:
        """followed: where the lanes meet, the branch of another guarded arm ends the block."""
        if arm >= len(self.before) or self.before[arm] != [branch] or self.flow.successors[arm] != (meeting,):
            return False
        code = [i for i in self._code(arm) if i.base not in _FREE and operation(i) != "load.param"]
        code = [i for i in code if not (is_branch(i) and i.guard is None)]
        if any(i.guard is not None or is_branch(i) or is_exit(i) or is_call(i) or is_barrier(i) for i in code):
            return False
        if any(i.index in self.branching for i in code):
            return False
        waits = any(access_kind(i) in ("load", "atomic") and memory_space(i) != "shared" for i in code)
        first = branch == 0 or (self.before[branch] == [0] and self.flow.ipdom[0] == meeting)
        begins = first and not any(access_kind(i) and memory_space(i) != "param" for i in self._code(0))
        if waits and begins and not followed:
            return False  # a kernel begins with it, alone: other arms with loads are guarded like all
        return len(code) <= (SHORT_DIVERGENT if self._may_part(branch) else SHORT)

    @cached_property
    def _alive(self) -> list[int]:
        """Bit set of the registers that are read behind each block."""
        return live_out(self.kernel, self.flow)

    def _is_second(self, arm: int, branch: int, meeting: int, guarded: Collection[int]) -> bool:
        """Does the arm do nothing but find out whether another arm runs, which is guarded and ends where it does?

        As of `if (a && b)`: the second condition is computed whatever the first one is, and the arm has both as guard.
        ptxas has a branch where something else of what is computed for the second is read later.
        """
        if arm >= len(self.before) or self.before[arm] != [branch] or self.flow.block_end[arm] - 1 not in guarded:
            return False
        code = self._code(arm)
        return (
            self.flow.ipdom[arm] == meeting
            and meeting in self.flow.successors[arm]
            and len(code) - 1 <= BETWEEN
            and all(is_pure(i) and i.guard is None and i.index not in self.branching for i in code[:-1])
            and not any(self._alive[arm] >> register & 1 for i in code[:-1] for register in i.writes)
        )

    @cached_property
    def joined(self) -> set[int]:
        """Branches whose condition an instruction of its own joins with the one before it, as instruction indices.

        A comparison takes another condition along. So there is none where the second condition is a single comparison,
        or the first one is one that has just been made.
        """
        found: set[int] = set()
        for block in self.branches:
            meeting, last = self.flow.ipdom[block], self.flow.block_end[block] - 1
            seconds = [arm for arm in self.flow.successors[block] if arm != meeting]
            if last not in self.guarded or len(seconds) != 1:
                continue
            compared = "setp" in (self._made_by(block), self._made_by(seconds[0]))
            if not compared and self._is_second(seconds[0], block, meeting, self.guarded):
                found.add(self.flow.block_end[seconds[0]] - 1)
        return found

    def _made_by(self, block: int) -> str:
        """Of the condition of the branch at the end of the block: which instruction makes it there; "": none."""
        *code, branch = self._code(block)
        made = [i.base for i in code if branch.guard is not None and branch.guard.reg in i.writes]
        return made[-1] if made else ""

    def _may_part(self, block: int) -> bool:
        guard = self._code(block)[-1].guard
        return guard is not None and guard.reg in self.differing

    @cached_property
    def meetings(self) -> set[int]:
        """Blocks where lanes that may have parted meet; not those at which the kernel ends."""
        found = set()
        for block in self.branches:
            meeting = self.flow.ipdom[block]
            if meeting >= len(self.before) or self._ends(meeting):
                continue
            if self._may_part(block) and self.flow.block_end[block] - 1 not in self.guarded:
                found.add(meeting)
        return found


def _differs(instruction: Instruction) -> bool:
    """Does it give lanes different values, whatever it reads?"""
    if any(isinstance(o, Special) and o.name.startswith(_LANES) for o in instruction.operands):
        return True
    kind = access_kind(instruction)
    return kind == "atomic" or (kind == "load" and memory_space(instruction) not in ("param", "constant"))
