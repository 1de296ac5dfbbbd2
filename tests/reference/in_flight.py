"""Plain versions of the compiled passes of `moments` and `in_flight`; tests hold them equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.accesses.scoreboard import Schedule
from ppt_gpu.sm.accesses.sharing import Touches
from ppt_gpu.sm.l2_sharing.in_flight import Asked


@dataclass(frozen=True)
class PathWaits:
    """Of one path: as `moments.Waits`."""

    depth: list[int]
    barriers: list[int]
    rounds: list[int]


def reference_waits_before(
    plan: Schedule, path: int, recorded: NDArray[np.bool_], loads: NDArray[np.bool_], barrier: NDArray[np.bool_]
) -> PathWaits:
    """As `moments.waits_before`; recorded, loads, barrier [O]."""
    found = PathWaits([], [], [])
    depth, producers = 0, dict[int, int]()  # of each slot: how deep the load in it stands
    for i in range(plan.path_start[path], plan.path_start[path + 1]):
        op = plan.entry_op[i]
        for slot in [slot for slot in producers if int(plan.entry_wait[i]) >> slot & 1]:
            depth = max(depth, producers.pop(slot) + 1)
        if recorded[op]:
            found.depth.append(depth)
            found.barriers.append(len(found.rounds))
        if barrier[op]:
            found.rounds.append(depth)
            producers = {slot: deep - depth for slot, deep in producers.items()}
            depth = 0
        producers.pop(int(plan.entry_slot[i]), None)
        if plan.entry_slot[i] >= 0 and loads[op]:
            producers[int(plan.entry_slot[i])] = depth
    return found


def reference_of_block(warps: Sequence[PathWaits]) -> list[int]:
    """As `moments.Waits.of_warps`, of one block."""
    most = max(len(warp.rounds) for warp in warps)
    met = [max(warp.rounds[number] for warp in warps if number < len(warp.rounds)) for number in range(most)]
    return [sum(met[:place]) + deep for warp in warps for deep, place in zip(warp.depth, warp.barriers, strict=True)]


def reference_asked(touches: Touches, used: Sequence[int], first: NDArray[np.int64]) -> Asked:
    """As `in_flight.asked`."""
    users, earlier, at_once = counts = np.zeros((3, *first.shape), np.int32)
    for line, sector in np.ndindex(first.shape):
        for sm in range(len(touches.stands_for) if used[line] >> sector & 1 else 0):
            its = touches.moment[(touches.line == line) & (touches.sm == sm) & (touches.sectors >> sector & 1 != 0)]
            now = first[line, sector]
            counts[:, line, sector] += len(its) > 0, (its < now).any(), (its == now).any()
    return Asked(users, earlier, at_once)
