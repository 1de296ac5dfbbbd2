"""The tables of the compiled loop.

Warp slot w is bit w // K of scheduler w mod K, so the warps of a scheduler are one machine word. A slot's number is its
`place`; a table of `Sm` is indexed by the number of what it describes, and gives a record or a word.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.records import Layout, Record, Table, Words, addresses, viewer
from ppt_gpu.sm.loop.pack import Operation, Packed
from ppt_gpu.sm.program.machine import NEVER, Machine
from ppt_gpu.sm.program.program import KIND_BARRIER, Program, op_issues
from ppt_gpu.sm.program.result import STALL_REASONS


class Warp(Record):
    """A warp slot."""

    pos: int  # its next entry
    ready: int  # the cycle from which that waits for nothing but its port; NEVER: nobody knows yet
    base: int  # how long its port had been blocked when it became ready
    results: int  # the cycle in which all results known so far are there
    access: int  # its next memory entry
    gate: int  # the port of its next entry, + LET_IN: it has waited for those who were in the queue before it
    block_slot: int
    waiting: int  # 0 no, 1 at its block's barrier, else event + 1 << REASON_BITS | the column that it is charged to
    arrived_at: int  # the cycle in which it came to the barrier
    barrier_latency: int
    last_op: int
    exit_at: int
    word: int  # of its next entry; to look it up when that issues would be to wait for one table after another
    enters: int  # the `announce` of its operation, for the same reason
    fetched: int  # at a barrier: the cycle in which its next entry is there, 0: in the next one
    held: int  # cycle * 4 + WAIT_*: since when it waits for its scoreboard slots, and for what


class Scheduler(Record):
    """A scheduler. Masks of its warps, but where something else is said."""

    ready: int  # only a port may be missing
    open: int  # nor is that
    next_open: int  # before this cycle no port opens that a ready warp needs
    blocked: int  # mask of ports
    after: int  # their turn comes after that of the warp that issued last
    greedy: int  # the number of the greedy warp, -1: none
    busy: int  # the cycle from which it can issue again
    alive: int
    far: int  # they wake when the later wheel has turned, or nobody knows when
    wakes: int  # mask of the rows of the near wheel in which its warps wake
    door: int  # of scheduler 0: when the last instruction in a queue before a unit of the SM starts


class Gate(Record):
    """A port of a scheduler, number port * K + k. A port of the SM has its times with scheduler 0."""

    until: int  # blocked until this cycle
    cycles: int  # that it has been blocked, up to `until`
    need: int  # the ready warps of the scheduler that need it
    main: int  # the gate that has its times
    mark: int  # its bit in masks of ports
    units: int
    twin: int  # a gate that shares its units, -1: none
    head: int  # of its ring of units, that one comes next
    shared: int
    ring: int  # its units become free in the order in which they were taken
    first_unit: int  # place in `units`
    closes: int  # 0: the memory port, see State; -1: all others
    private: int  # only warps of this scheduler use it
    served: int  # 0, or its units are places before one of the SM, which is taken until units[served]
    behind: int  # who needs it does not pass those that are in such a queue


class BlockSlot(Record):
    """A slot for a block."""

    block: int
    live: int  # warps that have not exited
    arrived: int  # warps at the barrier
    launch_at: int  # the cycle in which it gets its next block
    results: int  # the cycle in which all results of warps that have exited are there
    warps: int
    pending: int  # of a chip: operations of unknown results; with collector units: warps not seen to be over
    given: int  # of a whole chip: the block to launch, -1: not decided


class Track(Record):
    """How far the run is, and what loop skipping wants of the loop (loop.skip, loop.replay)."""

    mode: int  # FREELY, LOGGING or ANSWERED
    logged: int  # operations in the log
    next_answer: int
    answers: int  # in the log, of which next_answer and those that follow are still to be used
    anchor: int  # the warp slot whose loop is watched
    target: int  # the loop compares when the anchor has come to this entry
    look_at: int  # and pauses in this cycle
    copied_at: int  # the cycle of the copy; NEVER: none yet, `target` is the moment for one
    copied_from: int  # the entry at which the anchor was then
    lag: int  # it looks the same every so many entries
    stride: int  # a multiple of that: entries between two comparisons
    now: int
    next_block: int
    ended: int  # blocks
    idle: int  # cycles of warps without entries
    next_launch: int  # the cycle in which the next block is due
    issued: int  # the warp slot that issued last
    due: int  # the earlier of next_launch and look_at
    nothing_due: int  # of a whole chip: no warp wakes and no block comes unless others let it


class Logged(Record):
    """A memory operation of the round that is logged (loop.replay)."""

    when: int
    warp: int
    access: int
    what: int  # kind << WAY_BITS | way
    done: int  # what the memory system said then
    place: int
    answer_done: int  # and to the same operation of the last round that was put to it
    answer_place: int


class Sm(Record):
    """All that the loop of one SM works on."""

    # of the program
    code: Words
    waits: NDArray[np.uint64]
    operations: Table[Operation]
    path_start: Words
    warp_path: NDArray[np.int32]
    warp_access: Words
    block_warp: Words
    accesses: Words
    tx: Words
    queued: Words  # gates of the load/store queue
    sync: Words  # see _sync
    block_start: Words
    block_end: Words
    # of the SM: the tables that a copy of its state holds
    warps: Table[Warp]
    slots: Words  # completion * 4 + WAIT_*, by warp and scoreboard slot
    keys: Words  # by warp: order among those that are not greedy
    scheds: Table[Scheduler]
    gates: Table[Gate]
    units: Words  # times at which units become free
    blocks: Table[BlockSlot]
    op_stall: Words  # warp cycles, by operation and column
    doubled: Words  # issues as a second entry of a cycle
    # and others
    wheel: Words
    occupied: Words
    track: Table[Track]
    mem: Words  # the memory system (loop.memory)
    copied_warps: Table[Warp]  # as the copy has them
    copied_scheds: Table[Scheduler]
    log: Table[Logged]
    # sizes and settings
    schedulers: int
    policy: int
    width: int
    memory_gate: int
    per_block: int  # warp slots of a block slot
    block_launch: int
    slot_shift: int  # scoreboard slots of a warp, as a power of two
    places: int  # warp slots
    resident: int  # block slots
    total: int  # blocks
    queues: int  # entries of `queued`
    all_gates: int
    all_units: int
    all_operations: int  # of the program
    notice: int  # what others do in a cycle makes a warp that waits for no known time ready so much later, at least
    on_chip: int  # 1: one SM of a whole chip


#: of what State.sm says of an SM
sm_at: Callable[[Words], Sm] = viewer(Sm)

STALL_SHIFT = 4  # `op_stall`: offset operation << STALL_SHIFT
LET_IN = 1 << 24
REASON_BITS, REASON_MASK = 4, 15  # of Warp.waiting
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
_KINDS: dict[str, type[Record] | None] = {
    "warps": Warp, "slots": None, "keys": None, "scheds": Scheduler, "gates": Gate, "units": None, "blocks": BlockSlot,
    "op_stall": None, "doubled": None, "wheel": None, "occupied": None, "track": Track,
}  # fmt: skip


class State:
    """Fresh tables for one run: `core`, all that change, one after another, and views of them."""

    def __init__(self, program: Program, machine: Machine, packed: Packed, resident: int) -> None:
        self.program, self.machine, self.packed, self.resident = program, machine, packed, resident
        self.per_block = int(np.diff(program.block_warp).max(initial=0))
        k = machine.schedulers
        rows = max(1, -(-self.per_block * resident // k))  # warp slots of a scheduler
        self.places = k * rows
        operations = max(1, len(program.op_name))
        gates, units, self.queued, self.memory_gate = _gates(machine, packed)
        layout = Layout(_KINDS, {
            "warps": self.places, "slots": self.places << packed.slot_shift, "keys": k * 64, "scheds": k,
            "gates": len(gates), "units": units, "blocks": resident, "op_stall": operations << STALL_SHIFT,
            "doubled": operations, "wheel": 2 * WHEEL * 2 * k, "occupied": ROWS + 2 * WHEEL, "track": 1,
        })  # fmt: skip
        self.core, self.tables = np.zeros(layout.words, np.int64), layout.tables
        tables = self.tables(self.core)
        tables["scheds"]["after"] = tables["scheds"]["greedy"] = -1
        tables["scheds"]["next_open"] = NEVER
        tables["blocks"]["launch_at"] = np.arange(resident) * machine.ramp
        tables["gates"][:] = gates
        self.track = tables["track"][0]
        self.track["target"] = self.track["look_at"] = NEVER
        self.sync = _sync(program)
        blocks = len(program.block_warp) - 1
        self.block_start = np.zeros(blocks, np.int64)
        self.block_end = np.zeros(blocks, np.int64)

    def sm(
        self, core: Words, accesses: Words, tx: Words, mem: Words, log: NDArray[np.void] | None = None,
        then: Words | None = None,
    ) -> Words:  # fmt: skip
        """The SM whose tables are in `core` [words] and whose memory system is `mem`, for `sm_at`; of a chip its SMs,
        where both are [sms, words]. `log`: for the records of loop.replay. `then`: the copy that it is compared with.
        """
        program, machine, packed = self.program, self.machine, self.packed
        barriers = np.maximum(program.op_latency[program.op_kind == KIND_BARRIER].astype(np.int64), 1)
        tables, copied = self.tables(core), self.tables(core if then is None else then)
        values = {
            "code": packed.code, "waits": program.entry_wait, "operations": packed.operations,
            "path_start": program.path_start, "warp_path": program.warp_path, "warp_access": program.warp_access,
            "block_warp": program.block_warp, "queued": self.queued, "sync": self.sync,
            "block_start": self.block_start, "block_end": self.block_end,
            "accesses": accesses, "tx": tx, "mem": mem,
            "copied_warps": copied["warps"], "copied_scheds": copied["scheds"],
            "log": np.zeros(0, Logged.dtype) if log is None else log,
            "schedulers": machine.schedulers, "policy": machine.policy, "width": machine.width,
            "memory_gate": self.memory_gate, "per_block": self.per_block, "block_launch": machine.block_launch,
            "slot_shift": packed.slot_shift, "places": self.places, "resident": self.resident,
            "total": len(self.block_end), "queues": len(self.queued), "all_gates": tables["gates"].shape[-1],
            "all_units": tables["units"].shape[-1], "all_operations": tables["doubled"].shape[-1],
            "notice": min(int(barriers.min(initial=NEVER)), machine.block_launch + 1), "on_chip": core.ndim - 1,
        }  # fmt: skip
        return addresses(Sm, values | tables)

    def ended_blocks(self) -> int:
        """How many blocks have ended so far: also while the loop runs."""
        return int(np.count_nonzero(self.block_end))

    def charged(self, core: Words) -> np.ndarray:
        """op_stall [O, reasons] after a run; every entry that was not a second one was selected for a cycle."""
        tables, program = self.tables(core), self.program
        stall = np.zeros((len(program.op_name), len(STALL_REASONS)), np.int64)
        table = tables["op_stall"].reshape(-1, 1 << STALL_SHIFT)[: len(stall)]
        for column, reason in enumerate(_COLUMNS):
            stall[:, STALL_REASONS.index(reason)] += table[:, column]
        stall[:, STALL_REASONS.index("selected")] = op_issues(program) - tables["doubled"][: len(stall)]
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


def _gates(machine: Machine, packed: Packed) -> tuple[NDArray[np.void], int, Words, int]:
    """(the gates, words for the times at which units become free, main gates of the queued ports, the gate of
    the memory port).

    The memory port is the only queued one, if its pipe stands in the SM; else one that nobody needs. All schedulers
    share it, and it is blocked too often to take its warps out of `open` and back each time: the loop looks at its
    `until` instead.
    """
    count, ports = machine.schedulers, len(packed.ports)
    gates: NDArray[np.void] = np.zeros((ports + 1) * count, Gate.dtype)
    gates["closes"] = -1
    served = any(port.served for port in packed.ports)
    width = max(port.units for port in packed.ports) or 1
    units = count * ports * width
    queued = []
    for index, port in enumerate(packed.ports):
        owner = index if port.twin < 0 else min(index, port.twin)
        for k in range(count):
            home = 0 if port.shared else k
            gate = gates[index * count + k]
            gate["mark"] = np.uint64(1 << index).astype(np.int64)
            gate["main"] = index * count + home
            gate["units"], gate["shared"], gate["ring"] = port.units, port.shared, port.ring
            gate["twin"] = -1 if port.twin < 0 else port.twin * count + k
            gate["private"] = port.private
            gate["first_unit"] = (owner * count + home) * width
            gate["served"] = units + index if port.served else 0
            gate["behind"] = port.queued and served
            if port.queued and home == k:
                queued.append(index * count + k)
    memory = ports * count
    if len(queued) == 1 and gates[queued[0]]["shared"]:
        memory = queued[0]
        first = memory // count * count
        gates["closes"][first : first + count] = 0
    return gates, units + ports, np.array(queued, np.int64), memory
