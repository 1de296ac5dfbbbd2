"""Runs the blocks of a launch in compiled code, and sees to what the scheduler leaves: host calls, waiting, errors."""

from __future__ import annotations

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.units import format_bytes
from ppt_gpu.emulator.analysis.assumed import assumed_warnings
from ppt_gpu.emulator.analysis.dynamic_work import waiting_text
from ppt_gpu.emulator.analysis.notes import warnings_of
from ppt_gpu.emulator.host.host_calls import Caller, Printed, call_host
from ppt_gpu.emulator.memory.warp_context import BARRIER_OF_WARP, Flag, Slot
from ppt_gpu.emulator.run import faults
from ppt_gpu.emulator.run.collect import Collector
from ppt_gpu.emulator.run.launch_state import AT_ONCE, SHORTEST_TURN, Resident, Tables, shared_turn
from ppt_gpu.emulator.run.schedule import HELD, READY, WAITING, Reason, State, let_others_run, run_blocks
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_buffers import TraceBuffers
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.workload.block_cluster import IDLE_ROUNDS, blocks_of
from ppt_gpu.workload.budget import Budget

WARPS = 1 << 14  # of blocks that end before the trace buffers are taken over
MOST_RESIDENT = 4 << 30  # B of blocks in flight
#: words of the scheduler's state that go from block to block
_CURSORS = [State.BUDGET]


