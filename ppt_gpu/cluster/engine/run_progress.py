"""How far a run is: by the iterations or tasks that its programs say they have, else its events and simulated time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ppt_gpu.cluster.engine.world import World
from ppt_gpu.cluster.model.machine import PS_PER_S
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.units import format_time

ASKED = 256  # ranks: looking must cost next to nothing


class RunProgress(Progress):
    """The mean of the ranks of `worlds`; those that have not said how much they have are at the beginning."""

    def __init__(self, worlds: Sequence[World]) -> None:
        super().__init__("events")
        self.worlds = worlds
        ranks = [rank for world in worlds for rank in world.own]
        self.ranks = ranks[:: max(1, -(-len(ranks) // ASKED))]

    def look(self) -> None:
        told = [rank.told for rank in self.ranks if rank.told is not None]
        if told:
            self.what = told[0].what
            self.total = round(sum(one.total for one in told) / len(told))
            self.finished = sum(min(one.finished(), one.total) for one in told) / len(self.ranks)
            if self.finished and not self.earlier:  # the first one made the predictions of its kernels, too
                self.earlier, self.began = self.finished, time.monotonic()
            return
        events = sum(world.queue.events for world in self.worlds)
        if not events:
            self.what = "the first events"
            return
        seconds = max((rank.now for rank in self.ranks), default=0) / PS_PER_S
        self.what = f"{events:,} events, {format_time(seconds)} simulated"
