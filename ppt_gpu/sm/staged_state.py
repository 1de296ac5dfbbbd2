"""The tables of the compiled loop of an SM with collector units: flat arrays of records of a fixed number of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.core_machine import LATE_RESULT, Machine, operands_of, producer_class
from ppt_gpu.sm.core_memory import l1_way
from ppt_gpu.sm.program import Program
from ppt_gpu.sm.result import STALL_REASONS

# `sizes`. MOST_UNITS: of any pipe; PLACES: warp slots; PER_BLOCK: of them in each block slot; WORDS: of `wants`;
# STAGED: records
SCHEDULERS, PIPES, COLLECTORS, MOST_UNITS, PLACES, PER_BLOCK, RESIDENT, BANKS, WORDS, STAGED = range(10)
# `warps`: of a warp slot, the place SCHED + ROW * SCHEDULERS. BLOCK: its block slot + 1, 0: no warp. AT_ACCESS: its
# next memory entry. BUFFER: how many instructions its buffer holds, STRAY: the wrong ones. HELD: the cycle until which
# a barrier holds it, HELD_FOR: that barrier's latency. UNTIL: completion * 4 + WAIT_* of what its next entry waits for
# longest. BORN: the cycle from which it may be fetched. SINCE: the cycle up to which it has been charged; BASE:
# BLOCKED of its gate when it became ready. DEFERRED: cycles of waiting for what is UNKNOWN, not charged yet.
(
    POS, END, AT_ACCESS, BUFFER, STRAY, HELD, HELD_FOR, UNTIL, BORN, BLOCK, LAST_OP, SINCE, BASE, SCHED, ROW, DEFERRED,
) = range(16)  # fmt: skip
WARP_WORDS = 16
SLOTS = 64  # of the scoreboard of a warp
# `ops`
KIND, PIPE, LATENCY, II, CLASS, OPERANDS, USES_L1, PC = range(8)
OP_WORDS = 8
# `pipes`: UNITS in each place, SHARED: they stand in the SM; instructions that wait BEFORE and BEHIND the collectors;
# TURN: its place in `order`
SHARED, UNITS, BEFORE, BEHIND, TURN = range(5)
PIPE_WORDS = 8
# `scheds`: of a scheduler, masks of its warps by ROW. OPEN: they can issue; STRAYS: they lose their buffer when they
# are looked at; AFTER: their turn comes after that of the warp that issued last. GREEDY: its row, -1: none.
# Masks of its collector units: HOLDING an instruction, and one that is COMPLETE, with all operands read
OPEN, STRAYS, AFTER, GREEDY, HOLDING, COMPLETE = range(6)
SCHED_WORDS = 8
# `gates`: of a scheduler and a pipe. What waits AHEAD of the collectors, and what is PAST them: a record's number + 1.
# NEED: the ready warps whose next entry comes through here. BLOCKED: cycles in which they found the place ahead of the
# collectors taken, without those from cycle FROM on, since when it is taken now
AHEAD, PAST, NEED, BLOCKED, FROM = range(5)
GATE_WORDS = 8
# `records`: an instruction between issue and start. READS: operands that are not read yet, four bits a bank; TAKEN: in
# which order collector units took instructions in
WARP, ENTRY, OP, ACCESS, AGE, READS, ISSUED, TAKEN = range(8)
RECORD_WORDS = 8
# `writes`, by cycle mod LATE_RESULT and scheduler: cycle << 8 | mask of the banks that are written then
# `blocks`: of a block slot. NUMBER: -1 none; LEFT: warps that have not exited; ARRIVED: of them at the barrier; FLYING:
# instructions whose completion is not known; RESULTS: cycle from which all known ones are there. LAUNCH_AT and, of a
# whole chip, GIVEN stand where chip_round looks for them.
BLOCK_NUMBER, LEFT, ARRIVED, LAUNCH_AT, RESULTS, FLYING, _, GIVEN = range(8)
BLOCK_WORDS = 8
# `wheel`: of each of the next WHEEL cycles and each scheduler, the rows of warps that may become ready then. `wants`:
# mask of the warp slots, 64 a word, that want to be fetched.
WHEEL = 64
# `now`: scalars that functions change. DUE: the cycle in which a block may enter or leave next; WAKING: mask of the
# rows of `wheel` that have somebody; masks of pipes: WAITING_AHEAD, by TURN, and WAITING_PAST
(
    NEXT_AGE, RECORDS, FETCHED_LAST, FETCHING, MOVED, IDLE, NEXT_BLOCK, ENDED, TAKEN_IN, DUE, WAKING, WAITING_AHEAD,
    WAITING_PAST,
) = range(13)  # fmt: skip


class StagedState:
    """Fresh tables for one run."""

    def __init__(self, program: Program, machine: Machine, resident: int, per_block: int) -> None:
        k, pipes, places = machine.schedulers, len(machine.pipe_units), max(1, resident * per_block)
        width, staged = max(machine.pipe_units), k * (2 * pipes + machine.collectors)
        words = -(-places // 64)
        self.warps = np.zeros(places * WARP_WORDS, np.int64)
        self.slots = np.zeros(places * SLOTS, np.int64)
        self.owner = np.full(places * SLOTS, -1, np.int64)
        ops = np.zeros((len(program.op_name), OP_WORDS), np.int64)
        columns: tuple[NDArray, ...] = (
            program.op_kind, program.op_pipe, program.op_latency, program.op_ii, producer_class(program),
            operands_of(program), l1_way(program, machine), program.op_pc,
        )  # fmt: skip
        for column, values in enumerate(columns):
            ops[:, column] = values
        self.ops = ops.ravel()
        self.order = np.array(machine.collector_order, np.int64)
        table = np.zeros((pipes, PIPE_WORDS), np.int64)
        table[:, SHARED], table[:, UNITS] = machine.pipe_shared, machine.pipe_units
        table[self.order, TURN] = np.arange(pipes)
        self.pipes = table.ravel()
        scheds = np.zeros((k, SCHED_WORDS), np.int64)
        scheds[:, (AFTER, GREEDY)] = -1
        self.scheds = scheds.ravel()
        self.keys = np.zeros(k * 64, np.int64)  # of warps by row: order among those that are not greedy
        self.gates = np.zeros(k * pipes * GATE_WORDS, np.int64)
        self.collecting = np.zeros(k * machine.collectors, np.int64)  # what the units hold: a record's number + 1
        self.records = np.zeros(staged * RECORD_WORDS, np.int64)
        self.free_records = np.arange(staged)
        self.units = np.zeros(pipes * k * width, np.int64)  # times at which they become free
        blocks = np.zeros((resident, BLOCK_WORDS), np.int64)
        blocks[:, (BLOCK_NUMBER, GIVEN)] = -1
        blocks[:, LAUNCH_AT] = np.arange(resident) * machine.ramp
        self.blocks = blocks.ravel()
        self.writes = np.zeros(LATE_RESULT * k, np.int64)
        self.wheel = np.zeros(WHEEL * k, np.int64)
        self.wants = np.zeros(words, np.int64)
        self.now = np.zeros(13, np.int64)
        self.now[[FETCHED_LAST, FETCHING]] = -1
        self.op_stall = np.zeros(max(1, len(program.op_name)) * len(STALL_REASONS), np.int64)
        count = len(program.block_warp) - 1
        self.block_start, self.block_end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.sizes = np.array(
            [k, pipes, machine.collectors, width, places, per_block, resident, machine.collector_banks, words, staged],
            np.int64,
        )
