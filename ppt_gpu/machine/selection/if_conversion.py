"""Branches around code that only some lanes run: which become guards, and where lanes that parted meet again.

ptxas has no branch around a short arm: it guards the arm's instructions. Limits and reasons are those of ptxas 13.0,
found with arms of multiply-adds, loads and stores, under conditions that all threads share and that they do not.

An arm that loads from global memory may be much longer, as long as there is something else to do until the load is
done: another load, beside the arm, before or behind it, or a few instructions that need nothing of it. Where there is
nothing, even the shortest has a branch. An arm with an atomic always has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

from ppt_gpu.machine.analysis.values import is_pure
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import access_kind, is_barrier, is_branch, is_call, is_exit, memory_space, operation
from ppt_gpu.ptx.linking.liveness import live_out
from ppt_gpu.ptx.module import Instruction, Kernel, Special

#: machine instructions of an arm that becomes guarded: where all lanes go the same way, where they may part
SHORT, SHORT_DIVERGENT = 6, 8
#: machine instructions of an arm that loads from global memory, of one without such loads beside it, and of both
LOADING, BESIDE, TOGETHER = 20, 10, 20
#: instructions that need nothing of an arm's loads, around it, for which ptxas does without the branch
ENOUGH = 3
#: PTX instructions between two conditions of one guarded arm, as in `if (a && b)`
BETWEEN = 5
#: special registers that differ between the lanes of a warp
_LANES = ("tid.", "laneid", "lanemask", "clock")
#: memories whose loads an arm is no longer for
_NEAR = ("param", "constant", "shared")
_FREE = frozenset(("mov", "cvta"))


class Arms:
    """The branches of a kernel."""

    def __init__(
        self,
        kernel: Kernel,
        flow: ControlFlow,
        branching: Collection[int] = (),
        size: Callable[[int], int] | None = None,
    ) -> None:
        """branching: instructions that branch within, which are under no guard.

        size: machine instructions that a block becomes, without branches; None: as many as it has in PTX.
        """
        self.kernel, self.flow, self.branching = kernel, flow, branching
        self.size = size or (lambda block: len(self._work(block)))
        self._known: dict[int, int] = {}  # sizes
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
        while block < len(self.before) and block not in seen and self._only_passes(block):
            seen.add(block)
            block = self.flow.successors[block][0]
        return block >= len(self.before) or is_exit(self._code(block)[0])

    @cached_property
    def guarded(self) -> set[int]:
        """Branches that are none: the instructions of their arms are guarded. As instruction indices."""
        found: set[int] = set()
        for block in reversed(self.branches):
            meeting = self.flow.ipdom[block]
            arms = self.arms_of(block)
            second = len(arms) == 1 and self._is_second(arms[0][-1], block, meeting, found)
            if second or self._are_guarded(block):
                found.add(self.flow.block_end[block] - 1)
                ends = [self.flow.block_end[arm[-1]] - 1 for arm in arms]
                found.update(end for end in ends if is_branch(self.kernel.instructions[end]))
        return found

    def arms_of(self, branch: int) -> list[tuple[int, ...]]:
        """The ways from a branch to where they meet, in the order of the text: one block each, behind one that passes.

        A way through more blocks ends with the first of them.
        """
        meeting = self.flow.ipdom[branch]
        found = []
        for arm in sorted(self.flow.successors[branch]):
            blocks = [arm]
            while arm < len(self.before) and self._only_passes(arm) and self.before[arm] == [branch]:
                branch, (arm,) = arm, self.flow.successors[arm]
                if arm != meeting:
                    blocks.append(arm)
                else:
                    break
            if blocks != [meeting]:
                found.append(tuple(blocks))
        return found

    def _work(self, block: int) -> list[Instruction]:
        """The instructions of a block that do something, but for branches to where control goes next."""
        return [i for i in self._code(block) if _is_work(i) and not (is_branch(i) and i.guard is None)]

    def _are_guarded(self, branch: int) -> bool:
        """Are the arms of a branch guarded, as none of them is but another condition?"""
        loading = [self._loads(arm[-1]) for arm in self.arms_of(branch)]
        return self._are_short(branch) and (sum(loading) != 1 or self._hides(branch))

    def _are_short(self, branch: int) -> bool:
        """Are there arms of which each is one block, of no more instructions than may be guarded?"""
        meeting, arms = self.flow.ipdom[branch], self.arms_of(branch)
        if self._ends(meeting):
            return False  # lanes that do not run the arm leave the kernel, and the arm needs no guard
        if not all(self._may_be_guarded(arm, branch, meeting) for arm in arms):
            return False
        sizes = [self._sizes(arm[-1]) for arm in arms]
        if len(sizes) > 1 and all(sizes):
            sizes[0] += 1  # the arm that the branch does not jump to ends with a jump over the other one
        loading = [self._loads(arm[-1]) for arm in arms]
        if not any(loading):
            return max(sizes) <= (SHORT_DIVERGENT if self._may_part(branch) else SHORT)
        most = [LOADING if loads else BESIDE for loads in loading]
        within = all(size <= limit for size, limit in zip(sizes, most, strict=True))
        return max(sizes) <= LOADING and (within or sum(sizes) <= TOGETHER)

    def _sizes(self, block: int) -> int:
        """As `size`, once."""
        if block not in self._known:
            self._known[block] = self.size(block)
        return self._known[block]

    def _may_be_guarded(self, arm: tuple[int, ...], branch: int, meeting: int) -> bool:
        """Is it one block, of instructions that take a guard?"""
        origin = branch if len(arm) == 1 else arm[-2]
        last = arm[-1]
        if last >= len(self.before) or self.before[last] != [origin] or self.flow.successors[last] != (meeting,):
            return False
        code = self._work(last)
        if any(i.guard is not None or is_branch(i) or is_exit(i) or is_call(i) or is_barrier(i) for i in code):
            return False
        return not any(i.index in self.branching or access_kind(i) == "atomic" for i in code)

    def _loads(self, block: int) -> bool:
        """Does it load from global memory, or what may be?"""
        return any(map(_is_far_load, self._code(block)))

    def _hides(self, branch: int) -> bool:
        """Is there something around the arms to do until their loads are done, which needs nothing of them?

        A load from global memory that nothing waits for in front of the arms, or one behind them; a barrier behind
        them; an access of the next arm, if that is short; a load of the arm before; or a few instructions that do not
        store.
        """
        own = [i for arm in self.arms_of(branch) for i in self._code(arm[-1])]
        needed: set[int] = set()  # by the addresses of the arms' loads
        for i in reversed(own):
            if _is_far_load(i) or not needed.isdisjoint(i.writes):
                needed.update(i.reads)
        count = 0
        for block in self._conditions(branch):
            front = self._in_front(block, needed)
            if front is None or self._is_behind_loads(block, needed):
                return True
            count += front
        behind = self._behind(branch, own)
        return behind is None or (self._is_straight(block) and count + behind >= ENOUGH)

    def _conditions(self, branch: int) -> list[int]:
        """The branch, and in front of it those around it that end where it does."""
        found = [branch]
        while len(self.before[found[-1]]) == 1:
            (first,) = self.before[found[-1]]
            if first not in self.branches or self.flow.ipdom[first] != self.flow.ipdom[branch]:
                break
            found.append(first)
        return found

    def _in_front(self, branch: int, needed: set[int]) -> int | None:
        """Instructions of the block that neither its branch nor the arms' loads nor a store to global memory needs.

        None: a load is one of them. needed: what the loads need; what is needed at the start of the block is added.
        """
        count = 0
        for i in reversed(self._code(branch)):
            if access_kind(i) == "store" and memory_space(i) == "shared":
                continue  # it may come behind the arms' loads
            if not needed.isdisjoint(i.writes) or not (is_pure(i) or access_kind(i) == "load"):
                needed.update(i.reads)
                count += is_barrier(i)
            elif _is_far_load(i):
                return None
            else:
                count += _is_work(i)
        return count

    def _is_behind_loads(self, branch: int, needed: Collection[int]) -> bool:
        """Do arms end in front of the block that load what the next arms do not wait for?"""
        before = [other for other in self.branches if other != branch and self.flow.ipdom[other] == branch]
        outer = [other for other in before if not any(first in before for first in self.before[other])]
        code = [i for other in outer for block in self._short_arms(other) for i in self._code(block)]
        return any(_is_far_load(i) and set(i.writes).isdisjoint(needed) for i in code)

    def _behind(self, branch: int, arms: Sequence[Instruction]) -> int | None:
        """Instructions where the lanes meet that need nothing of the arms.

        None: a load or a barrier is one of them, or what the next arms do with memory.
        """
        meeting = self.flow.ipdom[branch]
        made = {register for i in arms for register in i.writes}
        stored: set[str | None] = set()  # memories into which what the arms made is written
        count = 0
        for i in self._code(meeting):
            changes = not (is_pure(i) or access_kind(i) == "load" or is_branch(i))
            if not made.isdisjoint(i.reads):
                made.update(i.writes)
                if changes:
                    stored.add(memory_space(i))
            elif (is_barrier(i) and not stored) or (_is_far_load(i) and stored <= {"shared"}):
                return None
            else:
                count += _is_work(i) and not changes and not is_branch(i)
        following = [i for block in self._short_arms(meeting) for i in self._code(block)]
        if any(access_kind(i) is not None and made.isdisjoint(i.reads) for i in following):
            return None
        return count

    def _short_arms(self, branch: int) -> list[int]:
        """The blocks of short arms of a branch, if it is one and they are, be they under a second condition."""
        if branch not in self.branches:
            return []
        arms = self.arms_of(branch)
        if self._are_short(branch):
            return [arm[-1] for arm in arms]
        second = arms[0][-1]
        if len(arms) == 1 and second in self.branches and self._is_condition(second, branch):
            return self._short_arms(second)
        return []

    def _is_straight(self, block: int) -> bool:
        """Does control come to a block in one way only, or past arms that are guarded whatever is around them?"""
        if len(self.before[block]) <= 1:
            return True
        parting = [other for other in self.branches if self.flow.ipdom[other] == block and other != block]
        if len(parting) != 1:
            return False
        arms = self.arms_of(parting[0])
        return not any(self._loads(arm[-1]) for arm in arms) and self._are_short(parting[0])

    @cached_property
    def _alive(self) -> list[int]:
        """Bit set of the registers that are read behind each block."""
        return live_out(self.kernel, self.flow)

    def _is_second(self, arm: int, branch: int, meeting: int, guarded: Collection[int]) -> bool:
        """Does the arm do nothing but find out whether another arm runs, which is guarded and ends where it does?

        As of `if (a && b)`: the second condition is computed whatever the first one is, and the arm has both as guard.
        ptxas has a branch where something else of what is computed for the second is read later.
        """
        return (
            arm < len(self.before)
            and self.flow.block_end[arm] - 1 in guarded
            and self.flow.ipdom[arm] == meeting
            and self._is_condition(arm, branch)
        )

    def _is_condition(self, arm: int, branch: int) -> bool:
        """Does the one arm of a branch do nothing but find out whether another one runs, with the same end?"""
        code = self._code(arm)
        return (
            self.before[arm] == [branch]
            and self.flow.ipdom[branch] in self.flow.successors[arm]
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


def _is_far_load(instruction: Instruction) -> bool:
    """Is it a load from global or local memory, or what may be?"""
    return access_kind(instruction) == "load" and memory_space(instruction) not in _NEAR


def _is_work(instruction: Instruction) -> bool:
    """Is it a machine instruction of its own?"""
    return instruction.base not in _FREE and operation(instruction) != "load.param"


def _differs(instruction: Instruction) -> bool:
    """Does it give lanes different values, whatever it reads?"""
    if any(isinstance(o, Special) and o.name.startswith(_LANES) for o in instruction.operands):
        return True
    kind = access_kind(instruction)
    return kind == "atomic" or (kind == "load" and memory_space(instruction) not in ("param", "constant"))