class BlockRun:
    """One run of some blocks of a launch."""

    def __init__(self, tables: Tables, path: str, blocks: NDArray[np.int64], budget: Budget, share_out: bool) -> None:
        """share_out: blocks take short turns, as they come back for more of a work that they share."""
        self.tables, self.path, self.blocks, self.budget = tables, path, blocks, budget
        self.share_out = share_out and len(blocks) > blocks_of(tables.cluster)
        self.waited = False  # some block waited for others
        self.collector = Collector(tables.engine, tables.warps, len(blocks), budget)
        tables.marks = np.zeros((len(blocks) if self.collector.by_block else 0, len(tables.guarded)), np.int64)
        self.ends = np.zeros((max(WARPS // tables.warps, 2), tables.warps, 3), np.int64)
        self.printed = Printed()
        self.resident = Resident(tables)  # whose turn it is
        self.resident.state[State.BUDGET] = budget.instructions
        self.buffers = self.collector.buffers(self.resident.rows, many=False)
        self.apart: dict[int, TraceBuffers] = {}  # by position: of blocks that take turns, until all have ended

    def go(self) -> Trace:
        with Progress("blocks run", len(self.blocks)) as self.progress:
            return self._go()

    def _go(self) -> Trace:
        size = blocks_of(self.tables.cluster)
        if self.share_out:
            self._share_out(size)
        elif size > 1:
            for first in range(0, len(self.blocks), size):
                self._run_cluster(first, size)
        else:
            while self._run(self.resident, len(self.blocks)) != Reason.FINISHED:
                self._take_turns()
        self._take(last=True)
        return self._trace()

    def _run_cluster(self, first: int, size: int) -> None:
        """The blocks of one cluster take turns until all have ended."""
        shared = np.zeros((size, self.resident.cluster.shape[1]), np.uint8)
        residents = [self._begin(first + rank, shared, rank) for rank in range(size)]
        flying, guarded = list(residents), _Counts(self.tables, first)
        idle = 0  # rounds in a row in which nothing moved; a loop that waits takes one to see what has changed
        while flying:
            moved = self._round(flying, guarded)
            idle = 0 if open_barrier(residents) or moved else idle + 1
            if idle == IDLE_ROUNDS:
                if not any(self._part(resident) for resident in flying):
                    raise self._stuck(flying[0])
                idle = 0
        self._end_together(first, first + size, guarded)

    def _round(self, flying: list[Resident], guarded: _Counts, turn: int = 0) -> bool:
        """A turn for each block; those that end leave the list. Returns whether any of them got on.

        turn: warp instructions after which it ends, if not 0; else as far as the block comes.
        """
        moved = False
        for resident in list(flying):
            self._switch(resident)
            resident.state[State.MOVED] = 0
            resident.state[State.YIELD] = resident.state[State.BUDGET] - turn if turn else 0
            position = int(resident.state[State.POSITION])
            reason = self._run(resident, position + 1)
            self.waited |= reason == Reason.STUCK
            guarded.add(position)
            if reason == Reason.FINISHED:
                flying.remove(resident)
                moved = True
            moved = moved or bool(resident.state[State.MOVED])
        return moved

    def _end_together(self, first: int, end: int, guarded: _Counts) -> None:
        """The blocks from position `first` to `end`, which took turns, have all ended."""
        guarded.mark(end)
        state, collector = self.resident.state, self.collector
        if self.tables.engine.traced:
            for position in range(first, end):
                buffers = self.apart[position]
                collector.take(buffers, buffers.cursors()[None], position)
        self.apart = {}
        self.buffers = collector.buffers(self.resident.rows, many=False)
        state[[State.POSITION, State.STARTED, State.ENDED]] = end, 0, 0
        self.progress.to(end)

    def _run(self, resident: Resident, end: int) -> Reason:
        """Run `resident` up to block position `end`. Returns FINISHED, YIELDED, STUCK or CLUSTER; raises PptError."""
        tables, state = self.tables, resident.state
        while True:
            reason = Reason(
                run_blocks(
                    tables.engine.address, resident.rows, self.blocks[:end], tables.grid, state, self.ends,
                    resident.cleared, resident.local, resident.frames, tables.cleared, tables.spins, tables.guarded,
                    tables.guarded_before, tables.marks, self.collector.patterns.block,
                )
            )  # fmt: skip
            if reason == Reason.CLUSTER and len(resident.cluster) == 1 and open_barrier([resident]):
                continue
            if reason in (Reason.FINISHED, Reason.YIELDED, Reason.STUCK, Reason.CLUSTER):
                return reason
            if reason == Reason.FULL:
                self._make_room()
            elif reason == Reason.HOST:
                self._call_host(resident)
            elif reason in (Reason.GIVE_WAY, Reason.SYNC):
                self._give_way(resident, reason)
            else:
                raise self._error(reason, resident)

    # blocks that share work out among themselves -------------------------------------------------------------------

    def _share_out(self, size: int) -> None:
        """As many blocks as a large GPU holds take turns, short ones at first; the next begin as others end.

        So each gets its part of the work, as blocks do that run at the same time. `size`: blocks of a cluster.
        """
        count = len(self.blocks)
        guarded = _Counts(self.tables, 0)
        flying: list[list[Resident]] = []  # by cluster: its blocks that have not ended
        clusters: list[list[Resident]] = []  # all blocks of the same clusters
        following, idle, most = 0, 0, AT_ONCE
        while flying or following < count:
            while following < count and size * len(flying) < most:
                shared = np.zeros((size, self.resident.cluster.shape[1]), np.uint8) if size > 1 else None
                clusters.append([self._begin(following + rank, shared, rank) for rank in range(size)])
                flying.append(list(clusters[-1]))
                most = min(most, MOST_RESIDENT // max(clusters[-1][0].nbytes, 1))
                following += size
            done = self.budget.instructions - int(self.resident.state[State.BUDGET])
            turn = shared_turn(done, following, self.tables.warps)
            moved = False
            for blocks, cluster in zip(flying, clusters, strict=True):
                moved |= self._round(blocks, guarded, turn)
                moved |= size > 1 and open_barrier(cluster)
            going = [bool(blocks) for blocks in flying]
            flying, clusters = list(compress(flying, going)), list(compress(clusters, going))
            idle = 0 if moved else idle + 1
            if idle == IDLE_ROUNDS:
                if any(self._part(resident) for blocks in flying for resident in blocks):
                    idle = 0
                    continue
                if following == count:
                    raise self._stuck(flying[0][0])
                most, idle = min(2 * most, count), 0  # what they wait for may be the part of a block behind them
                self._check_room(flying[0][0], most)
        self._end_together(0, count, guarded)

    # blocks that wait for others -----------------------------------------------------------------------------------

    def _take_turns(self) -> None:
        """The block at hand waits for others: it and those behind it take turns until none of them waits any more."""
        self._take()
        first = int(self.resident.state[State.POSITION])
        self.apart[first] = self.buffers
        guarded = _Counts(self.tables, first)
        flying, following, more, idle = [self.resident], first + 1, 1, 0
        while flying:
            idle = 0 if self._round(flying, guarded) else idle + 1
            if idle < IDLE_ROUNDS:
                continue
            idle = 0
            if any(self._part(resident) for resident in flying):
                continue
            last = min(following + more, len(self.blocks))
            if following == last:
                raise self._stuck(flying[0])
            self._check_room(flying[0], len(flying) + last - following)
            flying += [self._begin(position) for position in range(following, last)]
            following, more = last, 2 * more
        self._end_together(first, following, guarded)

    def _begin(self, position: int, shared: NDArray[np.uint8] | None = None, rank: int = 0) -> Resident:
        resident = Resident(self.tables, shared, rank)
        resident.state[State.POSITION] = position
        if self.share_out:
            resident.state[State.TURN] = SHORTEST_TURN  # the warps of the block share, too
        self.apart[position] = self.collector.buffers(resident.rows, many=True)
        return resident

    def _switch(self, resident: Resident) -> None:
        """`resident` goes on with the trace buffers and the budget."""
        resident.state[_CURSORS] = self.resident.state[_CURSORS]
        self.resident = resident

    def _check_room(self, resident: Resident, count: int) -> None:
        if count * resident.nbytes > MOST_RESIDENT:
            raise BudgetError(
                f"{count} blocks of kernel '{short_name(self.tables.engine.kernel.name)}' wait for each other: "
                f"together they need {format_bytes(count * resident.nbytes)}, of {format_bytes(MOST_RESIDENT)}",
                path=self.path,
                hint="a GPU does not hold so many blocks at once either: launch fewer",
            )

    def _stuck(self, resident: Resident) -> PptError:
        row = next(row for row in resident.rows if row[Slot.STATUS] in (READY, HELD))
        block = int(self.blocks[resident.state[State.POSITION]])
        engine = self.tables.engine
        line = faults.line_of(engine, int(row[Slot.RESUME]))
        if row[Slot.STATUS] == HELD:
            return faults.cluster_error(engine.kernel.name, self.path, self.tables.launch, block, line)
        return faults.stuck_error(engine.kernel.name, self.path, self.tables.launch, block, line, len(self.blocks))

    # what one warp needs -------------------------------------------------------------------------------------------

    def _give_way(self, resident: Resident, reason: Reason) -> None:
        """Lanes of the warp that ran last wait for others of their warp."""
        warp = int(resident.state[State.WARP]) - 1
        row = resident.rows[warp]
        stack, waiting = resident.stacks[warp], self.tables.engine.flow.waiting
        if let_others_run(row, stack, waiting, at_barrier=reason == Reason.SYNC) or reason == Reason.GIVE_WAY:
            return
        if row[Slot.BARRIER_KIND] == BARRIER_OF_WARP:
            flow = self.tables.engine.flow
            self.tables.notes[flow.start[int(row[Slot.RESUME]) - flow.segments + 1] - 1] |= Flag.DIVERGENT_SYNC
        elif row[Slot.BARRIER_KIND] == 1:
            resident.state[State.FIRST_BARRIER + int(row[Slot.BARRIER])] += 1
        else:
            row[Slot.STATUS] = WAITING

    def _part(self, resident: Resident) -> bool:
        """Nothing ends the waiting: lanes at a join go on alone. Returns whether there are any."""
        waiting = self.tables.engine.flow.waiting
        free = np.flatnonzero(resident.rows[:, Slot.STATUS] == READY).tolist()
        rows, stacks = resident.rows, resident.stacks
        return any(let_others_run(rows[w], stacks[w], waiting, at_barrier=False, at_last=True) for w in free)

    def _call_host(self, resident: Resident) -> None:
        kernel, launch = self.tables.engine.kernel, self.tables.launch
        warp = int(resident.state[State.WARP])
        row = resident.rows[warp]
        call = kernel.instructions[int(row[Slot.HOST_CALL])]
        site = kernel.calls[call.index]
        block = int(self.blocks[resident.state[State.POSITION]])
        mask = int(row[Slot.MASK])
        caller = Caller(
            self.tables.memory,
            resident.shared,
            lambda lane: resident.lane_memory(warp, lane),
            int(row[Slot.FRAME_OFFSET]) + site.frame_bytes,
            [lane for lane in range(32) if mask >> lane & 1],
            lambda lane: faults.thread_text(launch, block, 32 * warp + lane),
        )
        try:
            call_host(kernel, kernel.functions[site.callees[0]], caller, self.printed)
        except PptError as error:
            where, column = call.line, call.column
            raise PptError(error.message, path=self.path, line=where, column=column, hint=error.hint) from None

    def _error(self, reason: Reason, resident: Resident) -> PptError:
        block = int(self.blocks[resident.state[State.POSITION]])
        warp = int(resident.state[State.WARP])
        if reason == Reason.FAULT:
            return faults.fault_error(self.tables, self.path, block, resident, warp)
        if reason == Reason.BUDGET:
            return faults.budget_error(self.tables, self.path, block, warp, resident, self.budget.instructions)
        return faults.deadlock_error(self.tables, self.path, block, resident)

    # trace ---------------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """A trace buffer is full."""
        state = self.resident.state
        if not self.apart:
            self._take()
            return
        own = self.apart[int(state[State.POSITION])]
        own.drop(own.starts)
        self.collector.make_room(list(self.apart.values()))

    def _take(self, last: bool = False) -> None:
        """Take over what blocks left that ended one after another; that at hand keeps what it recorded. Unless these
        are the last blocks, those to come get room."""
        state, collector, buffers = self.resident.state, self.collector, self.buffers
        ended, position = int(state[State.ENDED]), int(state[State.POSITION])
        self.progress.to(position)
        if self.tables.engine.traced:
            collector.take(buffers, self.ends[:ended], position - ended)
        if self.tables.engine.traced and not last:
            buffers.drop(buffers.places(self.ends[ended - 1]) if ended else buffers.starts)
            collector.make_room([buffers])
        state[State.ENDED] = 0

    def _trace(self) -> Trace:
        tables = self.tables
        noted = np.flatnonzero(tables.notes)
        notes = zip(noted.tolist(), tables.notes[noted].tolist(), strict=True)
        kernel = tables.engine.kernel
        noted_texts = warnings_of(kernel, tables.module.named, notes)
        warnings = (*tables.memory.warnings, *assumed_warnings(kernel, tables.module), *noted_texts)
        if self.waited and self.share_out:  # else who runs the blocks says so, who knows whether they are all
            warnings += (waiting_text(kernel.name),)
        if self.printed.lost:
            warnings += (f"the text of {self.printed.lost} printf calls was not kept: there was too much",)
        n = len(tables.engine.guarded)
        guarded, marks = tables.guarded[:n], tables.marks[:, :n]
        groups = tables.groups()
        return self.collector.trace(self.blocks, guarded, marks, groups, tables.memory, warnings, self.printed.text)


def open_barrier(residents: list[Resident]) -> bool:
    """Open the barrier of a cluster if every live lane of its blocks has arrived. Returns whether it did."""
    rows = [resident.rows for resident in residents]
    live = np.concatenate([r[:, Slot.LIVE] for r in rows]) & 0xFFFFFFFF
    arrived = np.concatenate([r[:, Slot.CLUSTER_ARRIVED] for r in rows])
    if not arrived.any() or (live & ~arrived).any():
        return False
    for r in rows:
        r[:, Slot.CLUSTER_ARRIVED] = 0
        r[r[:, Slot.STATUS] == HELD, Slot.STATUS] = READY
    return True


class _Counts:
    """Thread counts of guarded instructions of blocks that take turns, as if they had run one after another."""

    def __init__(self, tables: Tables, first: int) -> None:
        self.tables, self.first = tables, first
        self.before = tables.marks[first - 1].copy() if first and len(tables.marks) else np.zeros_like(tables.guarded)
        self.start = self.before.copy()
        self.blocks: dict[int, NDArray[np.int64]] = {}
        self.add(first)

    def add(self, position: int) -> None:
        """What was counted since last time belongs to the block at `position`."""
        new = self.tables.guarded - self.before
        self.blocks[position] = self.blocks.get(position, 0) + new
        self.before = self.tables.guarded.copy()

    def mark(self, end: int) -> None:
        """The counts at the end of each block up to position `end`."""
        total = self.start
        for position in range(self.first, end if len(self.tables.marks) else 0):
            total = total + self.blocks.get(position, 0)
            self.tables.marks[position] = total
