"""The tables of the compiled loop of an SM with collector units: flat arrays of records of a fixed number of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.loop.memory import l1_way
from ppt_gpu.sm.program.machine import (
    FAR_RESULT,
    LATE_RESULT,
    Machine,
    operands_of,
    passages,
    producer_class,
    through_unit,
)
from ppt_gpu.sm.program.program import Program, operand_bits
from ppt_gpu.sm.program.result import STALL_REASONS

# `sizes`. MOST_UNITS: of any pipe; PLACES: warp slots; PER_BLOCK: of them in each block slot; WORDS: of `wants`;
# STAGED: records. COLLECTORS: units of a scheduler; IN_SM: they are those of pipes, which all schedulers share. BITS:
# of a bank in READS. TO_UNIT: cycles from issue to start. BUSES: results in a cycle, 0: any number; ONE_RESULT: not
# two of a unit
(
    SCHEDULERS, PIPES, COLLECTORS, MOST_UNITS, PLACES, PER_BLOCK, RESIDENT, BANKS, WORDS, STAGED, IN_SM, BITS, TO_UNIT,
    BUSES, ONE_RESULT,
) = range(15)  # fmt: skip
# `warps`: of a warp slot, the place SCHED + ROW * SCHEDULERS. BLOCK: its block slot + 1, 0: no warp. AT_ACCESS: its
# next memory entry. BUFFER: how many instructions its buffer holds, STRAY: the wrong ones. HELD: the cycle until which
# a barrier holds it, HELD_FOR: that barrier's latency. UNTIL: completion * 4 + WAIT_* of what its next entry waits for
# longest. BORN: the cycle from which it may be fetched; negative: that in which its line of the code is there. SINCE:
# the cycle up to which it has been charged; BASE: BLOCKED of its gate when it became ready. DEFERRED: cycles of waiting
# for what is UNKNOWN, not charged yet. FLYING: instructions whose completion is not known; OVER: the cycle in which all
# known results are there; ASKED: in which order warps asked for lines of the code.
(
    POS, END, AT_ACCESS, BUFFER, STRAY, HELD, HELD_FOR, UNTIL, BORN, BLOCK, LAST_OP, SINCE, BASE, SCHED, ROW, DEFERRED,
    FLYING, OVER, ASKED,
) = range(19)  # fmt: skip
WARP_WORDS = 19
SLOTS = 64  # of the scoreboard of a warp
# `ops`. DONE: cycles from issue to completion of what computes, branches and barriers too, whose LATENCY is another.
# PASSAGE: cycles from start to a result that can be in the way of others; 0: it cannot
KIND, PIPE, LATENCY, II, CLASS, OPERANDS, USES_L1, PC, PASSAGE, DONE = range(10)
OP_WORDS = 10
# `pipes`: UNITS in each place, SHARED: they stand in the SM; instructions that wait BEFORE and BEHIND the collectors;
# TURN: its place in `order`; LANES: places before and behind, of a scheduler each or of all; where it has collector
# units of its own FIRST_UNIT and how many: SET
SHARED, UNITS, BEFORE, BEHIND, TURN, LANES, FIRST_UNIT, SET = range(8)
PIPE_WORDS = 8
# `scheds`: of a scheduler, masks of its warps by ROW. OPEN: they can issue; STRAYS: they lose their buffer when they
# are looked at; AFTER: their turn comes after that of the warp that issued last. GREEDY: its row, -1: none has issued.
# Masks of its collector units: HOLDING an instruction, and one that is COMPLETE, with all operands read. All units
# stand with the first scheduler where they are those of pipes.
OPEN, STRAYS, AFTER, GREEDY, HOLDING, COMPLETE = range(6)
SCHED_WORDS = 8
# `gates`: of a scheduler and a pipe; AHEAD, PAST and HANDED: of a lane and a pipe. What waits AHEAD of the collectors,
# and what is PAST them: a record's number + 1. NEED: the ready warps whose next entry comes through here. CLOSED: the
# place ahead of the collectors, or all of them, are taken; BLOCKED: cycles in which that was so, without those from
# cycle FROM on, since when it is so now. HANDED: the collector unit of the pipe from which this place got the last
AHEAD, PAST, NEED, BLOCKED, FROM, CLOSED, HANDED = range(7)
GATE_WORDS = 8
# `records`: an instruction between issue and start. READS: operands that are not read yet, `operand_bits` a bank;
# TAKEN: in which order collector units took instructions in
WARP, ENTRY, OP, ACCESS, AGE, READS, ISSUED, TAKEN = range(8)
RECORD_WORDS = 8
# `writes`, by cycle mod LATE_RESULT and scheduler: cycle << BANK_BITS | mask of the banks that are written then. All
# banks stand with the first scheduler where all share them.
BANK_BITS = 16
# `results`, by cycle mod FAR_RESULT: the cycle, how many results of units there are then, and a mask of those units
RESULT_CYCLE, RESULT_COUNT, RESULT_UNITS = range(3)
RESULT_WORDS = 3
# `blocks`: of a block slot. NUMBER: -1 none; LEFT: warps that have not exited; ARRIVED: of them at the barrier; UNSEEN:
# warps that the SM has not seen to be over. LAUNCH_AT and, of a whole chip, GIVEN stand where chip.round looks for
# them.
BLOCK_NUMBER, LEFT, ARRIVED, LAUNCH_AT, UNSEEN, _, _, GIVEN = range(8)
BLOCK_WORDS = 8
# `wheel`: of each of the next WHEEL cycles and each scheduler, the rows of warps that may become ready then. `wants`:
# masks of the warp slots, 64 a word: those that want to be fetched, then those whose line of the code has come, then
# those whose warps are over, or will be in a known cycle, and have not been seen.
WHEEL = 64
# `now`: scalars that functions change. DUE: the cycle in which a block may enter or leave, or a warp is over, next;
# WAKING: mask of the rows of `wheel` that have somebody; masks of pipes: WAITING_AHEAD, by TURN, and WAITING_PAST;
# ASKING: how many warps have asked for lines of the code; FIRST_TURN: the scheduler whose turn would have been first in
# cycle 0
(
    NEXT_AGE, RECORDS, FETCHED_LAST, FETCHING, MOVED, IDLE, NEXT_BLOCK, ENDED, TAKEN_IN, DUE, WAKING, WAITING_AHEAD,
    WAITING_PAST, ASKING, FIRST_TURN,
) = range(15)  # fmt: skip


class StagedState:
    """Fresh tables for one run."""

    def __init__(self, program: Program, machine: Machine, resident: int, per_block: int) -> None:
        k, pipes, places = machine.schedulers, len(machine.pipe_units), max(1, resident * per_block)
        width, shared = max(machine.pipe_units), machine.collectors_shared
        lanes = np.array(machine.pipe_units if shared else [k] * pipes)
        staged = int(2 * lanes.sum()) + sum(machine.collectors)
        words = -(-places // 64)
        self.warps = np.zeros(places * WARP_WORDS, np.int64)
        self.slots = np.zeros(places * SLOTS, np.int64)
        self.owner = np.full(places * SLOTS, -1, np.int64)
        ops = np.zeros((len(program.op_name), OP_WORDS), np.int64)
        columns: tuple[NDArray, ...] = (
            program.op_kind, program.op_pipe, program.op_latency, program.op_ii, producer_class(program),
            operands_of(program), l1_way(program, machine), program.op_pc, passages(program, machine),
            through_unit(program, machine),
        )  # fmt: skip
        for column, values in enumerate(columns):
            ops[:, column] = values
        self.ops = ops.ravel()
        self.order = np.array(machine.collector_order, np.int64)
        table = np.zeros((pipes, PIPE_WORDS), np.int64)
        table[:, SHARED], table[:, UNITS] = machine.pipe_shared, machine.pipe_units
        table[self.order, TURN], table[:, LANES] = np.arange(pipes), lanes
        if shared:
            table[:, SET] = machine.collectors
            table[:, FIRST_UNIT] = np.cumsum([0, *machine.collectors[:-1]])
        self.pipes = table.ravel()
        scheds = np.zeros((k, SCHED_WORDS), np.int64)
        scheds[:, (AFTER, GREEDY)] = -1
        self.scheds = scheds.ravel()
        self.keys = np.zeros(k * 64, np.int64)  # of warps by row: order among those that are not greedy
        gates = np.zeros((max(k, *lanes) * pipes, GATE_WORDS), np.int64)
        if shared:
            gates[:, HANDED] = np.resize(table[:, FIRST_UNIT], len(gates))
        self.gates = gates.ravel()
        self.collecting = np.zeros(sum(machine.collectors), np.int64)  # what the units hold: a record's number + 1
        self.records = np.zeros(staged * RECORD_WORDS, np.int64)
        self.free_records = np.arange(staged)
        self.units = np.zeros(pipes * k * width, np.int64)  # times at which they become free
        self.results = np.zeros(FAR_RESULT * RESULT_WORDS, np.int64)
        blocks = np.zeros((resident, BLOCK_WORDS), np.int64)
        blocks[:, (BLOCK_NUMBER, GIVEN)] = -1
        blocks[:, LAUNCH_AT] = machine.begins + np.arange(resident) * machine.ramp
        self.blocks = blocks.ravel()
        self.writes = np.zeros(LATE_RESULT * k, np.int64)
        self.wheel = np.zeros(WHEEL * k, np.int64)
        self.wants = np.zeros(3 * words, np.int64)
        self.now = np.zeros(15, np.int64)
        self.now[FIRST_TURN] = -machine.begins % k
        self.now[FETCHING] = -1  # warp slot 1 is the first whose turn it is to be fetched for
        self.op_stall = np.zeros(max(1, len(program.op_name)) * len(STALL_REASONS), np.int64)
        count = len(program.block_warp) - 1
        self.block_start, self.block_end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.sizes = np.array(
            [
                k, pipes, 0 if shared else machine.collectors[0], width, places, per_block, resident,
                machine.collector_banks, words, staged, shared, operand_bits(machine.collector_banks), machine.to_unit,
                machine.results, machine.one_result,
            ],
            np.int64,
        )  # fmt: skip
