"""The compiled SM loop: the cycles of README.md, without the cycles in which nothing can happen.

How it gets by without an event queue: when an entry issues, everything that decides when the warp can go on is known
(completion times are computed at issue), so the warp goes into a timing wheel at that cycle; only a barrier leaves it
waiting for others. In a visited cycle the warps of the wheel's row become ready, and every scheduler picks among the
ready warps whose port is open, by masks. Stalls are charged in whole stretches: the dependence when the warp enters the
wheel, the rest at issue, of which the port's count of blocked cycles tells throttling from not being selected.

Under the greedy policies nobody can interrupt a warp whose next entry is ready and needs a unit that is always free: such
entries issue at once, ahead of the other schedulers, whose cycles they cannot touch (AHEAD).
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.sm.core_bits import compiled, fingerprint
from ppt_gpu.sm.core_machine import GTO, GTO_LAUNCH, NEVER, TWO_LEVEL, Machine
from ppt_gpu.sm.core_memory import MemoryArrays, issue_global, issue_shared
from ppt_gpu.sm.core_pack import (
    AHEAD_AT,
    FREE,
    KIND_AT,
    LAST_AT,
    OP_AT,
    PORT_AT,
    QUEUED,
    ROW,
    SHARED,
    SLOT_AT,
    Packed,
)
from ppt_gpu.sm.core_raw import DEADLOCK, DONE, OVER_BUDGET, Raw
from ppt_gpu.sm.core_state import (
    ACCESS,
    ACTIVE,
    ALIVE,
    ARRIVED,
    ARRIVED_AT,
    BARRIER_LATENCY,
    BASE,
    BLOCK_RESULTS,
    BLOCK_SLOT,
    BLOCKED_CYCLES,
    BRANCH,
    BUSY,
    DRAIN,
    EXIT_AT,
    FAR,
    GREEDY,
    LAST,
    LAST_OP,
    LAUNCH_AT,
    LIVE,
    NEED,
    NOT_SELECTED,
    NUMBER,
    PARKED,
    POS,
    READY,
    READY_MASK,
    RESULTS,
    SELECTED,
    STAMP,
    THROTTLE,
    UNTIL,
    WAITING,
    WHEEL,
    State,
    block,
    bring_near,
    dependence,
    eligible_mask,
    finish_block,
    greedy_or_least,
    launch_block,
    next_in_turn,
    next_wake,
    plan_wake,
    refill_active,
    release_barrier,
    take_unit,
    wake,
)
from ppt_gpu.sm.program import (
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_LOAD,
    KIND_SHARED,
    Program,
)

_FILES = ("core.py", "core_bits.py", "core_machine.py", "core_memory.py", "core_pack.py", "core_state.py")


@cache
def make_loop(K: int, POLICY: int, WIDTH: int) -> Any:
    """The loop for K schedulers, one policy and issue width: constants that the compiler folds. Compiled when first called."""
    SOURCES = fingerprint(*_FILES)
    GREEDY_POLICY = POLICY in (GTO, GTO_LAUNCH)

    def loop(
        code: Any, waits: Any, op_time: Any, ports: Any, path_start: Any, warp_path: Any, warp_access: Any,
        block_warp: Any, access_start: Any, access_cycles: Any, updates: Any, tx_line: Any, tx_sectors: Any,
        m: Any, lines: Any, l1: Any, l1_ends: Any, l2: Any, l2_ends: Any, mshr: Any, queue: Any,
        warps: Any, slots: Any, scheds: Any, blocks: Any, gates: Any, units: Any, wheel: Any, occupied: Any,
        op_stall: Any, doubled: Any, block_start: Any, block_end: Any,
        per_block: int, active_set: int, block_launch: int, max_cycles: int,
    ) -> tuple[int, int]:  # fmt: skip
        _ = SOURCES
        total, next_block, ended, idle = len(block_start), 0, 0, 0
        now, next_launch = 0, 0
        while ended < total:
            if now >= max_cycles:
                return OVER_BUDGET, idle

            # --- blocks that are due -------------------------------------------------------------------------
            if now == next_launch:
                next_launch = NEVER
                for index in range(len(blocks)):
                    if blocks[index, LAUNCH_AT] == now and next_block < total:
                        block_start[next_block] = now
                        launch_block(
                            K, wheel, occupied, scheds, warps, slots, blocks, code, path_start, warp_path,
                            warp_access, block_warp, next_block, index, per_block, now,
                        )  # fmt: skip
                        next_block += 1
                        if blocks[index, LIVE] == 0:  # no warp has an entry
                            idle += finish_block(
                                K, warps, blocks, op_stall, block_start, block_end, index, per_block, block_launch
                            )
                            ended += 1
                    next_launch = min(next_launch, blocks[index, LAUNCH_AT])
                if next_block == total:
                    next_launch = NEVER

            # --- warps whose next entry waits for nothing any more ---------------------------------------------
            row = now & (WHEEL - 1)
            if row == 0:
                bring_near(K, wheel, occupied, scheds, warps, now)
            if (occupied[row >> 6] >> (row & 63)) & 1:
                occupied[row >> 6] &= ~(np.int64(1) << (row & 63))
                wake(K, wheel, scheds, warps, gates, ports, row, now)
            if POLICY == TWO_LEVEL:
                refill_active(K, scheds, warps, gates, ports, code, op_stall, active_set, now)

            # --- schedulers ------------------------------------------------------------------------------------
            following = NEVER  # the next cycle in which a ready warp may issue
            for turn in range(K):
                k = (now + turn) % K
                if scheds[k, READY_MASK] == 0:
                    continue
                if GREEDY_POLICY and scheds[k, BUSY] > now:
                    following = min(following, scheds[k, BUSY])
                    continue
                mask, soon = eligible_mask(scheds, gates, ports, k, now)
                if POLICY == TWO_LEVEL:
                    mask &= scheds[k, ACTIVE]
                if mask == 0:
                    following = min(following, soon)
                    continue
                if POLICY == GTO:
                    bit = greedy_or_least(mask, scheds[k, GREEDY], warps, k, STAMP)
                elif POLICY == GTO_LAUNCH:
                    bit = greedy_or_least(mask, scheds[k, GREEDY], warps, k, NUMBER)
                else:
                    bit = next_in_turn(mask, scheds[k, LAST])
                me = k * 64 + bit
                position = warps[me, POS]
                word = code[position]
                operation, port, kind = word >> OP_AT, (word >> PORT_AT) & 63, (word >> KIND_AT) & 7
                scheds[k, READY_MASK] &= ~(np.int64(1) << bit)
                gates[k * 64 + port, NEED] &= ~(np.int64(1) << bit)
                waited = now - warps[me, READY]
                if waited > 0:
                    gate = port if ports[port, SHARED] else k * 64 + port
                    throttled = gates[gate, BLOCKED_CYCLES] - warps[me, BASE]
                    op_stall[operation, THROTTLE[kind]] += throttled
                    op_stall[operation, NOT_SELECTED] += waited - throttled

                # issue this entry, and those that follow it in the same cycle or ahead of time
                at, issued, greedy = now, 1, bit
                while True:
                    if ports[port, FREE] == 0:
                        take_unit(K, scheds, gates, ports, units, port, k, at, op_time[operation, 1])
                    done = at + op_time[operation, 0]
                    if kind >= KIND_LOAD and kind <= KIND_SHARED:
                        access = warps[me, ACCESS]
                        warps[me, ACCESS] = access + 1
                        if kind == KIND_SHARED:
                            done, place = issue_shared(m, queue, at, access_cycles[access])
                        else:
                            done, place = issue_global(
                                kind, op_time[operation, 3] != 0, at, access_start[access], access_start[access + 1],
                                access_cycles[access], updates[access], tx_line, tx_sectors,
                                m, lines, l1, l1_ends, l2, l2_ends, mshr, queue,
                            )  # fmt: skip
                        if place > at:  # the queue is full until then, for every port that leads to it
                            for other in range(len(ports)):
                                if ports[other, QUEUED]:
                                    for q in range(1 if ports[other, SHARED] else K):
                                        block(K, scheds, gates, ports, other, q, at, place)
                    slots[me * ROW + ((word >> SLOT_AT) & 127)] = (done << 2) | op_time[operation, 2]
                    warps[me, RESULTS] = max(warps[me, RESULTS], done, at + 1)

                    if (word >> LAST_AT) & 1:
                        greedy = -1
                        index = warps[me, BLOCK_SLOT]
                        warps[me, LAST_OP] = operation
                        warps[me, EXIT_AT] = at
                        scheds[k, ALIVE] &= ~(np.int64(1) << bit)
                        blocks[index, LIVE] -= 1
                        blocks[index, BLOCK_RESULTS] = max(blocks[index, BLOCK_RESULTS], warps[me, RESULTS])
                        if blocks[index, LIVE] == 0:
                            idle += finish_block(
                                K, warps, blocks, op_stall, block_start, block_end, index, per_block, block_launch
                            )
                            ended += 1
                            if next_block < total:
                                next_launch = min(next_launch, blocks[index, LAUNCH_AT])
                        elif blocks[index, ARRIVED] == blocks[index, LIVE]:
                            release_barrier(
                                K, wheel, occupied, scheds, warps, slots, blocks, op_stall, code, waits, index,
                                per_block, at,
                            )  # fmt: skip
                        break

                    position += 1
                    if kind == KIND_BARRIER:
                        index = warps[me, BLOCK_SLOT]
                        warps[me, POS] = position
                        warps[me, WAITING] = 1
                        warps[me, ARRIVED_AT] = at
                        warps[me, BARRIER_LATENCY] = max(1, op_time[operation, 0])
                        scheds[k, PARKED] |= np.int64(1) << bit
                        blocks[index, ARRIVED] += 1
                        if blocks[index, ARRIVED] == blocks[index, LIVE]:
                            release_barrier(
                                K, wheel, occupied, scheds, warps, slots, blocks, op_stall, code, waits, index,
                                per_block, at,
                            )  # fmt: skip
                        break

                    word = code[position]
                    until = dependence(slots, me, word, waits, position)
                    branch = done if kind == KIND_BRANCH else 0
                    operation, port, kind = word >> OP_AT, (word >> PORT_AT) & 63, (word >> KIND_AT) & 7
                    if WIDTH > 1 and issued < WIDTH and max(until >> 2, branch) <= at:
                        gate = port if ports[port, SHARED] else k * 64 + port
                        if gates[gate, UNTIL] <= at:
                            issued += 1
                            doubled[operation] += 1
                            continue
                    if WIDTH == 1 and GREEDY_POLICY and (word >> AHEAD_AT) & 1 and max(until >> 2, branch) <= at + 1:
                        at += 1
                        continue
                    low = at + 1
                    if branch > low:
                        op_stall[operation, BRANCH] += branch - low
                        low = branch
                    warps[me, POS] = position
                    plan_wake(K, wheel, occupied, scheds, warps, op_stall, k, bit, word, until, low, False, now)
                    break

                warps[me, STAMP] = at
                scheds[k, LAST] = bit
                scheds[k, GREEDY] = greedy
                scheds[k, BUSY] = at + 1
                if scheds[k, READY_MASK] != 0 or POLICY == TWO_LEVEL:
                    following = min(following, at + 1)

            # --- the next cycle in which anything can happen -----------------------------------------------------
            following = min(following, next_launch, next_wake(occupied, now))
            for k in range(K):
                if scheds[k, FAR] != 0:
                    following = min(following, (now | (WHEEL - 1)) + 1)
            if following == NEVER and ended < total:
                return DEADLOCK, idle
            now = following
        return DONE, idle

    return compiled(loop)


def run_core(program: Program, machine: Machine, resident: int, max_cycles: int) -> Raw:
    """Simulate `program`; the same as `reference.run_reference`, fast."""
    packed, memory, state = Packed(program, machine), MemoryArrays(program, machine), State(program, machine, resident)
    loop = make_loop(machine.schedulers, machine.policy, machine.width)
    began = time.process_time()
    status, idle = loop(
        packed.code, program.entry_wait, packed.op_time, packed.ports, program.path_start, program.warp_path,
        program.warp_access, program.block_warp, program.access_start, program.access_cycles, memory.updates,
        program.tx_line, program.tx_sectors,
        memory.m, memory.lines, memory.l1, memory.l1_ends, memory.l2, memory.l2_ends, memory.mshr, memory.queue,
        state.warps, state.slots, state.scheds, state.blocks, state.gates, state.units, state.wheel, state.occupied,
        state.op_stall, state.doubled, state.block_start, state.block_end,
        int(np.diff(program.block_warp).max(initial=0)), machine.active_set, machine.block_launch, max_cycles,
    )  # fmt: skip
    seconds = time.process_time() - began
    last = int(state.block_end.max(initial=0))
    if status != DONE or last > max_cycles:
        return Raw.failed(status if status != DONE else OVER_BUDGET, program)
    from ppt_gpu.sm.simulate import op_issues

    state.op_stall[:, SELECTED] = op_issues(program) - state.doubled
    warp_cycles = state.op_stall.sum(axis=0)
    warp_cycles[DRAIN] += idle
    return Raw(
        DONE, max(last, memory.idle()), state.block_start, state.block_end, warp_cycles, state.op_stall,
        memory.counters(), seconds,
    )  # fmt: skip


__all__ = ["make_loop", "run_core"]
