"""Which runs of basic blocks become one piece of straight-line machine code: blocks in a row, and loops unrolled.

A region is a sequence of blocks that control, once it has come to the first, passes in this order up to its end. An
unrolled loop whose number of iterations is not known is such a sequence while enough iterations are left. A branch, its
guarded arms and what follows are one, whether any lane of a warp runs an arm or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ppt_gpu.machine.analysis.loops import NEAR, factor, factor_unknown, is_copied, is_counted, trips
from ppt_gpu.machine.analysis.renaming import is_renamable
from ppt_gpu.ptx.cfg import ControlFlow
from ppt_gpu.ptx.instructions import is_branch, is_exit, memory_space
from ppt_gpu.ptx.module import Instruction, Kernel

#: instructions of a region; compilers, too, give up on longer ones
LONGEST = 4096
#: guarded arms in a row that become one region
MOST_ARMS = 16


@dataclass(frozen=True)
class Region:
    """`blocks` in the order in which they run; those of an unrolled loop several times.

    arms: those that a warp passes by where none of its lanes runs them.
    """

    blocks: tuple[int, ...]
    arms: frozenset[int] = frozenset()


class _Node:
    """Blocks that follow one another, on the way to a region."""

    def __init__(self, block: int) -> None:
        self.blocks = [block]  # each once
        self.run = [block]  # as they run


def regions(
    kernel: Kernel,
    flow: ControlFlow,
    size: Callable[[Sequence[int]], int],
    guarded: Collection[int] = (),
    branching: Collection[int] = (),
) -> list[Region]:
    """The regions of a kernel, those of more blocks first. Every block is in one or more of them.

    size: machine instructions that a sequence of blocks becomes. guarded: branches whose arms are guarded.
    branching: instructions that branch within; ptxas unrolls no loop that has one.
    """
    graph = _Graph(kernel, flow, size, branching)
    graph.merge()
    while graph.unroll_whole():
        graph.merge()
    found = graph.with_arms(guarded)
    for node in graph.nodes.values():
        times = graph.unrolled(node)
        while times > 1:  # what is left over of them runs two and one at a time
            found.append(Region(tuple(node.run * times)))
            times = min(times // 2, 2)
        found.append(Region(tuple(node.run)))
        if len(node.run) > 1:
            found += [Region((block,)) for block in node.blocks]
    return sorted(found, key=lambda region: -len(region.blocks))


class _Graph:
    """Nodes and the edges between them."""

    def __init__(
        self,
        kernel: Kernel,
        flow: ControlFlow,
        size: Callable[[Sequence[int]], int],
        branching: Collection[int],
    ) -> None:
        self.kernel, self.flow, self.size = kernel, flow, size
        self.copied = {
            block
            for block in range(len(flow.block_start))
            if all(is_copied(each) and each.index not in branching for each in self._code(block))
        }
        blocks = range(len(flow.block_start))
        self.nodes = {block: _Node(block) for block in blocks}  # by their first block
        self.after = {block: {s for s in flow.successors[block] if s in self.nodes} for block in blocks}
        self.leaves = {block for block in blocks if len(self.after[block]) < len(flow.successors[block])}
        self.before: dict[int, set[int]] = {block: set() for block in blocks}
        for block, following in self.after.items():
            for other in following:
                self.before[other].add(block)
        self.plain = {block for block in blocks if all(map(is_renamable, self._code(block)))}
        self.within = self._loops_within()

    def _code(self, block: int) -> Sequence[Instruction]:
        return self.kernel.instructions[self.flow.block_start[block] : self.flow.block_end[block]]

    def _length(self, node: _Node) -> int:
        return self._size(node.run)

    def _size(self, blocks: Sequence[int]) -> int:
        """In PTX instructions."""
        return sum(self.flow.block_end[block] - self.flow.block_start[block] for block in blocks)

    def _loops_within(self) -> set[int]:
        """Blocks that lie in two loops or more: between the head of each, in the text, and a branch back to it."""
        depth = [0] * len(self.nodes)
        for head in self.flow.loop_heads:
            last = max(origin for origin, target in self.flow.back_edges if target == head)
            for block in range(head, last + 1):
                depth[block] += 1
        return {block for block, loops in enumerate(depth) if loops > 1}

    def merge(self) -> None:
        """Join nodes of which the second only ever follows the first."""
        for first in list(self.nodes):
            while first in self.nodes:
                following = self.after[first]
                second = next(iter(following)) if len(following) == 1 and first not in self.leaves else first
                node, other = self.nodes[first], self.nodes[second]
                alone = second != first and len(self.before[second]) == 1 and second not in self._entries()
                if not alone or not {*node.blocks, *other.blocks} <= self.plain:
                    break
                if self._length(node) + self._length(other) > LONGEST:
                    break
                node.blocks += other.blocks
                node.run += other.run
                self.after[first] = {first if s == second else s for s in self.after[second]}
                self.leaves |= {first} if second in self.leaves else set()
                for far in self.after[second]:
                    self.before[far] = {first if b == second else b for b in self.before[far]}
                del self.nodes[second]

    def _entries(self) -> set[int]:
        return {self.flow.block_of(entry) for entry in self.kernel.entries}

    def unroll_whole(self) -> bool:
        """Unroll loops all whose iterations are known and few; is there one?"""
        found = False
        for first, node in self.nodes.items():
            if first not in self.after[first] or not self._loops(node):
                continue
            count = trips(self.kernel, self.flow, node.run)
            if count is None or self._length(node) * count > LONGEST:
                continue
            if factor(self.size(node.run), count, self._within(node)) != count:
                continue
            node.run = node.run * count
            self.after[first].discard(first)
            self.before[first].discard(first)
            found = True
        return found

    def unrolled(self, node: _Node) -> int:
        """How many iterations of the node become one: 1 where it is no loop."""
        first = node.blocks[0]
        if first not in self.after[first] or not self._loops(node):
            return 1
        count = trips(self.kernel, self.flow, node.run) if len(node.run) == len(node.blocks) else None
        if count is None and not is_counted(self.kernel, self.flow, node.run):
            return 1
        size = self.size(node.run)
        if count is None:
            times = factor_unknown(size, [each for block in node.run for each in self._code(block)])
        else:
            times = factor(size, count, self._within(node))
        return times if times * self._length(node) <= LONGEST else 1

    def _within(self, node: _Node) -> int | None:
        """Accesses to shared memory and constants of a loop that lies in another one."""
        if node.blocks[0] not in self.within:
            return None
        spaces = [memory_space(each) for block in node.run for each in self._code(block)]
        return sum(space in NEAR for space in spaces)

    def with_arms(self, guarded: Collection[int]) -> list[Region]:
        """Nodes that end with a guarded arm, with it and what is behind it, up to a loop or a branch with two arms.

        guarded: branches whose arms are guarded.
        """
        found: list[Region] = []
        within: set[int] = set()  # blocks of those found
        for node in self.nodes.values():
            blocks, arms, passed = list(node.run), set[int](), 0
            while node.blocks[0] not in within and passed < MOST_ARMS:
                arm, behind = self._guarded(blocks[-1], guarded)
                more = [*arm, *behind]
                if not more or self._size([*blocks, *more]) > LONGEST or behind[0] in (*blocks, *self.flow.loop_heads):
                    break
                if not self.plain.issuperset((*blocks, *more[:-1])) or not self._is_plain_or_last(more[-1]):
                    break
                blocks += more
                arms.update(arm)
                passed += 1
            if arms:
                found.append(Region(tuple(blocks), frozenset(arms)))
                within.update(blocks)
        return found

    def _is_plain_or_last(self, block: int) -> bool:
        """Last: the kernel ends with it, and it is plain but for that."""
        code = self._code(block)
        return block in self.plain or (is_exit(code[-1]) and all(map(is_renamable, code[:-1])))

    def _guarded(self, branch: int, guarded: Collection[int]) -> tuple[list[int], list[int]]:
        """The guarded arms behind a block, and where control goes from there. None: two empty lists.

        Of two arms the one that comes first in the text is first, as in the paths of a trace. Where the only arm is the
        second of two conditions, that which depends on both belongs to it.
        """
        meeting = self.flow.ipdom[branch]
        arms = [arm for arm in sorted(self.flow.successors[branch]) if arm != meeting]
        ends = [arm for arm in arms if arm not in self.nodes] or meeting not in self.nodes
        if self.flow.block_end[branch] - 1 not in guarded or ends:
            return [], []
        runs = [self.nodes[arm].run for arm in arms]
        if any(len(self.flow.successors[run[-1]]) > 1 for run in runs):
            within, _ = self._guarded(runs[0][-1], guarded) if len(runs) == 1 else ([], [])
            return ([*runs[0], *within], self.nodes[meeting].run) if within else ([], [])
        return [block for run in runs for block in run], self.nodes[meeting].run

    def _loops(self, node: _Node) -> bool:
        """May the node be unrolled?"""
        last = self._code(node.blocks[-1])[-1]
        start = self.flow.block_start[node.blocks[0]]
        plain = set(node.blocks) <= self.plain & self.copied and is_branch(last) and last.guard is not None
        return plain and start not in self.kernel.rolled
