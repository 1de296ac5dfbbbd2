"""Messages on networks whose links are shared max-min fair: the data takes as long as its shares of the links allow.

A message begins to flow when its source ports are free. Its end is there one latency after the flow has ended, or when
an uncontended message would end, whichever is later. One process simulates all nodes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from ppt_gpu.cluster.engine.digest import DEPART
from ppt_gpu.cluster.engine.flows import Flows
from ppt_gpu.cluster.engine.matching import Message
from ppt_gpu.cluster.engine.operations import take_ports
from ppt_gpu.cluster.engine.state import Process
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.model.machine import Transfer

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
