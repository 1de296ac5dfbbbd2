"""The divergence stack of a warp: lanes that run together, and entries for lanes that wait their turn.

An entry is a point, the lanes that go on from there, the join of those lanes and their frame. Entries of pending paths
share no lane with what is above them. The entry of a join, or of the return from a call, holds lanes that are still
above it; it runs when it is on top. Both engines keep their stacks in this form, so both give way alike.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Path:
    """Lanes that run together from `point` on until they reach `join`."""

    point: int  # resume point in compiled code, instruction index in the interpreter
    lanes: int  # bit set
    join: int
    frame: int  # offset of the function's frame


def give_way(running: Path, stack: list[Path], live: int, blocked: int, *, split: bool) -> Path | None:
    """The path that runs instead of `running`, which goes to the stack; None when there is none.

    `stack` changes. `live` are the lanes that have not exited, `blocked` those that wait at a barrier. With `split`
    lanes that stand at a join, or have returned from a call, may go on without those that they wait for, which
    follow later. Every pending path comes to its turn: one that gives way goes as deep as its join allows.
    """
    above = running.lanes & live
    for k in range(len(stack) - 1, -1, -1):
        entry = stack[k]
        lanes = entry.lanes & live
        free = lanes & ~above
        if free and not free & blocked and (split or free == lanes):
            if free == lanes:
                del stack[k]
                chosen = entry
            else:
                stack[k] = Path(entry.point, lanes & above, entry.join, entry.frame)
                chosen = Path(entry.point, free, entry.join, entry.frame)
            _put_last(running, stack)
            return chosen
        above |= lanes
    return None


def _put_last(path: Path, stack: list[Path]) -> None:
    """Right above the entry where its lanes are awaited."""
    place = len(stack)
    while place and not stack[place - 1].lanes & path.lanes:
        place -= 1
    stack.insert(place, path)
