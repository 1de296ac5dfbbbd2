"""Collectives as a whole: they end so long after the last member came, as the machine's model of the library says.

Each is a meeting: every process counts its own members, and what the others counted reaches it with
the exchange behind a window. That is in time: between nodes a collective takes at least the lookahead.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from ppt_gpu.cluster.collectives.collectives import check_kind
from ppt_gpu.cluster.engine.digest import COLLECTIVE
from ppt_gpu.cluster.engine.p2p_collectives import Players
from ppt_gpu.cluster.engine.queue import NEVER
from ppt_gpu.cluster.engine.request import Cause, Elsewhere, Request, Segment
from ppt_gpu.cluster.engine.state import Process, RankState
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.model.machine import Collective
from ppt_gpu.common.errors import PptError

WHOLE = "nccl"  # the algorithm that is timed as a whole
News = tuple[Hashable, int, tuple[Any, ...], int, int, int, Elsewhere | None]
# group, number, call, members, latest, its rank, its cause


class Member(Request):
    """One rank's part in a meeting."""

    __slots__ = ("entered", "meeting", "rank")

    def __init__(self, rank: RankState, meeting: Meeting) -> None:
        super().__init__()
        self.rank = rank
        self.meeting = meeting
        self.entered = 0

    def waits_for(self) -> tuple[str, Sequence[int]]:
        meeting = self.meeting
        group = meeting.group
        who = f"all {len(group)} ranks" if meeting.key == 0 else f"{len(group)} ranks from rank {group[0]}"
        return f"{meeting.call[0]}, collective number {meeting.number + 1} of {who}", group


class Meeting:
    """One collective of a group, as far as this process knows."""

    __slots__ = (
        "arrived",
        "call",
        "cause",
        "group",
        "here",
        "key",
        "latest",
        "latest_rank",
        "members",
        "new",
        "number",
        "orders",
    )

    def __init__(self, key: Hashable, group: Sequence[int], number: int, call: tuple[Any, ...], here: bool) -> None:
        self.key = key
        self.group = group
        self.number = number  # of the group's collectives
        self.call = call  # kind, bytes, algorithm
        self.here = here  # whether all members are of this process
        self.arrived = 0  # members that this and the other processes know of
        self.new = 0  # own members that the others do not know of yet
        self.latest, self.latest_rank = -1, -1
        self.cause: Cause = None
        self.members: dict[int, list[Member]] = {}  # node -> own members
        self.orders: dict[int, int] = {}  # node -> the first of their orders


