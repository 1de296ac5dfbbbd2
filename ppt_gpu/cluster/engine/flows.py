"""Messages as flows that share the network's links max-min fair: rates change whenever a flow begins or ends.

All flows of the run are known to one process: what one node begins changes the rates of others at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ppt_gpu.cluster.engine.fair import max_min
from ppt_gpu.cluster.model.machine import PS_PER_S


@dataclass(slots=True)
class Flow:
    """A flow on its way. `left`: bytes at `since`; `end`: when it ends at its rate now, ps."""

    links: tuple[int, ...]
    left: float
    since: int
    rate: float = 0.0
    end: int = -1


class Flows:
    """The flows that are on their way. Times in ps, whole; they never go back."""

    def __init__(self, link_rate: Callable[[int], float]) -> None:
        """`link_rate`: B/s of a link."""
        self.link_rate = link_rate
        self.flows: dict[int, Flow] = {}
        self.rates: dict[int, float] = {}

    def change(self, time: int, begun: dict[int, tuple[tuple[int, ...], int]]) -> list[int]:
        """Flows that have ended by `time` go, `begun` ones (links, bytes) come, all others get new rates.

        Returns those that ended, in the order in which they began.
        """
        ended = [name for name, flow in self.flows.items() if flow.end <= time]
        for name in ended:
            del self.flows[name]
        for flow in self.flows.values():
            flow.left = max(0.0, flow.left - flow.rate * (time - flow.since) / PS_PER_S)
            flow.since = time
        for name, (links, nbytes) in begun.items():
            self.flows[name] = Flow(links, float(nbytes), time)
            for link in links:
                if link not in self.rates:
                    self.rates[link] = self.link_rate(link)
        shares = max_min([flow.links for flow in self.flows.values()], self.rates)
        for flow, rate in zip(self.flows.values(), shares, strict=True):
            if rate != flow.rate:  # else its end stays, unrounded once more
                flow.rate = rate
                flow.end = time + round(flow.left / rate * PS_PER_S)
        return ended

    def next_end(self) -> int | None:
        """When the next flow ends if nothing changes before."""
        return min((flow.end for flow in self.flows.values()), default=None)
