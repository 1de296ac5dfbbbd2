"""Max-min fair shares of links: no flow can have more without another, that has no more, getting less.

`max_min` raises all flows together and fixes those of the link that fills first (progressive filling; Bertsekas and
Gallager, Data Networks, 1992, section 6.5.2). `plain_max_min` is the definition step by step, for tests.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from fractions import Fraction


def max_min(flows: Sequence[Sequence[int]], capacity: Mapping[int, float]) -> list[float]:
    """The rate of each flow, given the links that it crosses and every link's capacity; inf for one that crosses none.

    A link is looked at again only when it may be the next to fill: its share can only grow as flows are fixed.
    """
    members: dict[int, list[int]] = {}
    for number, links in enumerate(flows):
        for link in dict.fromkeys(links):
            members.setdefault(link, []).append(number)
    left = {link: float(capacity[link]) for link in members}
    open_flows = {link: len(found) for link, found in members.items()}
    rates = [float("inf")] * len(flows)
    fixed = [not links for links in flows]
    heap = [(left[link] / count, link) for link, count in open_flows.items()]
    heapq.heapify(heap)
    while heap:
        share, link = heapq.heappop(heap)
        if not open_flows[link]:
            continue
        now = max(0.0, left[link]) / open_flows[link]
        if now > share:
            heapq.heappush(heap, (now, link))
            continue
        for number in members[link]:
            if not fixed[number]:
                fixed[number], rates[number] = True, now
                for other in dict.fromkeys(flows[number]):
                    left[other] -= now
                    open_flows[other] -= 1
    return rates


def plain_max_min(flows: Sequence[Sequence[int]], capacity: Mapping[int, Fraction]) -> list[Fraction | None]:
    """The same in exact fractions, every link looked at in every round; None for a flow that crosses no link."""
    rates: list[Fraction | None] = [None] * len(flows)
    waiting = {number for number, links in enumerate(flows) if links}
    while waiting:
        shares = {}
        for link, most in capacity.items():
            crossing = [number for number, links in enumerate(flows) if link in links]
            unfixed = [number for number in crossing if number in waiting]
            taken = sum((rate for n in crossing if n not in waiting and (rate := rates[n]) is not None), Fraction(0))
            if unfixed:
                shares[link] = (most - taken) / len(unfixed)
        tight = min(shares, key=lambda link: (shares[link], link))
        for number in [n for n in waiting if tight in flows[n]]:
            rates[number] = shares[tight]
            waiting.remove(number)
    return rates
