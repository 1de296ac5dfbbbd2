"""Messages on networks whose links are shared max-min fair: the data takes as long as its shares of the links allow.

A message begins to flow when its source ports are free. Its end is there one latency after the flow has ended, or when
an uncontended message would end, whichever is later. One process simulates all nodes.

Max-min fair: no flow can have more without another, that has no more, getting less. `max_min` raises all flows together
and fixes those of the link that fills first (progressive filling; Bertsekas and Gallager, Data Networks, 1992, section
6.5.2). `plain_max_min` is the definition step by step, for tests.

Rates change whenever a flow begins or ends: what one node begins changes the rates of others at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

from ppt_gpu.cluster.engine.digest import DEPART
from ppt_gpu.cluster.engine.matching import Message
from ppt_gpu.cluster.engine.operations import take_ports
from ppt_gpu.cluster.engine.state import Process
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.model.machine import PS_PER_S, Transfer


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


LAST = 1 << 120  # orders from here: after all other events of the same time


class FairTransport(Transport):
    """The messages of all ranks, those that cross links as flows."""

    def __init__(self, world: Process) -> None:
        super().__init__(world)
        self.flows = Flows(world.machine.link_rate)
        self.begun: dict[int, Message] = {}  # that begin to flow at `change_at`
        self.moving: dict[int, Message] = {}
        self.change_at = -1  # when flows are next looked at
        self.orders = count(LAST)
        self.cut: dict[Transfer, Transfer] = {}

    def depart(self, time: int, message: Message) -> None:
        """The data begins to flow as soon as the ports that it still queues for are free."""
        transfer = message.transfer
        if not transfer.links:
            super().depart(time, message)
            return
        rank = message.sender
        assert rank is not None
        start = take_ports(self.world.ports[rank.node], transfer.source_ports, time)
        if rank.log is not None:
            rank.log.extend((DEPART, time, start))
        message.departed = start
        message.order = rank.order()
        self.push(start, message.order, self.begin, message)
        if message.done < 0 and not transfer.rendezvous:
            message.complete(time, message.cause)

    def begin(self, time: int, message: Message) -> None:
        """The flow joins the others when all that happens at this time has happened."""
        self.begun[message.order] = message
        self._look(time)

    def _look(self, time: int) -> None:
        """Look at the flows at `time`; a later look that was planned is given up."""
        if self.change_at != time:
            self.change_at = time
            self.push(time, next(self.orders), self.change, time)

    def change(self, time: int, planned: int) -> None:
        """Flows end and begin: all others get new rates."""
        if planned != self.change_at:
            return
        self.change_at = -1
        begun = {order: (message.transfer.links, message.transfer.nbytes) for order, message in self.begun.items()}
        self.moving |= self.begun
        self.begun = {}
        for order in self.flows.change(time, begun):
            self._flowed(time, self.moving.pop(order))
        end = self.flows.next_end()
        if end is not None:
            self._look(end)

    def _flowed(self, time: int, message: Message) -> None:
        """All data has left: its end arrives later by the latency."""
        transfer, rank = message.transfer, message.sender
        assert rank is not None
        arrives = max(time, message.departed + transfer.tail) + transfer.latency
        if rank.intervals is not None:
            rank.intervals.communication.extend((message.departed, arrives))
        if message.done < 0:
            message.complete(time, message.cause)
        message.order = rank.order()
        if transfer not in self.cut:
            self.cut[transfer] = replace(transfer, tail=0)
        message.transfer = self.cut[transfer]
        self.push(arrives, message.order, self.arrive, message)
