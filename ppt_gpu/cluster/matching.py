"""Messages and the receives that take them: in the order of arrival and of posting, by sender and tag."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ppt_gpu.cluster.machine import Transfer
from ppt_gpu.cluster.request import Request, Segment
from ppt_gpu.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.cluster.rank import Rank


class Message:
    """A message on its way. `source` is the sender as the receiver names it; `tag` that of a collective is a tuple."""

    __slots__ = (
        "arrived",
        "cause",
        "departed",
        "identity",
        "memory",
        "order",
        "receive",
        "send",
        "sender",
        "source",
        "tag",
        "target",
        "transfer",
    )

    def __init__(
        self,
        sender: Rank | None,
        source: int,
        target: int,
        tag: Hashable,
        memory: str,
        transfer: Transfer,
        order: int,
    ) -> None:
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
        self.cause: Segment | None = None
        self.send: Request | None = None  # of a sender that still waits
        self.receive: Receive | None = None  # of a rendezvous, once matched


class Send(Request):
    """A send whose buffer is not free yet."""

    __slots__ = ("tag", "target")

    def __init__(self, target: int, tag: Hashable) -> None:
        super().__init__()
        self.target = target
        self.tag = tag

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"rank {self.target} to receive its message ({tag_text(self.tag)})", (self.target,)


class Receive(Request):
    """A posted receive."""

    __slots__ = ("nbytes", "posted", "source", "tag")

    def __init__(self, source: int, tag: Hashable, nbytes: int, posted: int, cause: Segment | None) -> None:
        super().__init__(cause=cause)
        self.source = source
        self.tag = tag
        self.nbytes = nbytes
        self.posted = posted

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"a message from rank {self.source} ({tag_text(self.tag)}, {self.nbytes} bytes)", (self.source,)


#: (sender, tag) -> messages without a receive, or receives without a message: never both, and never empty
Queues = dict[tuple[int, Hashable], deque["Message | Receive"]]


def tag_text(tag: Hashable) -> str:
    """A tag in words."""
    return f"tag {tag}" if isinstance(tag, int) else "part of a collective"


def take_receive(rank: Rank, message: Message) -> Receive | None:
    """The receive that this message is for, or None: then the message is kept until one is posted."""
    key = (message.source, message.tag)
    queue = rank.queues.get(key)
    if queue is None or isinstance(queue[0], Message):
        _keep(rank.queues, key, queue, message)
        return None
    found = queue.popleft()
    if not queue:
        del rank.queues[key]
    assert isinstance(found, Receive)
    _check_fits(rank, found, message)
    return found


def take_message(rank: Rank, receive: Receive) -> Message | None:
    """The message that this receive takes, or None: then the receive is kept until one arrives."""
    key = (receive.source, receive.tag)
    queue = rank.queues.get(key)
    if queue is None or isinstance(queue[0], Receive):
        _keep(rank.queues, key, queue, receive)
        return None
    found = queue.popleft()
    if not queue:
        del rank.queues[key]
    assert isinstance(found, Message)
    _check_fits(rank, receive, found)
    return found


def _keep(
    queues: Queues, key: tuple[int, Hashable], queue: deque[Message | Receive] | None, kept: Message | Receive
) -> None:
    if queue is None:
        queues[key] = deque((kept,))
    else:
        queue.append(kept)


def _check_fits(rank: Rank, receive: Receive, message: Message) -> None:
    if message.transfer.nbytes > receive.nbytes:
        raise PptError(
            f"rank {rank.number} receives up to {receive.nbytes} bytes from rank {receive.source} "
            f"({tag_text(receive.tag)}), but the message has {message.transfer.nbytes}",
            hint="the sizes of a send and its receive must agree",
        )
