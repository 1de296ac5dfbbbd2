"""Which blocks every way to a block passes."""

from __future__ import annotations

from ppt_gpu.ptx.cfg import ControlFlow


def dominators(flow: ControlFlow, entries: set[int]) -> list[int]:
    """[N] bit sets of the blocks that dominate each block, itself among them (Cooper, Harvey, Kennedy 2001, by sets).

    entries: blocks where control may come from outside. Blocks that nothing reaches are dominated by all.
    """
    count = len(flow.block_start)
    before: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(flow.successors):
        for other in following:
            if other < count:
                before[other].append(block)
    every = (1 << count) - 1
    found = [1 << block if block in entries else every for block in range(count)]
    changed = True
    while changed:
        changed = False
        for block in range(count):
            if block in entries:
                continue
            common = every
            for other in before[block]:
                common &= found[other]
            if (now := common | 1 << block) != found[block]:
                found[block], changed = now, True
    return found
