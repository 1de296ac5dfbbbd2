"""How micro-ops spread over execution ports, and what waiting for them costs (Blem, section 4.2.1, Algorithm 4.1).

A kind of micro-op is (how many, ports that may run it). Two ways to the load of the fullest port:

* `spread`: Algorithm 4.1. Micro-ops of one port are pinned; the others are spread again and again, one kind after
  another, each as evenly as its ports allow, until nothing moves.
* `fullest_load`: the best that any spreading can do, max over sets S of ports of
  (micro-ops that only ports of S can run) / |S|.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ppt_gpu.common.errors import PptError

Kind = tuple[float, tuple[int, ...]]
#: sweeps of Algorithm 4.1 after which it stops; each brings the loads closer by a constant factor
MAX_SWEEPS = 10_000


def spread(kinds: Sequence[Kind], ports: int) -> list[float]:
    """[ports] micro-ops on each port, by Algorithm 4.1. Raises PptError for a kind without a port."""
    _check(kinds, ports)
    load = [0.0] * ports
    movable: list[tuple[float, tuple[int, ...], list[float]]] = []
    for count, allowed in kinds:
        if len(allowed) == 1:
            load[allowed[0]] += count
        else:
            movable.append((count, allowed, [0.0] * len(allowed)))
    smallest = 1e-13 * sum(count for count, _ in kinds)
    for _ in range(MAX_SWEEPS):
        moved = 0.0
        for count, allowed, share in movable:
            for port, mine in zip(allowed, share, strict=True):
                load[port] -= mine
            level = _water_level(count, [load[port] for port in allowed])
            for at, port in enumerate(allowed):
                now = max(0.0, level - load[port])
                moved = max(moved, abs(now - share[at]))
                share[at] = now
                load[port] += now
        if moved <= smallest:
            break
    return load


def _water_level(count: float, loads: list[float]) -> float:
    """The height to which `count` fills the lowest of `loads`."""
    heights = sorted(loads)
    for filled, height in enumerate(heights, 1):
        level = (count + sum(heights[:filled])) / filled
        if filled == len(heights) or level <= heights[filled]:
            break
        assert height <= level
    return level


def fullest_load(kinds: Sequence[Kind], ports: int) -> float:
    """Micro-ops on the fullest port of the best spreading, by the formula over subsets of ports."""
    _check(kinds, ports)
    sets = [(count, frozenset(allowed)) for count, allowed in kinds]
    best = 0.0
    for size in range(1, ports + 1):
        for chosen in combinations(range(ports), size):
            inside = frozenset(chosen)
            best = max(best, sum(count for count, allowed in sets if allowed <= inside) / size)
    return best


def _check(kinds: Sequence[Kind], ports: int) -> None:
    for count, allowed in kinds:
        if not allowed or min(allowed) < 0 or max(allowed) >= ports or not count >= 0:
            raise PptError(f"{count:g} micro-ops for ports {list(allowed)}: expected ports 0 to {ports - 1}")


def arrival_rates(issue_width: float, ipc: float, share: Sequence[float], *, utilisation: bool = False) -> list[float]:
    """Eq 4.8: lambda_i = min(D, IPC_M) / D x p_i, micro-ops a cycle that want port i.

    With `utilisation`, min(D, IPC_M) x p_i: the share of cycles in which port i is busy. The printed form divides by D,
    so that six full ports give 1/6 each.
    """
    rate = min(issue_width, ipc)
    return [(rate if utilisation else rate / issue_width) * each for each in share]


def waits(rates: Sequence[float]) -> list[float]:
    """Eq 4.9: W_i = 1 / (1 - lambda_i) - 1, cycles that a micro-op waits for port i, an M/M/1 queue of rate 1.

    Raises PptError for a rate of 1 or more: the queue would grow without end.
    """
    for port, rate in enumerate(rates):
        if not 0 <= rate < 1:
            raise PptError(f"port {port} gets {rate:g} micro-ops a cycle; it can start fewer than 1")
    return [1 / (1 - rate) - 1 for rate in rates]
