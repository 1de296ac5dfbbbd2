"""An SM with collector units as one of a whole chip: its loop between windows, as `reference.chip.StagedChipSm`.

What the SM asks for leaves it `Machine.to_unit` cycles before the cycle that the SM is in, as if it had been issued
then: its memory is so many cycles behind, and so is the end of its window. Results that are not known in a window are
UNKNOWN in the scoreboard; their block waits for them as for instructions that have not started.

What leaves an L1 with pipelines of an SM of a chip: requests that are answered after the window. As `LaterL1`.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import ctz, int64, pointer
from ppt_gpu.common.compiled import called, entry, merged, popcount
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.chip.lsu import operation, passes_unit, posted, put, serve_queue
from ppt_gpu.sm.chip.machine import ATOMIC, READ, STORE, Chip
from ppt_gpu.sm.chip.memory import ChipArrays
from ppt_gpu.sm.chip.requests import ask, flits, settle
from ppt_gpu.sm.chip.round import END
from ppt_gpu.sm.collectors.l1 import next_request, take
from ppt_gpu.sm.collectors.l1_answers import part, put_answer
from ppt_gpu.sm.collectors.loop import make_staged
from ppt_gpu.sm.collectors.pipes import announce, memory_free, take_one, tell_waiting
from ppt_gpu.sm.collectors.state import (
    ACCESS,
    BEHIND,
    BLOCK_WORDS,
    DONE,
    ENTRY,
    FIRST_TURN,
    GIVEN,
    KIND,
    LAUNCH_AT,
    OP,
    OP_WORDS,
    PIPE_WORDS,
    TO_UNIT,
    USES_L1,
    WAITING_PAST,
    WARP,
    StagedState,
)
from ppt_gpu.sm.collectors.state import ENDED as BLOCKS_ENDED
from ppt_gpu.sm.collectors.state import IDLE as IDLE_CYCLES
from ppt_gpu.sm.collectors.warps import REASONS
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.code import constant
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.memory import L1_PIPE, P_STORE
from ppt_gpu.sm.loop.skip import ENDED, IDLE, NOTHING_DUE, NOW
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import NEVER, ONE, UNKNOWN
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_STORE, RECORDED, Program
from ppt_gpu.sm.program.slot_rotation import turned_together


@called
def send_later(mem: Any, cycle: int) -> None:
    """As `collectors.loop.send`; the L2 answers later. Requests wait for room in the SM's port."""
    if mem[q.PORT_SIZE] != 0 and mem[c.P_PERFECT] == 0:
        room, now = mem[q.PORT_SENT] - mem[q.PORT_SIZE], (cycle - mem[part(mem) + s.LAG]) * ONE
        known = room >= 0 and room < mem[q.PORT_KNOWN]
        if known and mem[mem[q.PORT] + mem[q.PORT_SENT] % mem[q.PORT_SIZE]] > now:
            return
    request = next_request(mem)
    if request == 0:
        return
    mem[request + s.R_LEFT] = cycle
    before, op = cycle - mem[part(mem) + s.LAG], mem[request + s.R_OPERATIONS] & c.PLACE
    if mem[c.P_PERFECT] != 0:
        put_answer(mem, request, before + _round_trip(mem))
        return
    time, line, kind = before * ONE, mem[request + s.R_LINE], int64(READ)
    mask, of = mem[request + s.R_MASK], mem[op + s.O_KIND] if op else int64(KIND_STORE)
    if of in (KIND_ATOMIC, KIND_STORE):
        mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(mask) * mem[c.P_ICNT]
        kind = int64(STORE if of == KIND_STORE else ATOMIC)
    if line >= 0:
        line &= c.LINE_MASK
    wait = mem[q.LINK_OUT] if kind == STORE else int64(0)
    number = ask(mem, time, line, mask, kind, wait)
    at = mem[q.REQS] + (number << q.REQ_SHIFT)
    mem[at + q.R_OF] = request
    mem[q.PORT_SENT] += flits(mem, at)
    if kind == ATOMIC and mem[op + s.O_WAIT] < 0:
        mem[op + s.O_WAIT] = 0
        mem[at + q.R_START], mem[at + q.R_UPDATES] = time, mem[op + s.O_UPDATES]


@called
def settle_l1(mem: Any) -> None:
    """The answers to the requests of the last window have come."""
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        done = mem[at + q.R_ANSWER]
        if mem[at + q.R_KIND] == STORE:
            done = whole(max(done, mem[at + q.R_WAIT]) + mem[at + q.R_BACK]) + _round_trip(mem)
        put_answer(mem, mem[at + q.R_OF] & c.PLACE, done)
    mem[q.N_REQS] = 0


@merged
def memory_free_later(mem: Any, to_unit: int) -> int:
    """As `memory_free`; while an operation is not served to its end nobody knows."""
    return int64(NEVER) if mem[q.OP_FIRST] < mem[q.OP_LAST] else memory_free(mem, to_unit)


