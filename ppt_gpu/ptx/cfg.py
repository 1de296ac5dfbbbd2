"""Control flow of a kernel: basic blocks, immediate post-dominators, reconvergence points, loops.

Immediate post-dominators by the iterative algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
Algorithm" (2001), on the reversed graph with one virtual exit. Where threads cannot reach an exit (infinite loops),
the last block of such a region is joined to the virtual exit, so that every block has a post-dominator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ppt_gpu.ptx.instructions import is_branch, is_exit
from ppt_gpu.ptx.module import Instruction, Kernel, Target


@dataclass(frozen=True)
class ControlFlow:
    """Basic blocks in text order. N blocks; block N is the virtual exit, -1 as an instruction index."""

    block_start: tuple[int, ...]  # [N] first instruction
    block_end: tuple[int, ...]  # [N] one past the last instruction
    successors: tuple[tuple[int, ...], ...]  # [N] blocks, ascending; N for leaving the kernel
    ipdom: tuple[int, ...]  # [N] immediate post-dominator block, N for the virtual exit
    reconvergence: dict[int, int]  # branch instruction -> first instruction of its post-dominator; -1: the exit
    back_edges: tuple[
        tuple[int, int], ...
    ]  # (from block, to block) against which a depth-first walk from the entry ran
    loop_heads: tuple[int, ...]  # blocks that a back edge goes to, ascending
    virtual_exits: tuple[int, ...] = ()  # blocks joined to the exit because nothing else leaves their region

    def block_of(self, instruction: int) -> int:
        """The block that an instruction index belongs to."""
        return bisect_right(self.block_start, instruction) - 1


def control_flow(kernel: Kernel) -> ControlFlow:
    """The control flow of a kernel or function. Instructions after its last one are the exit."""
    instructions = kernel.instructions
    starts = _leaders(kernel)
    ends = [*starts[1:], len(instructions)] if starts else []
    blocks = len(starts)
    block_at = {start: block for block, start in enumerate(starts)}
    block_at[len(instructions)] = blocks
    successors = [_successors(kernel, instructions[end - 1], block_at) for end in ends]
    ipdom, virtual_exits = post_dominators(successors)
    reconvergence = {}
    for block, end in enumerate(ends):
        if is_branch(instructions[end - 1]):
            reconvergence[end - 1] = starts[ipdom[block]] if ipdom[block] < blocks else -1
    back = back_edges(successors, [block_at[entry] for entry in kernel.entries if entry in block_at])
    return ControlFlow(
        block_start=tuple(starts),
        block_end=tuple(ends),
        successors=tuple(successors),
        ipdom=tuple(ipdom),
        reconvergence=reconvergence,
        back_edges=tuple(back),
        loop_heads=tuple(sorted({head for _, head in back})),
        virtual_exits=tuple(virtual_exits),
    )


def _targets(kernel: Kernel, instruction: Instruction) -> tuple[int, ...]:
    """The instruction indices that a bra or brx can go to."""
    for operand in instruction.operands:
        if isinstance(operand, Target):
            return kernel.branch_tables[operand.name] if operand.index < 0 else (operand.index,)
    return ()


def _leaders(kernel: Kernel) -> list[int]:
    count = len(kernel.instructions)
    leaders = set(kernel.entries)
    for instruction in kernel.instructions:
        if is_branch(instruction):
            leaders.update(_targets(kernel, instruction))
            leaders.add(instruction.index + 1)
        elif is_exit(instruction):
            leaders.add(instruction.index + 1)
    return sorted(leader for leader in leaders if leader < count)


def _successors(kernel: Kernel, last: Instruction, block_at: dict[int, int]) -> tuple[int, ...]:
    exit_block = block_at[len(kernel.instructions)]
    following = block_at.get(last.index + 1, exit_block)
    found = set() if last.guard is None else {following}
    if is_branch(last):
        found.update(block_at[target] for target in _targets(kernel, last))
    elif is_exit(last):
        found.add(exit_block)
    else:
        found = {following}
    return tuple(sorted(found))


def post_dominators(successors: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(immediate post-dominator of each block, blocks joined to the virtual exit).

    `successors[b]` are the successors of block b; N = len(successors) is the virtual exit.
    """
    blocks = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(blocks + 1)]
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(block)
    joined = _join_to_exit(predecessors, blocks)
    exits = [list(following) for following in successors]
    for block in joined:
        exits[block].append(blocks)
    order = _post_order(predecessors, blocks)
    number = [0] * (blocks + 1)
    for position, block in enumerate(order):
        number[block] = position
    ipdom = [-1] * blocks + [blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            best = -1
            for successor in exits[block]:
                if ipdom[successor] >= 0:
                    best = successor if best < 0 else _common(best, successor, ipdom, number)
            if ipdom[block] != best:
                ipdom[block] = best
                changed = True
    return ipdom[:blocks], joined


def _common(a: int, b: int, ipdom: list[int], number: list[int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = ipdom[a]
        while number[b] < number[a]:
            b = ipdom[b]
    return a


def _join_to_exit(predecessors: list[list[int]], blocks: int) -> list[int]:
    """Adds edges to the exit, in place, until every block reaches it: each from the last block that does not."""
    reached = [False] * (blocks + 1)
    joined: list[int] = []
    stack = [blocks]
    reached[blocks] = True
    candidate = blocks - 1
    while True:
        while stack:
            for block in predecessors[stack.pop()]:
                if not reached[block]:
                    reached[block] = True
                    stack.append(block)
        while candidate >= 0 and reached[candidate]:
            candidate -= 1
        if candidate < 0:
            return joined
        reached[candidate] = True
        predecessors[blocks].append(candidate)
        joined.append(candidate)
        stack.append(candidate)


def _post_order(edges: Sequence[Sequence[int]], root: int) -> list[int]:
    """Depth-first post-order from `root`; the root comes last."""
    seen = [False] * len(edges)
    seen[root] = True
    order: list[int] = []
    stack = [(root, iter(edges[root]))]
    while stack:
        node, following = stack[-1]
        for successor in following:
            if not seen[successor]:
                seen[successor] = True
                stack.append((successor, iter(edges[successor])))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def back_edges(successors: Sequence[Sequence[int]], roots: Sequence[int] = (0,)) -> list[tuple[int, int]]:
    """Edges of depth-first walks from the roots that lead to a block still being walked, sorted."""
    blocks = len(successors)
    found: list[tuple[int, int]] = []
    state = [0] * (blocks + 1)  # 0 new, 1 on the walk, 2 done
    state[blocks] = 2
    for root in roots:
        if state[root] == 0:
            _walk(successors, root, state, found)
    return sorted(found)


def _walk(successors: Sequence[Sequence[int]], root: int, state: list[int], found: list[tuple[int, int]]) -> None:
    state[root] = 1
    stack = [(root, iter(successors[root]))]
    while stack:
        block, following = stack[-1]
        for successor in following:
            if state[successor] == 1:
                found.append((block, successor))
            elif state[successor] == 0:
                state[successor] = 1
                stack.append((successor, iter(successors[successor])))
                break
        else:
            state[block] = 2
            stack.pop()
