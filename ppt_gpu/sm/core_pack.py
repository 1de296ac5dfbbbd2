"""A program and a machine as the compiled loop wants them: one word an entry, ports instead of pipes.

A port is what an entry needs to issue: a pipe, and for queued kinds (load, store, atomic, shared) a place in the load/store
queue too. A pipe used by both sorts of operations has two ports, twins that share its units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.errors import PptError
from ppt_gpu.sm.core_bits import compiled, ctz
from ppt_gpu.sm.core_machine import Machine, producer_class, uses_l1
from ppt_gpu.sm.program import (
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_COMPUTE,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    Program,
)

# The word of an entry, from bit 0: the first two slots it waits for, "waits for more", the slot it announces, kind,
# "last of its path", "may issue ahead of time", port, operation. Slots: 64 is always complete, 65 is never read.
NO_WAIT, NO_SLOT, ROW = 64, 65, 72
W1_AT, MORE_AT, SLOT_AT, KIND_AT, LAST_AT, AHEAD_AT, PORT_AT, OP_AT = 7, 14, 15, 22, 25, 26, 27, 33
MAX_PORTS = 64
# columns of the port table
UNITS, SHARED, TWIN, QUEUED, FREE, RING = range(6)


class Packed:
    """Arrays of one run that depend on program and machine only."""

    def __init__(self, program: Program, machine: Machine) -> None:
        kind = program.op_kind.astype(np.int64)
        queued = np.isin(kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED))
        pairs = sorted(set(zip(program.op_pipe.tolist(), queued.tolist(), strict=True)))
        if len(pairs) > MAX_PORTS:
            raise PptError(f"{len(pairs)} kinds of execution units in one kernel; at most {MAX_PORTS} are simulated")
        number = {pair: index for index, pair in enumerate(pairs)}
        self.op_port = np.array(
            [number[pair] for pair in zip(program.op_pipe.tolist(), queued.tolist(), strict=True)], np.int64
        )
        self.ports = _port_table(pairs, number, program, machine)
        free = self.ports[self.op_port, FREE] != 0
        alone = np.isin(kind, (KIND_COMPUTE, KIND_CONSTANT))
        latency = np.where(kind == KIND_CONSTANT, machine.constant_latency, program.op_latency)
        latency = np.where(kind == KIND_BARRIER, program.op_latency, latency)
        #: per operation: latency, initiation interval, class shown by dependents, L1 look-up
        self.op_time = np.stack(
            [latency, program.op_ii, producer_class(program), uses_l1(program, machine)], axis=1
        ).astype(np.int64)
        op_word = (kind << KIND_AT) | (self.op_port << PORT_AT) | (np.arange(len(kind)) << OP_AT)
        op_word |= (free & alone).astype(np.int64) << AHEAD_AT
        last = np.zeros(len(program.entry_op), np.bool_)
        ends = program.path_start[1:][np.diff(program.path_start) > 0]
        last[ends - 1] = True
        self.code = pack_entries(program.entry_op, program.entry_wait, program.entry_slot, op_word, last)


def _port_table(
    pairs: list[tuple[int, bool]], number: dict[tuple[int, bool], int], program: Program, machine: Machine
) -> NDArray[np.int64]:
    """[ports, 6]: units, stands in the SM, twin or -1, queued, never busy at the start of a cycle, units free in order."""
    table = np.zeros((max(1, len(pairs)), 6), np.int64)
    most = machine.width * machine.schedulers
    for (pipe, queued), port in number.items():
        shared, units = machine.pipe_shared[pipe], machine.pipe_units[pipe]
        intervals = program.op_ii[program.op_pipe == pipe]
        # units for every entry that could come in one cycle, each free again in the next: never a wait
        free = not queued and int(intervals.max()) <= 1 and units >= (most if shared else machine.width)
        table[port] = (
            units, shared, number.get((pipe, not queued), -1), queued, free, int(intervals.min() == intervals.max()),
        )  # fmt: skip
    return table


def _pack_entries(entry_op: Any, entry_wait: Any, entry_slot: Any, op_word: Any, last: Any) -> Any:
    code = np.empty(len(entry_op), np.int64)
    for e in range(len(entry_op)):
        wait = np.int64(entry_wait[e])
        first, second, more = NO_WAIT, NO_WAIT, 0
        if wait != 0:
            first = ctz(wait)
            wait &= wait - 1
            if wait != 0:
                second = ctz(wait)
                more = (wait & (wait - 1)) != 0
        slot = np.int64(entry_slot[e])
        if slot < 0:
            slot = NO_SLOT
        word = op_word[entry_op[e]] | first | (second << W1_AT) | (np.int64(more) << MORE_AT) | (slot << SLOT_AT)
        if last[e]:
            word = (word | (1 << LAST_AT)) & ~(1 << AHEAD_AT)
        code[e] = word
    return code


pack_entries = njit(cache=True)(_pack_entries)
