"""The divergence stack of a warp: lanes that run together, and entries for lanes that wait their turn.

An entry is a point, the lanes that go on from there, the join of those lanes and their frame. Entries of pending paths
share no lane with what is above them. The entry of a join, or of the return from a call, holds lanes that are still
above it; it runs when it is on top. Both engines keep their stacks in this form, so both give way alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Path:
    """Lanes that run together from `point` on until they reach `join`."""

    point: int  # resume point in compiled code, instruction index in the interpreter
    lanes: int  # bit set
    join: int
    frame: int  # offset of the function's frame


def give_way(
    running: Path,
    stack: list[Path],
    live: int,
    blocked: int,
    *,
    split: bool,
    eager: bool = False,
    meet: Sequence[bool] = (),
    settled: int | None = None,
) -> Path | None:
    """The path that runs instead of `running`, which goes to the stack; None when there is none.

    `stack` changes. `live` are the lanes that have not exited, `blocked` those that wait at a barrier. The path that
    has waited longest runs next. With `split` lanes that stand at a join, or have returned from a call, may go on
    without those that they wait for, which follow later: where no path is pending, or with `eager` in their turn. Not
    so where the next that they do takes the whole warp (`meet`, by entry). Only the lowest `settled` entries are
    looked at, if given: the others have come to the stack since the running lanes began to wait.
    """
    above = [0] * len(stack)
    lanes = running.lanes & live
    for k in reversed(range(len(stack))):
        above[k] = lanes
        lanes |= stack[k].lanes & live
    joined = -1
    for k, entry in enumerate(stack[:settled]):  # the lowest has waited longest
        lanes = entry.lanes & live
        free = lanes & ~above[k]
        if not free or free & blocked:
            continue
        if free == lanes:
            del stack[k]
            stack.append(running)
            return entry
        if split and joined < 0 and not (meet and meet[k]):
            joined = k
            if eager:
                break
    if joined < 0:
        return None
    entry = stack[joined]
    stack[joined] = Path(entry.point, entry.lanes & above[joined], entry.join, entry.frame)
    stack.append(running)
    return Path(entry.point, entry.lanes & live & ~above[joined], entry.join, entry.frame)
