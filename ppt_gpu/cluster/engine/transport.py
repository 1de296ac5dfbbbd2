"""Messages between ranks: eager and rendezvous, through the ports of nodes and, where they are shared, of switches.

A message's head leaves when its source ports are free, may wait at switches, and reaches the target node, where it
waits for the target ports; its end follows `tail` behind. See `ppt_gpu.cluster.model.machine.Transfer`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any

from ppt_gpu.cluster.engine.digest import ANSWER, ARRIVE, DEPART, RECEIVE, REQUEST
from ppt_gpu.cluster.engine.matching import Message, Receive, take_message, take_receive
from ppt_gpu.cluster.engine.operations import take_ports
from ppt_gpu.cluster.engine.queue import SEQUENCE_SHIFT
from ppt_gpu.cluster.engine.request import Cause, Request, Segment, when_done
from ppt_gpu.cluster.engine.state import Process, RankState, Task, Wire
from ppt_gpu.cluster.model.machine import GPU, Place, Transfer

#: what a process tells another about a message: data arrives, at a switch, a request arrives, its answer arrives
DATA, HOP, ASK, REPLY = range(4)
PAIRS_KEPT = 1 << 20  # pairs of nodes whose distance is kept


class Transport:
    """The messages of one process's ranks."""

    def __init__(self, world: Process) -> None:
        self.world = world
        self.push = world.queue.push
        self.ranks = world.ranks
        self.gpus_per_node = world.gpus_per_node
        self.uniform = world.machine.uniform
        self.distances: dict[int, Hashable] = {}  # source and target node -> their distance
        self.symmetry = world.symmetry
        self.costs: dict[tuple[Any, ...], Transfer] = {}
        self.switch_ports: dict[tuple[int, int], list[int]] = {}  # (switch, port) -> [free from]
        self.offered: dict[int, Message] = {}  # rendezvous whose answer comes from another process
        self.answered: dict[int, Receive] = {}  # rendezvous whose data comes, or may come, from another process
        self.sent = 0

    def cost(self, source: int, target: int, nbytes: int, memory: str) -> Transfer:
        """What a message between two ranks costs."""
        per_node = self.gpus_per_node
        from_node, to_node = source // per_node, target // per_node
        distance = from_node != to_node if self.uniform else self._distance(from_node, to_node)
        key = (source - from_node * per_node, target - to_node * per_node, distance, nbytes, memory)
        found = self.costs.get(key)
        if found is None:
            places = Place(from_node, key[0], memory), Place(to_node, key[1], memory)
            found = self.costs[key] = self.world.machine.transfer(*places, nbytes)
        return found

    def _distance(self, source: int, target: int) -> Hashable:
        pair = source << 32 | target
        found = self.distances.get(pair)
        if found is None:
            found = self.world.machine.distance(source, target)
            if len(self.distances) < PAIRS_KEPT:
                self.distances[pair] = found
        return found

    # At the sender

    def send(
        self,
        task: Task,
        target: int,
        nbytes: int,
        tag: Hashable,
        memory: str = GPU,
        after: Iterable[Request] = (),
    ) -> Request:
        """Send from the rank of `task`, whose host is busy for the overhead."""
        rank = task.rank
        source = rank.number
        transfer = self.cost(source, target, nbytes, memory)
        task.now = now = task.now + transfer.send_overhead
        if self.symmetry is not None:
            source, target = self.symmetry.image(source, target)
        rank.sequence += 1
        order = rank.sequence << SEQUENCE_SHIFT | rank.tail
        message = Message(rank, source, target, tag, memory, transfer, order)
        self.sent += 1
        if after or transfer.rendezvous:
            when_done(after, now, task.cause, partial(self._ready, message))
            return message
        message.cause = task.cause
        message.done = now
        self.push(now, order, self.depart, message)
        return message

    def _ready(self, message: Message, time: int, cause: Cause) -> None:
        """What is sent is there: offer it, or send it."""
        message.cause = cause
        if message.transfer.rendezvous:
            self._to_target(ASK, self.request_arrives, time + message.transfer.control_latency, message)
        else:
            self.push(time, message.order, self.depart, message)

    def answer_arrives(self, time: int, message: Message) -> None:
        """The receiver is ready: the data may go."""
        rank = message.sender
        assert rank is not None
        if rank.log is not None:
            rank.log.extend((ANSWER, time))
        self.depart(time, message)

    def depart(self, time: int, message: Message) -> None:
        """The data leaves the sender's node as soon as its ports are free."""
        transfer = message.transfer
        rank = message.sender
        assert rank is not None
        start = take_ports(self.world.ports[rank.node], transfer.source_ports, time)
        if rank.log is not None:
            rank.log.extend((DEPART, time, start))
        if rank.intervals is not None:
            rank.intervals.communication.extend((start, start + transfer.latency + transfer.tail))
        message.departed = start
        rank.sequence += 1
        message.order = order = rank.sequence << SEQUENCE_SHIFT | rank.tail
        head = start + transfer.latency
        if transfer.hops:
            self._to_switch(0, head, message)
        elif self.ranks[message.target] is not None:
            self.push(head, order, self.arrive, message)
        else:
            self._to_target(DATA, self.arrive, head, message)
        if message.done < 0:
            left = start + max((busy for _, busy in transfer.source_ports), default=0) if transfer.rendezvous else time
            message.complete(left, message.cause)

    # On the way

    def _to_target(self, kind: int, act: Any, time: int, message: Message) -> None:
        if self.ranks[message.target] is not None:
            self.push(time, message.order, act, message)
            return
        if kind == ASK:
            message.identity = message.order
            self.offered[message.identity] = message
        self._tell(self.world.owner_of_rank(message.target), kind, time, message)

    def _to_switch(self, hop: int, time: int, message: Message) -> None:
        switch = message.transfer.hops[hop].switch
        owner = self.world.owner_of_switch(switch)
        if owner == self.world.process:
            self.push(time, message.order, self.pass_switch, (hop, message))
        else:
            self._tell(owner, HOP, time, message, hop)

    def pass_switch(self, time: int, subject: tuple[int, Message]) -> None:
        """The head is at a switch: it goes on when the port of its next link is free."""
        number, message = subject
        hop = message.transfer.hops[number]
        free = self.switch_ports.setdefault((hop.switch, hop.port), [0])
        there = take_ports(free, ((0, hop.busy),), time) + hop.latency
        if number + 1 < len(message.transfer.hops):
            self._to_switch(number + 1, there, message)
        else:
            self._to_target(DATA, self.arrive, there, message)

    def _tell(self, owner: int, kind: int, time: int, message: Message, hop: int = 0) -> None:
        wire = (
            kind,
            time,
            message.order,
            message.source,
            message.target,
            message.tag,
            message.transfer.nbytes,
            message.memory,
            message.identity,
            message.departed,
            hop,
            self.world.told_cause(message.cause),
        )
        self.world.outbox(owner).append(wire)

    def hear(self, wire: Wire) -> None:
        """Put what another process told into the queue."""
        kind, time, order, source, target, tag, nbytes, memory, identity, departed, hop, cause = wire
        if kind == REPLY:
            self.push(time, order, self.answer_arrives, self.offered.pop(identity))
            return
        message = Message(None, source, target, tag, memory, self.cost(source, target, nbytes, memory), order)
        message.identity = identity
        message.departed = departed
        message.cause = cause
        if kind == HOP:
            self.push(time, order, self.pass_switch, (hop, message))
        else:
            self.push(time, order, self.arrive if kind == DATA else self.request_arrives, message)

    # At the receiver

    def receive(self, task: Task, source: int, nbytes: int, tag: Hashable) -> Receive:
        """Post a receive for the rank of `task`."""
        receive = Receive(source, tag, nbytes, task.now, task.cause)
        message = take_message(task.rank, receive)
        if message is not None:
            if message.transfer.rendezvous:
                self._answer(task.rank, message, receive)
            else:
                self._received(task.rank, message, receive)
        return receive

    def arrive(self, time: int, message: Message) -> None:
        """The head of the data is at the target node."""
        rank = self.ranks[message.target]
        assert rank is not None
        transfer = message.transfer
        start = take_ports(self.world.ports[rank.node], transfer.target_ports, time)
        message.arrived = start + transfer.tail
        if rank.log is not None:
            tag = message.tag if isinstance(message.tag, int) else -1
            rank.log.extend((ARRIVE, time, start, message.arrived, transfer.nbytes, tag))
        receive = self.answered.pop(message.identity) if message.identity else message.receive
        if receive is None:
            receive = take_receive(rank, message)
        if receive is not None:
            self._received(rank, message, receive)

    def _received(self, rank: RankState, message: Message, receive: Receive) -> None:
        """The receive is done: when the message is there or, of one that came before, when it has been copied."""
        transfer = message.transfer
        if receive.posted > message.arrived:
            done, cause = receive.posted + transfer.unexpected_copy, receive.cause
        else:
            done, cause = message.arrived, message.cause
        done += transfer.receive_overhead
        if rank.log is not None:
            rank.log.extend((RECEIVE, done))
        if rank.intervals is not None:
            rank.intervals.communication.extend((message.departed, message.arrived))
            if receive.posted <= message.arrived:
                label = f"{message.source} to {message.target}"
                cause = Segment(cause, message.source, "message", label, message.departed, done)
        receive.complete(done, cause)

    def request_arrives(self, time: int, message: Message) -> None:
        """A sender asks whether it may send."""
        rank = self.ranks[message.target]
        assert rank is not None
        if rank.log is not None:
            rank.log.extend((REQUEST, time))
        message.arrived = time
        receive = take_receive(rank, message)
        if receive is not None:
            self._answer(rank, message, receive)

    def _answer(self, rank: RankState, message: Message, receive: Receive) -> None:
        """It may, as soon as the receive is posted."""
        message.receive = receive
        when = max(message.arrived, receive.posted) + message.transfer.control_latency
        order = rank.order()
        if message.sender is not None:
            if message.transfer.hops and self.world.processes > 1:  # its data may come back from another process
                message.identity = message.order
                self.answered[message.identity] = receive
            self.push(when, order, self.answer_arrives, message)
            return
        self.answered[message.identity] = receive
        message.order = order
        self._tell(self.world.owner_of_rank(message.source), REPLY, when, message)