@called
def _started(
    ops: Any, op: int, access: int, place: int, number: int, accesses: Any, tx: Any, mem: Any, issued: int
) -> int:
    """When the operation of entry `number` of the warp in slot `place` is done, which starts as if it had been issued
    in cycle `issued`; UNKNOWN where that has to be asked."""
    kind, way = ops[op + KIND], ops[op + USES_L1]
    if kind < KIND_LOAD:
        return issued + ops[op + DONE]
    if kind == KIND_CONSTANT and not passes_unit(kind, mem):
        return constant(mem, issued)[0]
    at, known = put(mem, tx, accesses, kind, way, access, issued)
    if posted(mem, kind, way):
        return issued + mem[P_STORE]
    if known:
        return mem[at + q.O_DONE]
    mem[at + q.O_STATE] |= q.ANNOUNCED
    mem[at + q.O_ME], mem[at + q.O_EVENT] = place, number
    return int64(UNKNOWN)


@merged
def start_later(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, scheds: Any, gates: Any, records: Any,
    free_records: Any, units: Any, results: Any, writes: Any, wheel: Any, wants: Any, now: Any,
    op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, accesses: Any, tx: Any, mem: Any, cycle: int,
) -> None:  # fmt: skip
    """As `staged.start`."""
    left = now[WAITING_PAST]
    while left:
        pipe = ctz(left)
        left &= left - 1
        looks = int64(0)
        while pipes[pipe * PIPE_WORDS + BEHIND] > 0:
            at, looks = take_one(
                sizes, ops, pipes, gates, records, free_records, units, results, now,
                memory_free_later(mem, sizes[TO_UNIT]), pipe, looks, cycle,
            )  # fmt: skip
            if at < 0:
                break
            place, number = records[at + WARP], records[at + ENTRY]
            if mem[L1_PIPE] != 0 and ops[records[at + OP] * OP_WORDS + KIND] in RECORDED:
                take(ops, entry_slot, accesses, tx, mem, records[at + OP], place, number, records[at + ACCESS], cycle)
                continue
            done = _started(
                ops, records[at + OP] * OP_WORDS, records[at + ACCESS], place, number, accesses, tx, mem,
                cycle - sizes[TO_UNIT],
            )  # fmt: skip
            if done == UNKNOWN:
                tell_waiting(
                    sizes, warps, slots, owner, ops, scheds, gates, wheel, wants, now, op_stall, waits, entry_op,
                    entry_slot, place, number, done, cycle,
                )  # fmt: skip
            else:
                announce(
                    sizes, warps, slots, owner, ops, scheds, gates, writes, wheel, wants, now, op_stall, waits,
                    entry_op, entry_slot, place, number, cycle, max(done, cycle), cycle,
                )  # fmt: skip


@called
def _open_window(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, scheds: Any, gates: Any, writes: Any,
    wheel: Any, wants: Any, now: Any, op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, tx: Any, mem: Any,
    cycle: int,
) -> None:  # fmt: skip
    """What the answers to the last window's requests change, and how far the load/store unit comes in this one."""
    if mem[L1_PIPE] != 0:
        settle_l1(mem)
        return
    settle(mem)
    serve_queue(mem, tx)
    for ring in (int64(q.OF_UNIT), int64(q.OF_COPIES)):
        for number in range(mem[q.OP_SETTLED + ring], mem[q.OP_FIRST + ring]):
            op = operation(mem, ring, number)
            if mem[op + q.O_STATE] == q.ANNOUNCED:
                mem[op + q.O_STATE] = 0
                began = mem[op + q.O_ISSUED] + sizes[TO_UNIT]
                announce(
                    sizes, warps, slots, owner, ops, scheds, gates, writes, wheel, wants, now, op_stall, waits,
                    entry_op, entry_slot, mem[op + q.O_ME], mem[op + q.O_EVENT], began,
                    max(mem[op + q.O_DONE], began), cycle,
                )  # fmt: skip
        settled = mem[q.OP_SETTLED + ring]
        while settled < mem[q.OP_FIRST + ring] and mem[operation(mem, ring, settled) + q.O_STATE] == 0:
            settled += 1
        mem[q.OP_SETTLED + ring] = settled


@merged
def _must_know(blocks: Any) -> int:
    """The first cycle in which a slot is due of which the chip has not said which block it gets."""
    first = int64(NEVER)
    for at in range(0, len(blocks), BLOCK_WORDS):
        if blocks[at + GIVEN] < 0:
            first = min(first, blocks[at + LAUNCH_AT])
    return first


#: the tables of StagedState that change, as they stand one after another in `core`
CHANGING = (
    "warps", "slots", "owner", "pipes", "scheds", "keys", "gates", "collecting", "records", "free_records", "units",
    "results", "blocks", "writes", "wheel", "wants", "now", "op_stall",
)  # fmt: skip


