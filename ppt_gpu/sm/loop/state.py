"""The tables of the compiled loop.

Warp slot w is bit w // K of scheduler w mod K, so the warps of a scheduler are one machine word. Tables are flat arrays
of records of a fixed number of words: `warps[me + READY]`, where `me` is the offset of a warp's record. (Rows of a
two-dimensional array would cost a multiplication by a stride that the compiler does not know.)
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ppt_gpu.sm.loop.pack import Packed
from ppt_gpu.sm.program.machine import NEVER, Machine
from ppt_gpu.sm.program.program import KIND_BARRIER, Program, op_issues
from ppt_gpu.sm.program.result import STALL_REASONS

# `warps`: offset w << WARP_SHIFT. WORD: that of the next entry, at POS; ENTERS: ANNOUNCE of its operation.
# (To look them up when it issues would be to wait for one table after another.) FETCHED: of a warp that WAITING says is
# at a barrier, the cycle at which its next entry is there, 0: in the next one. HELD: cycle * 4 + WAIT_*, since when it
# waits for its slots, and for what.
(
    POS, READY, BASE, RESULTS, ACCESS, GATE, BLOCK_SLOT, WAITING, ARRIVED_AT, BARRIER_LATENCY, LAST_OP, EXIT_AT, WORD,
    ENTERS, FETCHED, HELD,
) = range(16)  # fmt: skip
WARP_SHIFT = 4
# `scheds`: offset k << SCHED_SHIFT. Masks of warps: READY_MASK, only a port may be missing; OPEN, nor is that.
# Before cycle NEXT_OPEN no port opens that a ready warp needs. BLOCKED: mask of ports. LAST: mask of the warps that
# come after the one that issued last. WAKES: mask of the rows of the near wheel in which its warps wake. DOOR, of
# scheduler 0: when the last instruction in a queue before a unit of the SM starts.
READY_MASK, OPEN, NEXT_OPEN, BLOCKED, LAST, GREEDY, BUSY, ALIVE, FAR, WAKES, DOOR = range(11)
SCHED_SHIFT = 4
# `gates`, the port of a scheduler: offset (port * K + k) << GATE_SHIFT. NEED: its ready warps that need it;
# MARK: its bit in masks. A port of the SM has its times in the record of scheduler 0, where MAIN of all leads.
# UNTIL: blocked until this cycle; CYCLES: cycles it has been blocked, up to UNTIL; HEAD, FIRST_UNIT: its ring of units;
# TWIN: offset of a twin, -1 none. CLOSES: 0 for the memory port, which all schedulers share and which is blocked too
# often to take its warps out of OPEN and back each time (the loop looks at its UNTIL instead); -1 for all others.
# PRIVATE: only warps of the scheduler use it.
# SERVED: 0, or where in `units` it stands until when the unit of the SM is taken before which the port's units are
# places.
# BEHIND: who needs the port does not pass those that are in such a queue.
(
    UNTIL, CYCLES, NEED, MAIN, MARK, UNITS, TWIN, HEAD, SHARED, RING, FIRST_UNIT, CLOSES, PRIVATE, SERVED, BEHIND,
) = range(15)  # fmt: skip
GATE_SHIFT = 4
# `blocks`, one record a block slot. Of a whole chip only: PENDING, operations whose results are not known yet, and
# GIVEN, the block to launch at LAUNCH_AT (-1: not decided).
BLOCK, LIVE, ARRIVED, LAUNCH_AT, BLOCK_RESULTS, WARPS, PENDING, GIVEN = range(8)
BLOCK_SHIFT = 3
STALL_SHIFT = 4  # `op_stall`: offset operation << STALL_SHIFT
# Numbers read from a table are masked before they index another: the compiler then sees that they are not negative, and
# leaves out the test for an index from the end.
OFFSET = (1 << 24) - 1  # of `gates`
LET_IN = 1 << 24  # above the offset in GATE: the warp has waited for those who were in the queue before it
REASON_MASK = 15

# WAITING of a warp: 0 no, 1 at the barrier of its block, else event + 1 << REASON_BITS | the column it is charged to.
REASON_BITS = 4
# `sync`: where its parts begin; 0 at all of them without events and lines of constants. Of the program's warps, how far
# they are in its `event_of`; that; of events, how many are missing, and the latest so far; of the warps, how far they
# are in its lines of constants; those, * 2, + 1 where it is the last of its read. One for all SMs of a chip: nothing of
# it is of two blocks.
EVENT_AT, EVENT_OF, EVENT_MISSING, EVENT_TIME, LINE_AT, LINE_OF = range(6)

# A key: cycle of the last issue, or number in the program, above the warp's bit; BLOCK_KEY: the block above the cycle.
KEY_SHIFT, BLOCK_KEY = 6, 32
# The timing wheels: 64 rows for the next 64 cycles, and 64 for the turns of that one that follow; a row has
# a mask of warps for each scheduler, of those whose port is FREE_PORT, then one for each of the others. `occupied`: a
# bit for each row of the near and of the later wheel; anybody beyond both? Masks of schedulers: those with a ready warp
# that does not need the memory port, and from ROWS on, those with a warp in each row.
WHEEL_SHIFT = 6
WHEEL = 1 << WHEEL_SHIFT
NEAR, LATER, FAR_AWAY, READY_OTHERS, ROWS = range(5)

#: the columns of `op_stall` as reasons: WAIT_FIXED, WAIT_SHORT, WAIT_LONG, then loop.pack.NO_INSTRUCTION to DRAIN
_COLUMNS = (
    "wait", "short_scoreboard", "long_scoreboard", "no_instruction", "not_selected", "math_pipe_throttle",
    "lg_throttle", "mio_throttle", "barrier", "branch_resolving", "drain",
)  # fmt: skip


# `core`: all tables that change, one after another; `layout` says where each begins, and a few sizes. NOTICE: what the
# others do in a cycle makes a warp that waits for no known time ready so many cycles later, at the soonest.
(
    AT_WARPS, AT_SLOTS, AT_KEYS, AT_SCHEDS, AT_GATES, AT_UNITS, AT_BLOCKS, AT_STALL, AT_DOUBLED, AT_END,
    PLACES, SLOT_SHIFT, NOTICE,
) = range(13)  # fmt: skip


class State:
    """Fresh tables for one run."""

    def __init__(self, program: Program, machine: Machine, packed: Packed, resident: int, per_block: int) -> None:
        k = machine.schedulers
        rows = max(1, -(-per_block * resident // k))  # warp slots of a scheduler
        operations = max(1, len(program.op_name))
        gates, units, self.queued, self.memory_gate = _gates(machine, packed)
        sizes = [
            (k * rows) << WARP_SHIFT, (k * rows) << packed.slot_shift, k * 64, k << SCHED_SHIFT, gates.size, units,
            resident << BLOCK_SHIFT, operations << STALL_SHIFT, operations,
        ]  # fmt: skip
        at = np.concatenate(([0], np.cumsum(sizes)))
        self.core = np.zeros(at[-1], np.int64)
        barriers = np.maximum(program.op_latency[program.op_kind == KIND_BARRIER].astype(np.int64), 1)
        notice = min(int(barriers.min(initial=NEVER)), machine.block_launch + 1)
        self.layout = np.array([*at, k * rows, packed.slot_shift, notice], np.int64)
        (
            self.warps,
            self.slots,  # completion * 4 + WAIT_*, by warp and scoreboard slot
            self.keys,  # by warp: order among those that are not greedy
            scheds,
            self.gates,
            self.units,  # times at which units become free
            self.blocks,
            self.op_stall,
            self.doubled,  # issues as a second entry of a cycle
        ) = (self.core[begin:end] for begin, end in pairwise(at))
        scheds.reshape(k, -1)[:, (LAST, GREEDY)] = -1
        scheds.reshape(k, -1)[:, NEXT_OPEN] = NEVER
        self.scheds = scheds
        slots = self.blocks.reshape(-1, 1 << BLOCK_SHIFT)
        slots[:, LAUNCH_AT] = np.arange(len(slots)) * machine.ramp
        self.gates[:] = gates
        self.wheel = np.zeros(2 * WHEEL * 2 * k, np.int64)
        self.occupied = np.zeros(ROWS + 2 * WHEEL, np.int64)
        self.sync = _sync(program)
        blocks = len(program.block_warp) - 1
        self.block_start = np.zeros(blocks, np.int64)
        self.block_end = np.zeros(blocks, np.int64)

    def ended_blocks(self) -> int:
        """How many blocks have ended so far: also while the loop runs."""
        return int(np.count_nonzero(self.block_end))

    def charged(self, program: Program) -> np.ndarray:
        """op_stall [O, reasons] after a run; every entry that was not a second one was selected for a cycle."""
        stall = np.zeros((len(program.op_name), len(STALL_REASONS)), np.int64)
        table = self.op_stall.reshape(-1, 1 << STALL_SHIFT)[: len(stall)]
        for column, reason in enumerate(_COLUMNS):
            stall[:, STALL_REASONS.index(reason)] += table[:, column]
        stall[:, STALL_REASONS.index("selected")] = op_issues(program) - self.doubled[: len(stall)]
        return stall


def _sync(program: Program) -> np.ndarray:
    events = len(program.event_count)
    parts: list[np.ndarray] = [
        program.event_start,
        program.event_of,
        program.event_count,
        np.zeros(events),
        program.constant_start,
        program.constant_line.astype(np.int64) * 2 + program.constant_last,
    ]
    if not len(program.event_start) and not len(program.constant_start):
        return np.zeros(len(parts), np.int64)
    begins = len(parts) + np.cumsum([0, *(part.size for part in parts)])[:-1]
    return np.concatenate([begins, *parts]).astype(np.int64)


def _gates(machine: Machine, packed: Packed) -> tuple[np.ndarray, int, np.ndarray, int]:
    """(gates, words for the times at which units become free, main records of the queued ports, the memory port).

    The memory port is the only queued one, if its pipe stands in the SM; else one that nobody needs.
    """
    count, ports = machine.schedulers, len(packed.ports)
    gate = [0] * (1 << GATE_SHIFT)
    gate[CLOSES] = -1
    rows = [gate.copy() for _ in range((ports + 1) * count)]
    served = any(port.served for port in packed.ports)
    width = max(port.units for port in packed.ports) or 1
    words = count * ports * width
    queued = []
    for index, port in enumerate(packed.ports):
        owner = index if port.twin < 0 else min(index, port.twin)
        for k in range(count):
            home = 0 if port.shared else k
            gate = rows[index * count + k]
            gate[MARK] = 1 << index
            gate[MAIN] = (index * count + home) << GATE_SHIFT
            gate[UNITS], gate[SHARED], gate[RING] = port.units, port.shared, port.ring
            gate[TWIN] = -1 if port.twin < 0 else (port.twin * count + k) << GATE_SHIFT
            gate[PRIVATE] = port.private
            gate[FIRST_UNIT] = (owner * count + home) * width
            gate[SERVED] = words + index if port.served else 0
            gate[BEHIND] = port.queued and served
            if port.queued and home == k:
                queued.append((index * count + k) << GATE_SHIFT)
    gates = np.array(rows, np.int64).reshape(ports + 1, count, 1 << GATE_SHIFT)
    memory = (ports * count) << GATE_SHIFT
    if len(queued) == 1 and gates.reshape(-1, 1 << GATE_SHIFT)[queued[0] >> GATE_SHIFT, SHARED]:
        memory = queued[0]
        gates[(memory >> GATE_SHIFT) // count, :, CLOSES] = 0
    return gates.ravel(), words + ports, np.array(queued, np.int64), memory
