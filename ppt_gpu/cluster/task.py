"""A task: a generator with a clock of its own that the simulation carries on whenever what it waits for is done."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ppt_gpu.cluster.request import Cause, Request, Waiter
from ppt_gpu.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.cluster.rank import Rank
    from ppt_gpu.cluster.world import World

Body = Generator[Any, None, None]


class Task(Waiter):
    """The program of a rank, or a collective that is played message by message on its behalf."""

    __slots__ = ("body", "now", "rank", "waiting", "world")

    rank: Rank

    def __init__(self, world: World, time: int, cause: Cause) -> None:
        super().__init__(time, cause)
        self.world = world
        self.now = time
        self.body: Body | None = None
        self.waiting: Any = None  # what the body waits for

    def ready(self) -> None:
        self.world.runnable.append(self)

    def carry_on(self) -> None:
        """Run the body from where it waits to where it must wait again, or to its end."""
        body = self.body
        assert body is not None
        if self.latest > self.now:
            self.now = self.latest
        self.waiting = None
        for wanted in body:
            if wanted is None:
                continue
            if isinstance(wanted, Request):
                wanted = (wanted,)
            self.latest = self.now
            try:
                done = self.wait(wanted)
            except (AttributeError, TypeError):
                _check(wanted)
                raise
            if not done:
                self.waiting = wanted
                return
            self.now = self.latest
        self.finished()

    def finished(self) -> None:
        """The body is at its end."""
        self.body = None


def _check(wanted: Any) -> None:
    """PptError if this is not what can be waited for."""
    if not isinstance(wanted, list | tuple):
        raise PptError(f"the application yields a {type(wanted).__name__}", hint="yield a request or a list of them")
    for request in wanted:
        if not isinstance(request, Request):
            raise PptError(f"the application yields a {type(request).__name__}", hint="yield requests")
