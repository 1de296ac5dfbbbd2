"""Messages and the receives that take them: in the order of arrival and of posting, by sender and tag."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from ppt_gpu.cluster.engine.request import PENDING, Cause, Queues, Request
from ppt_gpu.cluster.engine.state import RankState
from ppt_gpu.cluster.model.machine import Transfer
from ppt_gpu.common.errors import PptError


class Message(Request):
    """A message on its way, and the sender's request. `source` is the sender as the receiver names it; the `tag` of a
    collective's message is a tuple.
    """

    __slots__ = (
        "arrived",
        "departed",
        "identity",
        "memory",
        "order",
        "receive",
        "sender",
        "source",
        "tag",
        "target",
        "transfer",
    )

    def __init__(
        self,
        sender: RankState | None,
        source: int,
        target: int,
        tag: Hashable,
        memory: str,
        transfer: Transfer,
        order: int,
    ) -> None:
        self.done = PENDING
        self.cause = None
        self.waiters = None
        self.sender = sender  # None in other processes
        self.source = source
        self.target = target
        self.tag = tag
        self.memory = memory
        self.transfer = transfer
        self.order = order
        self.identity = 0  # of a rendezvous between processes
        self.departed = 0  # when its data left the sender, ps
        self.arrived = 0  # when it is there, or its request is, ps
        self.receive: Receive | None = None  # of a rendezvous, once matched

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"rank {self.target} to receive its message ({tag_text(self.tag)})", (self.target,)


class Receive(Request):
    """A posted receive."""

    __slots__ = ("nbytes", "posted", "source", "tag")

    def __init__(self, source: int, tag: Hashable, nbytes: int, posted: int, cause: Cause) -> None:
        self.done = PENDING
        self.cause = cause
        self.waiters = None
        self.source = source
        self.tag = tag
        self.nbytes = nbytes
        self.posted = posted

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"a message from rank {self.source} ({tag_text(self.tag)}, {self.nbytes} bytes)", (self.source,)


def tag_text(tag: Hashable) -> str:
    """A tag in words."""
    return f"tag {tag}" if isinstance(tag, int) else "part of a collective"


def take_receive(rank: RankState, message: Message) -> Receive | None:
    """The receive that this message is for, or None: then the message is kept until one is posted."""
    queues, key = rank.queues, (message.source, message.tag)
    found = queues.get(key)
    if found is None:
        queues[key] = message
        return None
    if type(found) is Receive:
        del queues[key]
    else:
        found = _take(queues, key, found, message)
    if found is not None and message.transfer.nbytes > found.nbytes:
        raise _too_long(rank, found, message)
    return found


def take_message(rank: RankState, receive: Receive) -> Message | None:
    """The message that this receive takes, or None: then the receive is kept until one arrives."""
    queues, key = rank.queues, (receive.source, receive.tag)
    found = queues.get(key)
    if found is None:
        queues[key] = receive
        return None
    if type(found) is Message:
        del queues[key]
    else:
        found = _take(queues, key, found, receive)
    if found is not None and found.transfer.nbytes > receive.nbytes:
        raise _too_long(rank, receive, found)
    return found


def _take(queues: Queues, key: tuple[int, Hashable], found: Any, new: Message | Receive) -> Any:
    """The first of several that wait for `new`; or None, and `new` is kept behind others like it."""
    kind = type(new)
    if type(found) is kind:
        queues[key] = [found, new]
    elif type(found[0]) is kind:
        found.append(new)
    else:
        if len(found) == 2:
            queues[key] = found[1]
        return found.pop(0)
    return None


def waiting(queues: Queues) -> Iterator[Message | Receive]:
    """All that waits, in order."""
    for entry in queues.values():
        yield from entry if type(entry) is list else (entry,)


def _too_long(rank: RankState, receive: Receive, message: Message) -> PptError:
    return PptError(
        f"rank {rank.number} receives up to {receive.nbytes} bytes from rank {receive.source} "
        f"({tag_text(receive.tag)}), but the message has {message.transfer.nbytes}",
        hint="the sizes of a send and its receive must agree",
    )