class Collectives:
    """The collectives of one process's ranks."""

    def __init__(self, world: Process, transport: Transport) -> None:
        self.world = world
        self.open: dict[tuple[Hashable, int], Meeting] = {}
        self.changed: list[Meeting] = []  # where own members came since the last exchange
        self.costs: dict[tuple[Any, ...], Collective] = {}
        self.players = Players(world, transport)
        self.whole: Sequence[int] = range(world.size)
        self.entered = 0

    def start(
        self,
        rank: RankState,
        kind: str,
        nbytes: int,
        group: Sequence[int] | None,
        algorithm: str,
        memory: str,
        stream: Hashable,
        after: tuple[Request, ...],
    ) -> Request:
        """A member's call."""
        check_kind(kind)
        key, members = self._group(rank, group)
        number = rank.meetings.get(key, 0)
        rank.meetings[key] = number + 1
        self.entered += 1
        if algorithm != WHOLE:
            return self.players.start(rank, (kind, nbytes, algorithm), (key, number), members, memory, after)
        meeting = self._meeting(key, members, number, (kind, nbytes, algorithm), rank.number)
        member = Member(rank, meeting)
        meeting.members.setdefault(rank.node, []).append(member)
        rank.now += self.world.launch_overheads[rank.gpu]
        rank.enqueue(member, stream, after, partial(self._enter, member))
        return member

    def _group(self, rank: RankState, group: Sequence[int] | None) -> tuple[Hashable, Sequence[int]]:
        """The group's key, equal in all processes, and its members."""
        world = self.world
        if group is None:
            return 0, self.whole
        if world.symmetry is not None and group != rank.node_group():
            world.symmetry.broken("the application has collectives of a group other than all or a node's ranks")
        if rank.number not in group:
            raise PptError(f"rank {rank.number} calls a collective of a group that it is not in")
        if isinstance(group, range):
            return ("range", group.start, group.stop, group.step), group
        members = tuple(group)
        return members, members

    def _meeting(self, key: Hashable, group: Sequence[int], number: int, call: tuple[Any, ...], rank: int) -> Meeting:
        meeting = self.open.get((key, number))
        if meeting is None:
            here = self.world.processes == 1 or all(self.world.ranks[member] is not None for member in group)
            meeting = self.open[key, number] = Meeting(key, group, number, call, here)
        elif meeting.call != call:
            raise PptError(
                f"rank {rank} calls {_call_text(call)}, but another member of the group {_call_text(meeting.call)}",
                hint="all members of a group call the same collectives in the same order",
            )
        return meeting

    def _enter(self, member: Member, time: int, cause: Cause) -> None:
        """The member is ready at `time`."""
        rank, meeting = member.rank, member.meeting
        member.entered = time
        node = rank.node
        order = rank.order()
        meeting.orders[node] = min(order, meeting.orders.get(node, order))
        if (time, -rank.number) > (meeting.latest, -meeting.latest_rank):
            meeting.latest, meeting.latest_rank, meeting.cause = time, rank.number, cause
        if meeting.here:
            meeting.arrived += 1
            if meeting.arrived == self._expected(meeting):
                self._finish(meeting)
            return
        if not meeting.new:
            self.changed.append(meeting)
        meeting.new += 1

    def _expected(self, meeting: Meeting) -> int:
        symmetry = self.world.symmetry
        return len(meeting.group) if symmetry is None or meeting.key != 0 else self.world.gpus_per_node

    def _finish(self, meeting: Meeting) -> int:
        """All have come: it ends on every node after the time that the machine says. Returns when, in ps."""
        del self.open[meeting.key, meeting.number]
        end = meeting.latest + self._cost(meeting).duration
        for node in meeting.members:
            self.world.push(end, meeting.orders[node], self._ends, (meeting, node))
        return end

    def _cost(self, meeting: Meeting) -> Collective:
        kind, nbytes, algorithm = meeting.call
        nodes, per_node = self._shape(meeting.group)
        key = (kind, nbytes, nodes, per_node, algorithm)
        found = self.costs.get(key)
        if found is None:
            found = self.world.machine.collective(kind, nbytes, nodes, per_node, algorithm)
            if nodes > 1 and found.duration < self.world.machine.lookahead:
                found = found._replace(duration=self.world.machine.lookahead)
            self.costs[key] = found
        return found

    def _shape(self, group: Sequence[int]) -> tuple[int, int]:
        """(nodes, most members on one) of a group."""
        per_node = self.world.gpus_per_node
        if isinstance(group, range) and group.step == 1 and group.start % per_node == 0:
            return -(-len(group) // per_node), min(len(group), per_node)
        counts: dict[int, int] = {}
        for rank in group:
            counts[rank // per_node] = counts.get(rank // per_node, 0) + 1
        return len(counts), max(counts.values())

    def _ends(self, time: int, subject: tuple[Meeting, int]) -> None:
        """The collective ends for the members on a node."""
        meeting, node = subject
        start = meeting.latest
        for member in meeting.members.pop(node):  # so that no cycle is left behind
            rank = member.rank
            cause = meeting.cause
            if rank.log is not None:
                rank.log.extend((COLLECTIVE, member.entered, time))
            if rank.intervals is not None:
                rank.intervals.communication.extend((start, time))
                label = f"{meeting.call[0]} ({self._cost(meeting).algorithm})"
                cause = Segment(cause, meeting.latest_rank, "collective", label, start, time)
            member.complete(time, cause)

    # Between processes

    def news(self) -> list[News]:
        """What the other processes do not know yet: members that came here. Own members count from now on, too."""
        tell = self.world.told_cause
        found = [(m.key, m.number, m.call, m.new, m.latest, m.latest_rank, tell(m.cause)) for m in self.changed]
        self.changed = []
        return found

    def hear(self, news: Iterable[News]) -> int:
        """What all processes told, this one included: complete meetings end. Returns the first end in ps, or NEVER."""
        first = NEVER
        for key, number, call, count, latest, latest_rank, cause in news:
            group = self._members(key)
            meeting = self._meeting(key, group, number, call, latest_rank)
            if (latest, -latest_rank) > (meeting.latest, -meeting.latest_rank):
                meeting.latest, meeting.latest_rank, meeting.cause = latest, latest_rank, cause
            meeting.new = 0
            meeting.arrived += count
            if meeting.arrived == len(group):
                first = min(first, self._finish(meeting))
        return first

    def _members(self, key: Any) -> Sequence[int]:
        if key == 0:
            return self.whole
        return range(*key[1:]) if key[0] == "range" else key


def _call_text(call: tuple[Any, ...]) -> str:
    kind, nbytes, algorithm = call
    return f"{kind} of {nbytes} bytes ({algorithm})"
