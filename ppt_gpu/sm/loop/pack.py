"""A program and a machine as the compiled loop wants them: one word an entry, ports instead of pipes.

A port is what an entry needs to issue: a pipe and, for queued kinds (load, store, atomic, shared), a place in the
load/store queue too. A pipe used by both sorts of operations has two ports, twins that share its units. All pipes that
are never busy at the start of a cycle are one port, FREE_PORT: whoever needs it need not look, nor be counted.

What needs neither the load/store unit nor a pipe of the whole SM, and is no barrier, may issue ahead of time (AHEAD):
only warps of its own scheduler can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.records import Record, Words
from ppt_gpu.sm.loop.memory import COPIES, l1_way
from ppt_gpu.sm.program.machine import (
    WAIT_LONG,
    Machine,
    event_reasons,
    fetched,
    producer_class,
    queued_kinds,
)
from ppt_gpu.sm.program.program import (
    KIND_BRANCH,
    KIND_COMPUTE,
    KIND_CONSTANT,
    Program,
    copies_of,
    events_of,
    looked_up_by,
)
from ppt_gpu.sm.program.result import STALL_REASONS

# The word of an entry, from bit 0: the first two slots it waits for, "waits for more", the slot it announces, kind,
# "last of its path", "may issue ahead of time", port, operation, "is fetched", the column of `op_stall`
# for a wait for the port.
# Slot 0 is always complete, 1 is never read; those of the program follow.
NO_WAIT, NO_SLOT, FIRST_SLOT = 0, 1, 2
W1_AT, MORE_AT, SLOT_AT, KIND_AT, LAST_AT, AHEAD_AT, PORT_AT, OP_AT = 7, 14, 15, 22, 25, 26, 27, 33
FETCH_AT, THROTTLE_AT = 57, 58
PORT_MASK, OP_MASK, KIND_MASK, SLOT_MASK, THROTTLE_MASK = 63, (1 << 24) - 1, 7, 127, 15
MAX_PORTS, FREE_PORT = 64, 0
# columns of `op_stall` in the loop: first WAIT_*, then these
NO_INSTRUCTION = 3
NOT_SELECTED, MATH, LG, MIO, BARRIER, BRANCH, DRAIN = range(4, 11)
#: by kind: why a ready warp without a port waits
THROTTLE = np.array([MATH, MATH, MATH, LG, LG, LG, MIO, MIO], np.int64)
# Operation.cached
ALWAYS_THERE, BY_LINES, AT_FIRST = range(3)


class Operation(Record):
    """What an operation of the program needs of the machine."""

    announce: int  # latency * 4 + WAIT_*, as in the scoreboard slots
    interval: int  # cycles for which it keeps its unit
    latency: int
    way: int  # how it looks into the L1 (loop.memory.l1_way), COPIES: the copy engine does it
    event: int  # EVENT_* of the program
    held_for: int  # the column of `op_stall` for its waits for events
    cached: (
        int  # of a constant: ALWAYS_THERE; each of its lines is looked for; it is queued, or the first is waited for
    )


@dataclass(frozen=True)
class Port:
    """`units` 0: never busy. `twin`: another port, -1: none."""

    units: int  # or places in the scheduler's queue before the pipe
    shared: bool  # the pipe stands in the SM
    twin: int
    queued: bool
    ring: bool  # its units become free in the order in which they were taken
    served: bool = False  # they are places before a unit of the SM
    private: bool = False  # only warps of one scheduler use it


class Packed:
    """What depends on program and machine only."""

    def __init__(self, program: Program, machine: Machine) -> None:
        kind = program.op_kind.astype(np.int64)
        queued = np.isin(kind, queued_kinds(machine))
        needs = list(zip(program.op_pipe.tolist(), queued.tolist(), strict=True))
        pairs = [pair for pair in sorted(set(needs)) if not _never_busy(pair, program, machine)]
        if len(pairs) >= MAX_PORTS:
            raise PptError(
                f"{len(pairs)} kinds of execution units in one kernel; at most {MAX_PORTS - 1} are simulated"
            )
        number = {pair: index for index, pair in enumerate(pairs, FREE_PORT + 1)}
        self.ports = [
            Port(0, False, -1, False, False, private=True),
            *(_port(pair, number, program, machine) for pair in pairs),
        ]
        op_port = np.array([number.get(pair, FREE_PORT) for pair in needs], np.int64)
        private = np.array([port.private for port in self.ports])[op_port]
        alone = np.isin(kind, (KIND_COMPUTE, KIND_BRANCH))
        looked_up = looked_up_by(program) & (machine.constant_sets > 0)
        otherwise = AT_FIRST if machine.constant_miss or machine.constant_queued else ALWAYS_THERE
        cached = np.where(looked_up, BY_LINES, otherwise)
        alone |= (kind == KIND_CONSTANT) & (cached == ALWAYS_THERE)
        latency = np.where((kind == KIND_CONSTANT) & ~looked_up, machine.constant_latency, program.op_latency)
        announce = latency.astype(np.int64) * 4 + producer_class(program)
        held = np.where(event_reasons(program) == STALL_REASONS.index("barrier"), BARRIER, WAIT_LONG)
        way = np.where(copies_of(program), COPIES, l1_way(program, machine))
        columns = [announce, program.op_ii, latency, way, events_of(program), held, cached]
        self.operations: NDArray[np.void] = np.zeros(len(kind), Operation.dtype)
        for name, column in zip(Operation.__annotations__, columns, strict=True):
            self.operations[name] = column
        op_word = (kind << KIND_AT) | (op_port << PORT_AT) | (np.arange(len(kind)) << OP_AT)
        op_word |= THROTTLE[kind] << THROTTLE_AT
        op_word |= (private & alone).astype(np.int64) << AHEAD_AT
        last = np.zeros(len(program.entry_op), np.bool_)
        last[program.path_start[1:][np.diff(program.path_start) > 0] - 1] = True
        slots = int(program.entry_slot.max(initial=0)) + 1 + FIRST_SLOT
        waits = int(program.entry_wait.max(initial=0)).bit_length() + FIRST_SLOT
        #: words of a warp's row of scoreboard slots, as a power of two
        self.slot_shift = (max(slots, waits) - 1).bit_length()
        self.code = np.empty(len(program.entry_op), np.int64)
        pack_entries(self.code, program.entry_op, program.entry_wait, program.entry_slot, op_word, last)
        begins = fetched(program, machine).astype(np.int64)
        self.code |= begins << FETCH_AT
        self.code[:-1] &= ~(begins[1:] << AHEAD_AT)  # fetches must come in the order of time


def _never_busy(pair: tuple[int, bool], program: Program, machine: Machine) -> bool:
    """As many units as entries that could come in one cycle, each free again in the next."""
    pipe, queued = pair
    if machine.pipe_queue[pipe]:
        return False
    most = machine.width * (machine.schedulers if machine.pipe_shared[pipe] else 1)
    return not queued and int(program.op_ii[program.op_pipe == pipe].max()) <= 1 and machine.pipe_units[pipe] >= most


def _port(pair: tuple[int, bool], number: dict[tuple[int, bool], int], program: Program, machine: Machine) -> Port:
    pipe, queued = pair
    if machine.pipe_queue[pipe]:
        return Port(machine.pipe_queue[pipe], False, -1, False, ring=True, served=True)
    shared, units = machine.pipe_shared[pipe], machine.pipe_units[pipe]
    intervals = program.op_ii[program.op_pipe == pipe]
    ring = int(intervals.min()) == int(intervals.max())
    twin = number.get((pipe, not queued), -1)
    return Port(units, shared, twin, queued, ring, private=twin < 0 and not (shared or queued))


@merged
def operation_in(word: int) -> int:
    """The operation of an entry."""
    return (word >> OP_AT) & OP_MASK


@merged
def port_in(word: int) -> int:
    """The port that an entry needs."""
    return (word >> PORT_AT) & PORT_MASK


@merged
def kind_in(word: int) -> int:
    """The kind of an entry."""
    return (word >> KIND_AT) & KIND_MASK


@merged
def slot_in(word: int) -> int:
    """The scoreboard slot that an entry announces."""
    return (word >> SLOT_AT) & SLOT_MASK


@merged
def throttle_in(word: int) -> int:
    """The column of `op_stall` for a wait for the port of an entry."""
    return (word >> THROTTLE_AT) & THROTTLE_MASK


@merged
def has(word: int, at: int) -> bool:
    """Whether a bit of an entry is set: MORE_AT, LAST_AT, AHEAD_AT or FETCH_AT."""
    return (word >> at) & 1 != 0


@entry
def pack_entries(
    code: Words, entry_op: NDArray[Any], entry_wait: NDArray[Any], entry_slot: NDArray[Any], op_word: Words,
    last: NDArray[np.bool_],
) -> None:  # fmt: skip
    """The word of every entry [E] into `code`."""
    for e in range(len(entry_op)):
        wait = int64(entry_wait[e])
        first, second, more = NO_WAIT, NO_WAIT, 0
        if wait != 0:
            first = ctz(wait) + FIRST_SLOT
            wait &= wait - 1
            if wait != 0:
                second = ctz(wait) + FIRST_SLOT
                more = (wait & (wait - 1)) != 0
        slot = int64(entry_slot[e]) + FIRST_SLOT
        if slot < FIRST_SLOT:
            slot = NO_SLOT
        word = op_word[entry_op[e]] | first | (second << W1_AT) | (int64(more) << MORE_AT) | (slot << SLOT_AT)
        if last[e]:
            word = (word | (1 << LAST_AT)) & ~(1 << AHEAD_AT)
        code[e] = word
