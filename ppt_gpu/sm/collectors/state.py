"""The tables of the compiled loop of an SM with collector units: records by warp slot, operation, pipe and scheduler.

Warp slot w is bit w // K of scheduler w mod K, as in the other loop, so that the warps of a scheduler are one mask; so
are its collector units. The masks of warps that the fetch looks at are by warp slot, 64 a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.records import Layout, Record, Table, Words, addresses, viewer
from ppt_gpu.sm.loop.memory import l1_way
from ppt_gpu.sm.loop.state import BlockSlot, Track
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
from ppt_gpu.sm.program.slot_rotation import turned_together


class StagedWarp(Record):
    """A warp slot, the place sched + row * K."""

    pos: int  # its next entry
    end: int
    access: int  # its next memory entry
    buffer: int  # instructions in its buffer
    stray: int  # 1: they are the wrong ones
    held: int  # the cycle until which a barrier holds it
    held_for: int  # that barrier's latency
    until: int  # completion * 4 + WAIT_* of what its next entry waits for longest
    born: int  # the cycle from which it may be fetched; negative: that in which its line of the code is there
    block: int  # its block slot + 1, 0: no warp
    last_op: int
    since: int  # the cycle up to which it has been charged
    base: int  # Lane.blocked when it became ready
    sched: int
    row: int
    deferred: int  # cycles of waiting for what is UNKNOWN, not charged yet
    flying: int  # instructions whose completion is not known
    over: int  # the cycle in which all known results are there
    asked: int  # in which order warps asked for lines of the code


class StagedOperation(Record):
    """An operation of the program."""

    kind: int
    pipe: int
    latency: int
    interval: int
    wait_class: int  # WAIT_* of who waits for its result
    operands: int
    way: int  # how it looks into the L1 (loop.memory.l1_way)
    pc: int
    passage: int  # cycles from start to a result that can be in the way of others; 0: it cannot
    done: int  # from issue to completion, of what computes, branches and barriers too, whose latency is another


class Pipe(Record):
    """A pipe."""

    shared: int  # it stands in the SM
    units: int  # in each place
    before: int  # instructions that wait before the collector units, and behind them
    behind: int
    turn: int  # its place in `order`
    lanes: int  # of the pipe: of a scheduler each, or of all
    first_unit: int  # of the collector units of its own
    own: int  # how many these are


class StagedScheduler(Record):
    """A scheduler: masks of its warps by row, then of its collector units. All units stand with the first scheduler
    where they are those of pipes."""

    open: int  # they can issue
    strays: int  # they lose their buffer when they are looked at
    after: int  # their turn comes after that of the warp that issued last
    greedy: int  # the row of the greedy warp, -1: none has issued
    holding: int  # units that hold an instruction
    complete: int  # units with all operands read


class Lane(Record):
    """A way of a pipe through the collector units: of a scheduler, or one of those that all share."""

    ahead: int  # what waits ahead of the units, and what is past them: the number of what was issued + 1
    past: int
    need: int  # of a scheduler: its ready warps whose next entry comes through here
    blocked: int  # of a scheduler: cycles in which the place ahead was taken, without those since then:
    closed_from: int
    closed: int  # of a scheduler: the place ahead, or all that are shared, are taken
    handed: int  # the collector unit of the pipe from which this place got the last


class Issued(Record):
    """An instruction between issue and start."""

    warp: int
    position: int  # of its entry
    op: int
    access: int
    age: int
    reads: int  # operands that are not read yet, `bank_bits` a bank
    issued: int
    taken: int  # in which order collector units took instructions in


class Results(Record):
    """The results of units in a cycle: those mod FAR_RESULT."""

    cycle: int
    count: int
    units: int  # mask


class Moment(Record):
    """What the functions of the loop tell each other."""

    next_age: int
    staged: int  # instructions between issue and start
    fetched_last: int
    fetching: int
    moved: int  # something has changed in this cycle
    taken_in: int
    due: int  # the cycle in which a block may enter or leave, or a warp is over, next
    waking: int  # mask of the rows of `wheel` that have somebody
    waiting_ahead: int  # masks of pipes: by turn, of those with somebody ahead of the collector units,
    waiting_past: int  # and with somebody past them
    asking: int  # how many warps have asked for lines of the code
    first_turn: int  # the scheduler whose turn would have been first in cycle 0


class StagedSm(Record):
    """All that the loop of one SM with collector units works on."""

    # of the program
    waits: NDArray[np.uint64]
    entry_op: NDArray[np.int32]
    entry_slot: NDArray[np.int8]
    path_start: Words
    warp_path: NDArray[np.int32]
    warp_access: Words
    block_warp: Words
    accesses: Words
    tx: Words
    ops: Table[StagedOperation]
    order: Words  # of the pipes, in which they come to the collector units
    block_start: Words
    block_end: Words
    # of the SM
    warps: Table[StagedWarp]
    slots: Words  # completion * 4 + WAIT_*, by warp and scoreboard slot
    owner: Words  # the entry that announces there last
    pipes: Table[Pipe]
    scheds: Table[StagedScheduler]
    keys: Words  # of warps by row: order among those that are not greedy
    lanes: Table[Lane]
    collecting: Words  # what the collector units hold: the number of what was issued + 1
    records: Table[Issued]
    free_records: Words
    units: Words  # times at which they become free
    results: Table[Results]
    blocks: Table[BlockSlot]
    writes: Words  # by cycle mod LATE_RESULT and scheduler: cycle << BANK_BITS | mask of the banks written then
    wheel: Words  # of each of the next WHEEL cycles and each scheduler, the rows of warps that may become ready then
    wants: Words  # masks of warp slots: see State
    now: Table[Moment]
    op_stall: Words
    track: Table[Track]
    mem: Words
    # sizes and settings
    schedulers: int
    pipe_count: int
    collectors: int  # units of a scheduler
    most_units: int  # of any pipe
    places: int  # warp slots
    per_block: int  # of them in each block slot
    resident: int
    banks: int
    words: int  # of a mask of warp slots
    most_staged: int  # instructions between issue and start, at most
    in_sm: int  # 1: the collector units are those of pipes, which all schedulers share
    bank_bits: int  # of a bank in Issued.reads
    to_unit: int  # cycles from issue to start
    buses: int  # results in a cycle, 0: any number
    one_result: int  # 1: not two of a unit in a cycle
    policy: int
    width: int
    steps: int
    fetches: int
    block_launch: int
    warp_launch: int
    together: int
    total: int  # blocks
    on_chip: int


#: of what StagedState.sm says of an SM
staged_sm_at: Callable[[Words], StagedSm] = viewer(StagedSm)

SLOTS = 64  # of the scoreboard of a warp
BANK_BITS = 16  # of `writes`; all banks stand with the first scheduler where all share them
WHEEL = 64
_KINDS: dict[str, type[Record] | None] = {
    "warps": StagedWarp, "slots": None, "owner": None, "pipes": Pipe, "scheds": StagedScheduler, "keys": None,
    "lanes": Lane, "collecting": None, "records": Issued, "free_records": None, "units": None, "results": Results,
    "blocks": BlockSlot, "writes": None, "wheel": None, "wants": None, "now": Moment, "op_stall": None, "track": Track,
}  # fmt: skip


class StagedState:
    """Fresh tables for one run: `core`, all that change, one after another, and views of them.

    `wants`: masks of the warp slots of those that want to be fetched, then of those whose line of the code has come,
    then of those whose warps are over, or will be in a known cycle, and have not been seen.
    """

    def __init__(self, program: Program, machine: Machine, resident: int) -> None:
        self.program, self.machine, self.resident = program, machine, resident
        self.per_block = int(np.diff(program.block_warp).max(initial=0))
        k, pipes = machine.schedulers, len(machine.pipe_units)
        self.places, shared = max(1, resident * self.per_block), machine.collectors_shared
        lanes = np.array(machine.pipe_units if shared else [k] * pipes)
        self.most_staged = int(2 * lanes.sum()) + sum(machine.collectors)
        self.words = -(-self.places // 64)
        self.order = np.array(machine.collector_order, np.int64)
        layout = Layout(_KINDS, {
            "warps": self.places, "slots": self.places * SLOTS, "owner": self.places * SLOTS, "pipes": pipes,
            "scheds": k, "keys": k * 64, "lanes": max(k, *lanes) * pipes, "collecting": sum(machine.collectors),
            "records": self.most_staged, "free_records": self.most_staged,
            "units": pipes * k * max(machine.pipe_units), "results": FAR_RESULT, "blocks": resident,
            "writes": LATE_RESULT * k, "wheel": WHEEL * k, "wants": 3 * self.words, "now": 1,
            "op_stall": max(1, len(program.op_name)) * len(STALL_REASONS), "track": 1,
        })  # fmt: skip
        self.core, self.tables = np.zeros(layout.words, np.int64), layout.tables
        tables = self.tables(self.core)
        tables["owner"][:], tables["scheds"]["after"], tables["scheds"]["greedy"] = -1, -1, -1
        pipe = tables["pipes"]
        pipe["shared"], pipe["units"], pipe["lanes"] = machine.pipe_shared, machine.pipe_units, lanes
        pipe["turn"][self.order] = np.arange(pipes)
        if shared:
            pipe["own"] = machine.collectors
            pipe["first_unit"] = np.cumsum([0, *machine.collectors[:-1]])
            tables["lanes"]["handed"] = np.resize(pipe["first_unit"], len(tables["lanes"]))
        tables["free_records"][:] = np.arange(self.most_staged)
        tables["blocks"]["block"] = tables["blocks"]["given"] = -1
        tables["blocks"]["launch_at"] = machine.begins + np.arange(resident) * machine.ramp
        tables["now"]["first_turn"] = -machine.begins % k
        tables["now"]["fetching"] = -1  # warp slot 1 is the first whose turn it is to be fetched for
        self.ops = _operations(program, machine)
        count = len(program.block_warp) - 1
        self.block_start, self.block_end = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def sm(self, core: Words, accesses: Words, tx: Words, mem: Words) -> Words:
        """The SM whose tables are in `core` [words] and whose memory system is `mem`, for `staged_sm_at`; of a chip its
        SMs, where both are [sms, words]."""
        program, machine, shared = self.program, self.machine, self.machine.collectors_shared
        values: dict[str, Any] = {
            "waits": program.entry_wait, "entry_op": program.entry_op, "entry_slot": program.entry_slot,
            "path_start": program.path_start, "warp_path": program.warp_path, "warp_access": program.warp_access,
            "block_warp": program.block_warp, "accesses": accesses, "tx": tx, "ops": self.ops, "order": self.order,
            "block_start": self.block_start, "block_end": self.block_end, "mem": mem,
            "schedulers": machine.schedulers, "pipe_count": len(machine.pipe_units),
            "collectors": 0 if shared else machine.collectors[0], "most_units": max(machine.pipe_units),
            "places": self.places, "per_block": self.per_block, "resident": self.resident,
            "banks": machine.collector_banks, "words": self.words, "most_staged": self.most_staged, "in_sm": shared,
            "bank_bits": operand_bits(machine.collector_banks), "to_unit": machine.to_unit, "buses": machine.results,
            "one_result": machine.one_result, "policy": machine.policy, "width": machine.width,
            "steps": machine.collector_steps, "fetches": machine.fetches, "block_launch": machine.block_launch,
            "warp_launch": machine.warp_launch, "together": turned_together(machine, self.per_block),
            "total": len(self.block_end), "on_chip": core.ndim - 1,
        }  # fmt: skip
        return addresses(StagedSm, values | self.tables(core))

    def charged(self, core: Words) -> NDArray[np.int64]:
        """op_stall [O, reasons] after a run."""
        return self.tables(core)["op_stall"].reshape(-1, len(STALL_REASONS))[: len(self.program.op_name)]


def _operations(program: Program, machine: Machine) -> NDArray[np.void]:
    columns: tuple[NDArray[Any], ...] = (
        program.op_kind, program.op_pipe, program.op_latency, program.op_ii, producer_class(program),
        operands_of(program), l1_way(program, machine), program.op_pc, passages(program, machine),
        through_unit(program, machine),
    )  # fmt: skip
    table = np.zeros(len(program.op_name), StagedOperation.dtype)
    for name, column in zip(StagedOperation.__annotations__, columns, strict=True):
        table[name] = column
    return table