@cache
def make_advance_staged() -> Any:
    """The function that brings some SMs to the end of the window, or to where they need to know a block."""
    sm_loop = make_staged(start_later, memory_free_later, send_later)

    def advance_staged(
        first: int, last: int, chip: Any,
        waits: Any, entry_op: Any, entry_slot: Any, path_start: Any, warp_path: Any, warp_access: Any, block_warp: Any,
        accesses: Any, tx: Any, mems: Any, tracks: Any, cores: Any, at: Any, ops: Any, order: Any, sizes: Any,
        block_start: Any, block_end: Any, policy: int, width: int, steps: int, fetches: int, block_launch: int,
        warp_launch: int, together: int,
    ) -> None:  # fmt: skip
        end = chip[END]
        for sm in range(first, last):
            mem, track, core = mems[sm], tracks[sm], cores[sm]
            if track[NOW] >= end:
                continue
            warps, slots, owner = core[at[0] : at[1]], core[at[1] : at[2]], core[at[2] : at[3]]
            pipes, scheds = core[at[3] : at[4]], core[at[4] : at[5]]
            keys, gates = core[at[5] : at[6]], core[at[6] : at[7]]
            collecting, records, free_records = core[at[7] : at[8]], core[at[8] : at[9]], core[at[9] : at[10]]
            units, results, blocks = core[at[10] : at[11]], core[at[11] : at[12]], core[at[12] : at[13]]
            writes, wheel, wants = core[at[13] : at[14]], core[at[14] : at[15]], core[at[15] : at[16]]
            now, op_stall = core[at[16] : at[17]], core[at[17] : at[18]]
            if mem[q.WINDOW_END] != end - sizes[TO_UNIT]:
                mem[q.WINDOW_END] = end - sizes[TO_UNIT]
                _open_window(
                    pointer(sizes), pointer(warps), pointer(slots), pointer(owner), pointer(ops), pointer(scheds),
                    pointer(gates), pointer(writes), pointer(wheel), pointer(wants), pointer(now),
                    pointer(op_stall), pointer(waits), pointer(entry_op), pointer(entry_slot), pointer(tx),
                    pointer(mem), track[NOW],
                )  # fmt: skip
            track[NOTHING_DUE] = 0
            if track[NOW] >= _must_know(blocks):
                continue
            sm_loop(
                waits, entry_op, entry_slot, path_start, warp_path, warp_access, block_warp, accesses, tx, mem, warps,
                slots, owner, ops, pipes, order, scheds, keys, gates, collecting, records, free_records, units, results,
                blocks, writes, wheel, wants, now, op_stall, block_start, block_end, sizes, policy, width, steps,
                fetches, block_launch, warp_launch, together, int64(NEVER), track, end,
            )  # fmt: skip
            track[ENDED], track[IDLE] = now[BLOCKS_ENDED], now[IDLE_CYCLES]

    return entry(advance_staged)


class StagedSms:
    """SMs in the loop of `collectors/loop.py`: as `chip.CoreSms`."""

    def __init__(self, program: Program, chip: Chip, resident: int) -> None:
        self.program, self.machine = program, chip.sm
        self.per_block = int(np.diff(program.block_warp).max(initial=0))
        self.state = state = StagedState(program, chip.sm, resident, self.per_block)
        tables: list[NDArray[np.int64]] = [getattr(state, name) for name in CHANGING]
        self.at = np.array([0, *accumulate(len(table) for table in tables)], np.int64)
        self.core, self.places = np.concatenate(tables), resident * self.per_block
        self.table = {
            name: slice(begin, end) for name, (begin, end) in zip(CHANGING, pairwise(self.at.tolist()), strict=True)
        }
        self.blocks = self.table["blocks"]
        self.first_turn: int | None = self.table["now"].start + FIRST_TURN
        self.block_start, self.block_end = state.block_start, state.block_end

    def advance(self, run: ChipArrays, first: int, last: int) -> None:
        """Bring SMs `first` to `last` - 1 as far as they can go."""
        p, m, s = self.program, self.machine, self.state
        make_advance_staged()(
            first, last, run.shared, p.entry_wait, p.entry_op, p.entry_slot, p.path_start, p.warp_path, p.warp_access,
            p.block_warp, run.accesses, run.tx, run.mems, run.tracks, run.cores, self.at, s.ops, s.order, s.sizes,
            s.block_start, s.block_end, m.policy, m.width, m.collector_steps, m.fetches, m.block_launch, m.warp_launch,
            turned_together(m, self.per_block),
        )  # fmt: skip

    def charged(self, core: NDArray[np.int64]) -> NDArray[np.int64]:
        """op_stall [O, reasons], of the sum of the tables of all SMs."""
        return core[self.table["op_stall"]].reshape(-1, REASONS)[: len(self.program.op_name)]
