"""The compiled SM loop: the cycles of README.md, without the cycles in which nothing can happen.

How it gets by without an event queue: when an entry issues, everything that decides when the warp can go on is known
(completion times are computed at issue), so the warp goes into a timing wheel at that cycle; only a barrier leaves it
waiting for others. In a visited cycle the warps of the wheel's row become ready, and every scheduler picks among the
ready warps whose port is open, by masks. Stalls are charged in whole stretches: the dependence when the warp enters the
wheel, the rest at issue, of which the port's count of blocked cycles tells throttling from not being selected.

Under the greedy policies nobody can interrupt a warp whose next entry is ready and needs a unit that is always free:
such entries issue at once, ahead of the other schedulers, whose cycles they cannot touch (AHEAD). So do entries for a
pipe of their scheduler, and those that have to wait, for the pipe, for results or for their branch: these only where no
other warp of the scheduler can issue meanwhile, be it ready or about to wake (loop.ports.pass_wakes).
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.common.bits import ctz, int64, pointer, prefetch
from ppt_gpu.common.compiled import about_to_run, entry
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.threads import COMPILING
from ppt_gpu.sm.loop.blocks import (
    count_event,
    finish_block,
    launch_block,
    next_event,
    release_barrier,
    wait_for_event,
    warp_at,
)
from ppt_gpu.sm.loop.code import constant, line_there
from ppt_gpu.sm.loop.constants import read_constant
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import (
    CYCLES_AT,
    CYCLES_MASK,
    FIRST_MASK,
    MemoryArrays,
)
from ppt_gpu.sm.loop.pack import (
    AHEAD_AT,
    ALWAYS_THERE,
    ANNOUNCE,
    BRANCH,
    BY_LINES,
    CACHED,
    EVENT,
    FETCH_AT,
    FREE_PORT,
    HELD_FOR,
    INTERVAL,
    KIND_AT,
    LAST_AT,
    LATENCY,
    NO_INSTRUCTION,
    NOT_SELECTED,
    OP_AT,
    OP_MASK,
    OP_ROW,
    PORT_AT,
    PORT_MASK,
    POSITION,
    SLOT_AT,
    THROTTLE_AT,
    USES_L1,
    Packed,
)
from ppt_gpu.sm.loop.policy import after, greedy_or_least, next_in_turn
from ppt_gpu.sm.loop.ports import (
    block,
    closed_until,
    look_again,
    need_port,
    pass_port,
    pass_wakes,
    somebody_needs,
    wake,
)
from ppt_gpu.sm.loop.replay import ANSWERED, LOGGING, MODE, note, recall
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET, PAUSED, result_of, unfinished
from ppt_gpu.sm.loop.skip import (
    ANCHOR,
    ENDED,
    IDLE,
    ISSUED,
    LOOK_AT,
    NEXT_BLOCK,
    NEXT_LAUNCH,
    NOTHING_DUE,
    NOW,
    TARGET,
    Skipping,
    looks_the_same,
)
from ppt_gpu.sm.loop.state import (
    ACCESS,
    ALIVE,
    ARRIVED,
    ARRIVED_AT,
    BARRIER_LATENCY,
    BASE,
    BEHIND,
    BLOCK_KEY,
    BLOCK_RESULTS,
    BLOCK_SHIFT,
    BLOCK_SLOT,
    BUSY,
    CLOSES,
    CYCLES,
    DOOR,
    ENTERS,
    EXIT_AT,
    FETCHED,
    GATE,
    GATE_SHIFT,
    GIVEN,
    GREEDY,
    KEY_SHIFT,
    LAST,
    LAST_OP,
    LAUNCH_AT,
    LIVE,
    MAIN,
    NEAR,
    NEED,
    NEXT_OPEN,
    NOTICE,
    OFFSET,
    OPEN,
    PENDING,
    POS,
    READY,
    READY_MASK,
    READY_OTHERS,
    REASON_MASK,
    RESULTS,
    SCHED_SHIFT,
    SLOT_SHIFT,
    STALL_SHIFT,
    UNTIL,
    WAITING,
    WAKES,
    WARP_SHIFT,
    WHEEL,
    WORD,
    State,
)
from ppt_gpu.sm.loop.wheel import bring_near, dependence, first_wake, next_wake, plan, schedule, wakes_at
from ppt_gpu.sm.loop.windows import WindowSkipping
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, GTO_LAUNCH, LRR, NEVER, Machine
from ppt_gpu.sm.program.program import (
    EVENT_COUNTS,
    EVENT_LATE,
    EVENT_WAITS,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    Program,
    op_issues,
)
from ppt_gpu.sm.program.result import SmResult

#: warp instructions; of a whole chip, whose loop takes longer to compile, more than level steady ever simulates
SPECIALISE_FROM, SPECIALISE_CHIP_FROM, SKIP_FROM = 4_000_000, 64_000_000, 500_000


@cache
def make_loop(
    SCHEDULERS: int,
    FIXED_POLICY: int,
    FIXED_WIDTH: int,
    issue_later: Any = None,
    passes_unit: Any = None,
) -> Any:
    """The loop for a number of schedulers, a policy and an issue width that the compiler folds; 0, 0, 0: for all.

    With `issue_later` and `passes_unit` of chip.lsu that of an SM of a whole chip (chip.loop): what is below the L1
    answers after the window, and blocks are dispatched to the chip. The compiler leaves out what a loop has no use for.
    """
    LATER = issue_later is not None

    def loop(
        code: Any, waits: Any, op_table: Any, path_start: Any, warp_path: Any, warp_access: Any,
        block_warp: Any, accesses: Any, tx: Any, mem: Any,
        layout: Any, snap: Any, track: Any, log: Any,
        warps: Any, keys: Any, slots: Any, scheds: Any, blocks: Any, gates: Any, units: Any, queued: Any, wheel: Any,
        occupied: Any, op_stall: Any, doubled: Any, sync: Any, block_start: Any, block_end: Any,
        schedulers: int, policy: int, width: int, memory_gate: int, per_block: int, block_launch: int,
        max_cycles: int,
    ) -> tuple[int, int]:  # fmt: skip
        total, block_slots = len(block_start), len(blocks) >> BLOCK_SHIFT
        code, waits, op_table, path_start = pointer(code), pointer(waits), pointer(op_table), pointer(path_start)
        warp_path, warp_access, block_warp = pointer(warp_path), pointer(warp_access), pointer(block_warp)
        accesses, tx, mem, layout, snap = pointer(accesses), pointer(tx), pointer(mem), pointer(layout), pointer(snap)
        track, log, warps, keys, slots = pointer(track), pointer(log), pointer(warps), pointer(keys), pointer(slots)
        scheds, blocks, gates, units = pointer(scheds), pointer(blocks), pointer(gates), pointer(units)
        wheel, occupied, op_stall, doubled = pointer(wheel), pointer(occupied), pointer(op_stall), pointer(doubled)
        sync, block_start, block_end = pointer(sync), pointer(block_start), pointer(block_end)
        K = int64(SCHEDULERS if SCHEDULERS > 0 else schedulers)
        POLICY = int64(FIXED_POLICY if SCHEDULERS > 0 else policy)
        WIDTH = int64(FIXED_WIDTH if SCHEDULERS > 0 else width)
        GREEDY_POLICY = POLICY in (GTO, GTO_LAUNCH, GTO_BLOCK)
        next_block, ended, idle = track[NEXT_BLOCK], track[ENDED], track[IDLE]
        now, next_launch = track[NOW], track[NEXT_LAUNCH]
        everyone = (int64(2) << (K - 1)) - 1  # a mask of all schedulers
        slot_shift, me = layout[SLOT_SHIFT], track[ISSUED] & OFFSET
        anchor, target, look_at = track[ANCHOR] & OFFSET, track[TARGET], track[LOOK_AT]
        while ended < total:
            if now >= max_cycles:
                return OVER_BUDGET, idle

            # --- a state that repeats ---------------------------------------------------------------------------
            if warps[anchor + POS] >= target or now >= look_at:
                if now >= look_at or looks_the_same(K, warps, scheds, snap, layout, track, now):
                    track[NOW], track[NEXT_BLOCK], track[ENDED], track[IDLE] = now, next_block, ended, idle
                    track[NEXT_LAUNCH], track[ISSUED] = next_launch, me
                    return PAUSED, idle
                target = track[TARGET]

            # --- blocks that are due ---------------------------------------------------------------------------
            if now == next_launch:
                next_launch = int64(NEVER)
                for index in range(block_slots):
                    due = blocks[(index << BLOCK_SHIFT) + LAUNCH_AT] == now
                    if LATER:
                        next_block = blocks[(index << BLOCK_SHIFT) + GIVEN]
                    if due and next_block < total:
                        block_start[next_block] = now
                        launch_block(
                            K, POLICY, wheel, occupied, scheds, warps, keys, slots, slot_shift, blocks, op_table,
                            code, path_start, warp_path, warp_access, block_warp, mem, op_stall, next_block, index,
                            per_block, now,
                        )  # fmt: skip
                        next_block += 1
                        if blocks[(index << BLOCK_SHIFT) + LIVE] == 0:  # no warp has an entry
                            idle += finish_block(
                                K, warps, blocks, op_stall, block_start, block_end, index, per_block, block_launch
                            )
                            ended += 1
                        if LATER:
                            blocks[(index << BLOCK_SHIFT) + GIVEN] = -1
                            look_at = min(look_at, blocks[(index << BLOCK_SHIFT) + LAUNCH_AT])
                    next_launch = min(next_launch, blocks[(index << BLOCK_SHIFT) + LAUNCH_AT])
                if next_block == total and not LATER:
                    next_launch = int64(NEVER)

            # --- warps whose next entry waits for nothing any more -----------------------------------------------
            row = now & (WHEEL - 1)
            if row == 0:
                bring_near(K, wheel, occupied, scheds, warps, now)
            if wakes_at(occupied, now):
                occupied[NEAR] &= ~(int64(1) << row)
                wake(K, wheel, occupied, scheds, warps, gates, op_stall, memory_gate, row, now)

            # --- schedulers --------------------------------------------------------------------------------------
            following = int64(NEVER)  # the next cycle in which a ready warp may issue
            k = int64(np.uint64(now) % np.uint64(K)) if K & (K - 1) else now & (K - 1)
            full = gates[memory_gate + UNTIL]  # warps that wait for the memory port stay in OPEN
            turns = occupied[READY_OTHERS] if full > now else everyone
            for _turn in range(K):
                if SCHEDULERS > 0:
                    # what each scheduler does can be foreseen better than who does
                    this, k = k & 63, (k + 1 if k + 1 < K else 0)
                else:
                    if turns == 0:
                        break
                    later = turns & (int64(-1) << k)
                    this = ctz(later if later else turns)
                    turns &= ~(int64(1) << this)
                sched = this << SCHED_SHIFT
                ready = scheds[sched + READY_MASK]
                if ready == 0:
                    continue
                need = int64(0)
                if full > now:
                    need = gates[memory_gate + (this << GATE_SHIFT) + NEED]
                    if ready == need:
                        continue
                if GREEDY_POLICY and WIDTH == 1 and scheds[sched + BUSY] > now:
                    following = min(following, scheds[sched + BUSY])
                    continue
                if scheds[sched + NEXT_OPEN] <= now:
                    look_again(K, scheds, gates, this, now)
                mask = scheds[sched + OPEN] & ~need
                if mask == 0:
                    following = min(following, scheds[sched + NEXT_OPEN])
                    continue
                if GREEDY_POLICY:
                    bit = greedy_or_least(mask, scheds[sched + GREEDY], keys, this)
                else:
                    bit = next_in_turn(mask, scheds[sched + LAST])
                slot_row = ((bit * K + this) << slot_shift) & OFFSET
                me = (bit * K + this) << WARP_SHIFT
                position, word = warps[me + POS] & POSITION, warps[me + WORD]
                operation, port, kind = (word >> OP_AT) & OP_MASK, (word >> PORT_AT) & PORT_MASK, (word >> KIND_AT) & 7
                gate = warps[me + GATE] & OFFSET
                ready &= ~(int64(1) << bit)
                scheds[sched + OPEN] &= ~(int64(1) << bit)
                waited = now - warps[me + READY]
                if port != FREE_PORT:
                    gates[gate + NEED] &= ~(int64(1) << bit)
                    throttled = gates[(gates[gate + MAIN] & OFFSET) + CYCLES] - warps[me + BASE]
                    op_stall[(operation << STALL_SHIFT) + ((word >> THROTTLE_AT) & REASON_MASK)] += throttled
                    waited -= throttled
                op_stall[(operation << STALL_SHIFT) + NOT_SELECTED] += waited

                # issue this entry, and those that follow it in the same cycle or ahead of time
                at, issued, greedy, enters = now, 1, bit, warps[me + ENTERS]
                limit, soon = int64(-1), int64(-1)  # ahead of time: up to here, and who wakes next
                while True:
                    simple = (word >> AHEAD_AT) & 1 != 0
                    starts = at
                    if port != FREE_PORT:
                        interval = op_table[operation * OP_ROW + INTERVAL]
                        starts = pass_port(K, scheds, gates, units, gate, this, at, interval)
                    entered = (starts << 2) + enters
                    done, place = entered >> 2, int64(0)
                    event, bits = int64(-1), int64(0)
                    if not simple and kind in (KIND_BARRIER, KIND_LOAD):
                        bits = op_table[operation * OP_ROW + EVENT]
                        if bits != 0:
                            event = next_event(K, warps, blocks, block_warp, mem, sync, me >> WARP_SHIFT, per_block)
                    if LATER and not simple and passes_unit(kind, mem):
                        done, place = issue_later(
                            mem, tx, accesses, warps, blocks, kind, op_table[operation * OP_ROW + USES_L1], at, me,
                            ((slot_row + ((word >> SLOT_AT) & 127)) << 2) | (enters & 3), event,
                        )  # fmt: skip
                        entered = (done << 2) | (enters & 3)
                    elif not LATER and not simple and kind >= KIND_LOAD and kind <= KIND_SHARED:
                        access = warps[me + ACCESS] & POSITION
                        prefetch(accesses, access + 8)
                        warps[me + ACCESS] = access + 1
                        if track[MODE] == ANSWERED:
                            done, place = recall(track, log)
                        elif kind == KIND_SHARED:
                            done, place = issue_shared(mem, at, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
                        else:
                            done, place = issue_global(
                                kind, op_table[operation * OP_ROW + USES_L1], at, accesses[access],
                                accesses[access + 1] & FIRST_MASK, tx, mem,
                            )  # fmt: skip
                        if track[MODE] == LOGGING:
                            note(track, log, at, me, access, kind, op_table[operation * OP_ROW + USES_L1], done, place)
                        entered = (done << 2) | (enters & 3)
                    elif not simple and kind == KIND_CONSTANT and op_table[operation * OP_ROW + CACHED] != ALWAYS_THERE:
                        if op_table[operation * OP_ROW + CACHED] == BY_LINES:
                            warp = warp_at(K, warps, blocks, block_warp, mem, me >> WARP_SHIFT, per_block)
                            done = read_constant(mem, sync, warp, starts, op_table[operation * OP_ROW + LATENCY])
                        else:
                            done, place = constant(mem, at)
                        entered = (done << 2) | (enters & 3)
                    if place > at:  # the load/store queue is full until then, for every port that leads to it
                        for other in queued:
                            block(K, scheds, gates, other, (other >> GATE_SHIFT) % K, at, place)
                        if gates[memory_gate + UNTIL] > now:
                            turns &= occupied[READY_OTHERS]
                    if bits & EVENT_COUNTS and (not LATER or done < NEVER):  # else it counts when its result is known
                        count_event(
                            K, wheel, occupied, scheds, warps, slots, slot_shift, blocks, op_stall, op_table,
                            code, waits, warps[me + BLOCK_SLOT] & OFFSET, per_block, sync, event,
                            done if bits & EVENT_LATE else at, at,
                        )  # fmt: skip
                    slots[slot_row + ((word >> SLOT_AT) & 127)] = entered
                    if not LATER or done < NEVER:
                        warps[me + RESULTS] = max(warps[me + RESULTS], done)

                    if not simple and (word >> LAST_AT) & 1:
                        greedy = int64(-1)
                        index = warps[me + BLOCK_SLOT] & OFFSET
                        mine = index << BLOCK_SHIFT
                        warps[me + LAST_OP] = operation
                        warps[me + EXIT_AT] = at
                        scheds[sched + ALIVE] &= ~(int64(1) << bit)
                        blocks[mine + LIVE] -= 1
                        blocks[mine + BLOCK_RESULTS] = max(blocks[mine + BLOCK_RESULTS], warps[me + RESULTS], at + 1)
                        if blocks[mine + LIVE] == 0 and not (LATER and blocks[mine + PENDING] != 0):
                            idle += finish_block(
                                K, warps, blocks, op_stall, block_start, block_end, index, per_block, block_launch
                            )
                            ended += 1
                            if LATER:
                                look_at = min(look_at, blocks[mine + LAUNCH_AT])
                            elif next_block < total:
                                next_launch = min(next_launch, blocks[mine + LAUNCH_AT])
                        elif blocks[mine + ARRIVED] == blocks[mine + LIVE]:
                            release_barrier(
                                K, wheel, occupied, scheds, warps, slots, slot_shift, blocks, op_stall,
                                op_table, code, waits, index, per_block, at,
                            )  # fmt: skip
                        break

                    position += 1
                    if not simple and kind == KIND_BARRIER and bits & (EVENT_COUNTS | EVENT_WAITS) != EVENT_COUNTS:
                        index = warps[me + BLOCK_SLOT] & OFFSET
                        mine = index << BLOCK_SHIFT
                        warps[me + POS] = position
                        warps[me + WAITING] = 1
                        warps[me + ARRIVED_AT] = at
                        warps[me + BARRIER_LATENCY] = max(1, op_table[operation * OP_ROW + LATENCY])
                        if (code[position] >> FETCH_AT) & 1 != 0:
                            following = (code[position] >> OP_AT) & OP_MASK
                            there = line_there(mem, following, int64(0), int64(0), at + 1)
                            warps[me + FETCHED] = there if there > at + 1 else int64(0)
                        if bits != 0:
                            wait_for_event(
                                K, wheel, occupied, scheds, warps, slots, slot_shift, op_stall, op_table,
                                code, waits, me >> WARP_SHIFT, sync, event, op_table[operation * OP_ROW + HELD_FOR], at,
                            )  # fmt: skip
                            break
                        blocks[mine + ARRIVED] += 1
                        if blocks[mine + ARRIVED] == blocks[mine + LIVE]:
                            release_barrier(
                                K, wheel, occupied, scheds, warps, slots, slot_shift, blocks, op_stall,
                                op_table, code, waits, index, per_block, at,
                            )  # fmt: skip
                        break

                    word = code[position]
                    until = dependence(slots, slot_row, word, waits, position)
                    branch = done if kind == KIND_BRANCH else int64(0)
                    operation, kind = (word >> OP_AT) & OP_MASK, (word >> KIND_AT) & 7
                    port = (word >> PORT_AT) & PORT_MASK
                    gate = (port * K + this) << GATE_SHIFT
                    there = int64(0)
                    if (word >> FETCH_AT) & 1 != 0:
                        there = line_there(mem, operation, int64(0), int64(0), at + 1)
                    shared = gates[gate + MAIN] & OFFSET
                    behind = gates[gate + BEHIND] != 0
                    let_in = not behind or scheds[DOOR] <= at
                    if (
                        issued < WIDTH
                        and let_in
                        and max(until >> 2, branch, there) <= at
                        and gates[shared + UNTIL] <= at
                    ):
                        issued += 1
                        doubled[operation] += 1
                        enters = op_table[operation * OP_ROW + ANNOUNCE]
                        continue
                    goes_ahead = WIDTH == 1 and GREEDY_POLICY and (word >> AHEAD_AT) & 1 != 0
                    if goes_ahead and port == FREE_PORT and max(until >> 2, branch, there) <= at + 1:
                        at += 1
                        enters = op_table[operation * OP_ROW + ANNOUNCE]
                        continue
                    low = at + 1
                    if branch > low:
                        op_stall[(operation << STALL_SHIFT) + BRANCH] += branch - low
                        low = branch
                    if there > low:
                        op_stall[(operation << STALL_SHIFT) + NO_INSTRUCTION] += there - low
                        low = there
                    if goes_ahead:
                        opens = max(low, until >> 2, gates[gate + UNTIL])
                        alone = opens == at + 1 or ready & ~closed_until(gates, gate, memory_gate, this, opens) == 0
                        if alone and soon < 0:
                            soon = first_wake(scheds[sched + WAKES], now)
                            limit = min(next_wake(int64(0), occupied, now), next_launch)
                            limit = min(limit, now + layout[NOTICE], look_at)
                        alone = alone and opens < limit
                        if alone and opens >= soon:
                            alone = opens == at + 1 or soon == opens or opens == gates[gate + UNTIL]
                            if alone:
                                alone, ready = pass_wakes(
                                    K, wheel, occupied, scheds, warps, gates, gate, this, ready, at, opens, now
                                )
                                soon = first_wake(scheds[sched + WAKES], now)
                        if alone:
                            if opens > at + 1:
                                free_of = max(low, until >> 2)
                                op_stall[(operation << STALL_SHIFT) + (until & 3)] += free_of - low
                                reason = (word >> THROTTLE_AT) & REASON_MASK
                                op_stall[(operation << STALL_SHIFT) + reason] += opens - free_of
                            at = opens
                            enters = op_table[operation * OP_ROW + ANNOUNCE]
                            continue
                    warps[me + POS] = position
                    low = plan(K, warps, op_stall, op_table, this, bit, word, until, low)
                    later = gates[gate + CLOSES] != 0 or low > gates[memory_gate + UNTIL]
                    if behind or (low > now + 1 and later):
                        schedule(K, wheel, occupied, scheds, this, bit, int64(port != FREE_PORT), low, now)
                        break
                    # in the next cycle, or before the memory port opens: no need to be woken
                    ready |= int64(1) << bit
                    closed = int64(0)
                    if port != FREE_PORT:
                        closed = need_port(warps, gates, me, gate, bit, low)
                    if closed > low:
                        scheds[sched + NEXT_OPEN] = min(scheds[sched + NEXT_OPEN], closed)
                    else:
                        scheds[sched + OPEN] |= int64(1) << bit
                    break

                if POLICY == GTO:
                    keys[(this << 6) | bit] = (at << KEY_SHIFT) | bit
                elif POLICY == GTO_BLOCK:
                    block_of = keys[(this << 6) | bit] >> (BLOCK_KEY + KEY_SHIFT) << BLOCK_KEY
                    keys[(this << 6) | bit] = ((block_of | at) << KEY_SHIFT) | bit
                if GREEDY_POLICY:
                    scheds[sched + GREEDY] = greedy
                    scheds[sched + BUSY] = at + 1
                else:
                    scheds[sched + LAST] = after(bit)
                full, need = gates[memory_gate + UNTIL], gates[memory_gate + (this << GATE_SHIFT) + NEED]
                scheds[sched + READY_MASK] = ready
                others = occupied[READY_OTHERS] & ~(int64(1) << this)
                occupied[READY_OTHERS] = others | (int64(ready != need) << this)
                waiting = need if full > at + 1 else int64(0)
                soon = scheds[sched + NEXT_OPEN]
                if scheds[sched + OPEN] & ~waiting != 0:
                    soon = at + 1
                following = min(following, max(at + 1, soon))
            # (where nobody needs it that cycle is visited in vain, which costs less than to ask)
            if full > now and following > now + 1 and (not LATER or somebody_needs(K, gates, memory_gate)):
                following = min(following, full)

            # --- the next cycle in which anything can happen -------------------------------------------------------
            # (Mostly the next one. That is a branch of its own because the processor can predict it, and so need not
            # wait for the masks of this cycle before it starts on the next.)
            if following <= now + 1 or wakes_at(occupied, now + 1):
                now += 1
                continue
            following = min(following, next_launch, next_wake(occupied[NEAR], occupied, now))
            if LATER:
                track[NOTHING_DUE] = int64(following == NEVER)
                following = min(following, look_at)
            if following == NEVER and ended < total:
                return DEADLOCK, idle
            now = following
        return DONE, idle

    return entry(loop)


def common_loop() -> Any:
    """The loop of every run that is not worth one of its own."""
    return make_loop(0, 0, 0)


def run_core(
    program: Program,
    machine: Machine,
    resident: int,
    max_cycles: int,
    specialise: bool | None = None,
    skip: bool | None = None,
    approximate: bool = False,
) -> SmResult:
    """Simulate `program`; the same as `reference.run_reference`, fast.

    `specialise`: instead of `pays`. `skip`: whether what only repeats is simulated once, by default in long runs (the
    result is the same). `approximate`: what is only much alike too (loop.windows).
    """
    packed, memory = Packed(program, machine), MemoryArrays(program, machine)
    per_block = int(np.diff(program.block_warp).max(initial=0))
    state = State(program, machine, packed, resident, per_block)
    lines = machine.constant_sets and len(program.constant_start)
    if lines or len(program.event_start):  # neither lines of constants nor phases are compared, and do not repeat
        skip = False
    elif skip is None:
        skip = int(op_issues(program).sum()) >= SKIP_FROM
    skipping = (WindowSkipping if approximate else Skipping)(program, machine, packed, memory, state, skip)
    fixed = pays(program, machine) if specialise is None else specialise
    constants = (machine.schedulers, machine.policy, machine.width) if fixed else (0, 0, 0)
    with COMPILING:
        loop = make_loop(*constants)
    about_to_run(loop)
    began = time.thread_time()
    with Progress("blocks simulated", len(state.block_end), counted=state.ended_blocks):
        while True:
            status, idle = loop(
                packed.code, program.entry_wait, packed.op_table, program.path_start, program.warp_path,
                program.warp_access, program.block_warp, memory.access, memory.tx, memory.mem,
                state.layout, skipping.snap, skipping.track, skipping.log,
                state.warps, state.keys, state.slots, state.scheds, state.blocks, state.gates, state.units,
                state.queued, state.wheel, state.occupied, state.op_stall, state.doubled, state.sync,
                state.block_start, state.block_end,
                machine.schedulers, machine.policy, machine.width, state.memory_gate, per_block,
                machine.block_launch, max_cycles,
            )  # fmt: skip
            if status != PAUSED:
                break
            skipping.look_around(max_cycles)
    seconds = time.thread_time() - began
    last = int(state.block_end.max(initial=0))
    if status != DONE or last > max_cycles:
        raise unfinished(status, max_cycles)
    return result_of(
        program,
        machine,
        cycles=max(last, memory.idle()),
        block_start=state.block_start,
        block_end=state.block_end,
        op_stall=state.charged(program),
        idle=idle,
        counters=memory.counters(),
        seconds=seconds,
        skipped=skipping.skipped,
        approximate=skipping.approximate,
        estimated=skipping.estimated,
    )


def pays(program: Program, machine: Machine, least: int = SPECIALISE_FROM) -> bool:
    """A loop of its own, somewhat faster, for what real GPUs have; not for runs of less than `least` warp instructions,
    which end before it is compiled."""
    common = machine.schedulers in (1, 2, 4) and machine.policy in (LRR, GTO) and machine.width in (1, 2)
    return common and int(op_issues(program).sum()) >= least
