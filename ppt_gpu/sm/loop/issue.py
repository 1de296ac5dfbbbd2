"""A warp issues in the compiled loop: which one, what that changes, and where its next entry leaves it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64, prefetch
from ppt_gpu.common.compiled import merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.blocks import arrive, count_event, exit_warp, meet, next_event, wait_for_event, warp_at
from ppt_gpu.sm.loop.code import constant, line_there, read_constant
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK
from ppt_gpu.sm.loop.pack import (
    AHEAD_AT,
    ALWAYS_THERE,
    BRANCH,
    BY_LINES,
    FETCH_AT,
    FREE_PORT,
    LAST_AT,
    NO_INSTRUCTION,
    NOT_SELECTED,
    has,
    kind_in,
    operation_in,
    port_in,
    slot_in,
    throttle_in,
)
from ppt_gpu.sm.loop.policy import after, greedy_or_least, next_in_turn
from ppt_gpu.sm.loop.ports import block_queued, closed_until, look_again, need_port, pass_port, pass_wakes
from ppt_gpu.sm.loop.replay import ANSWERED, LOGGING, note, recall
from ppt_gpu.sm.loop.state import BLOCK_KEY, KEY_SHIFT, LET_IN, READY_OTHERS, STALL_SHIFT, Operation, Sm
from ppt_gpu.sm.loop.wheel import dependence, first_wake, next_wake, plan, schedule
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, GTO_LAUNCH, NEVER
from ppt_gpu.sm.program.program import (
    EVENT_COUNTS,
    EVENT_LATE,
    EVENT_WAITS,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
)

Compiled = Callable[..., Any]


@merged
def is_greedy(policy: int) -> bool:
    """A warp that has issued goes on issuing as long as it can."""
    return policy in (GTO, GTO_LAUNCH, GTO_BLOCK)


@merged
def open_warps(sm: Sm, k: int, full: int, now: int) -> tuple[int, int]:
    """(mask of the warps of scheduler k that can issue; without any: the next cycle in which one may, if that is known)

    `full`: the cycle until which nobody passes the memory port.
    """
    sched, need = sm.scheds[k], int64(0)
    if sched.ready == 0:
        return int64(0), int64(NEVER)
    if full > now:  # those who wait for that port stay in `open`
        need = sm.gates[sm.memory_gate + k].need
        if sched.ready == need:
            return int64(0), int64(NEVER)
    if is_greedy(sm.policy) and sm.width == 1 and sched.busy > now:
        return int64(0), sched.busy
    if sched.next_open <= now:
        look_again(sm, k, now)
    return sched.open & ~need, sched.next_open


@merged
def pick(sm: Sm, k: int, mask: int) -> int:
    """The warp of scheduler k that issues, of those in `mask`."""
    if is_greedy(sm.policy):
        return greedy_or_least(mask, sm.scheds[k].greedy, sm.keys, k)
    return next_in_turn(mask, sm.scheds[k].after)


@merged
def charge_ready(sm: Sm, k: int, bit: int, word: int, number: int, now: int) -> None:
    """The warp issues after it was ready for some cycles: for its port, or to be selected."""
    warp, sched = sm.warps[bit * sm.schedulers + k], sm.scheds[k]
    stalls, waited = operation_in(word) << STALL_SHIFT, now - warp.ready
    sched.open &= ~(int64(1) << bit)
    if port_in(word) != FREE_PORT:
        gate = sm.gates[number]
        gate.need &= ~(int64(1) << bit)
        throttled = sm.gates[gate.main].cycles - warp.base
        sm.op_stall[stalls + throttle_in(word)] += throttled
        waited -= throttled
    sm.op_stall[stalls + NOT_SELECTED] += waited


@merged
def asks_memory(kind: int, mem: Words) -> bool:
    """The operation goes to the load/store unit."""
    return kind >= KIND_LOAD and kind <= KIND_SHARED


@merged
def issue_memory(sm: Sm, place: int, kind: int, way: int, at: int, tells: int, event: int) -> tuple[int, int]:
    """(cycle of the result of a memory operation that issues in cycle `at`, cycle from which the queue has a place)

    As loop skipping wants it: put to the memory system, noted, or told from what was answered before.
    """
    track, warp = sm.track[0], sm.warps[place]
    access = warp.access
    prefetch(sm.accesses, access + 8)
    warp.access = access + 1
    if track.mode == ANSWERED:
        done, room = recall(sm.track, sm.log)
    elif kind == KIND_SHARED:
        done, room = issue_shared(sm.mem, at, (sm.accesses[access] >> CYCLES_AT) & CYCLES_MASK)
    else:
        last = sm.accesses[access + 1] & FIRST_MASK
        done, room = issue_global(kind, way, at, sm.accesses[access], last, sm.tx, sm.mem)
    if track.mode == LOGGING:
        note(sm.track, sm.log, at, place, access, kind, way, done, room)
    return done, room


@merged
def read_constants(sm: Sm, place: int, operation: Operation, starts: int, at: int) -> tuple[int, int]:
    """(cycle of the result of an operation that reads constants, cycle from which the queue has a place)"""
    if operation.cached == BY_LINES:
        return read_constant(sm.mem, sm.sync, warp_at(sm, place), starts, operation.latency), int64(0)
    return constant(sm.mem, at)


@merged
def charge_stream(sm: Sm, operation: int, branch: int, there: int, low: int) -> int:
    """Charge the wait for a branch until cycle `branch` and for an instruction line until `there`; the cycle then."""
    if branch > low:
        sm.op_stall[(operation << STALL_SHIFT) + BRANCH] += branch - low
        low = branch
    if there > low:
        sm.op_stall[(operation << STALL_SHIFT) + NO_INSTRUCTION] += there - low
        low = there
    return low


@merged
def nobody_before(
    sm: Sm, k: int, gate: int, ready: int, at: int, opens: int, limit: int, soon: int, now: int
) -> tuple[bool, int, int, int]:
    """Whether a warp that issued in cycle `at` can issue in cycle `opens`, ahead of the other schedulers.

    `ready`: the other ready warps of its scheduler. `limit`: up to here, and `soon`: who wakes next, both -1 where that
    has not been asked yet. Returns (whether it can, ready, limit, soon).
    """
    sched = sm.scheds[k]
    alone = opens == at + 1 or ready & ~closed_until(sm, sm.gates[gate], k, opens) == 0
    if alone and soon < 0:
        soon = first_wake(sched.wakes, now)
        limit = min(next_wake(int64(0), sm.occupied, now), sm.track[0].next_launch)
        limit = min(limit, now + sm.notice, sm.track[0].look_at)
    alone = alone and opens < limit
    if alone and opens >= soon:
        alone = opens == at + 1 or soon == opens or opens == sm.gates[gate].until
        if alone:
            alone, ready = pass_wakes(sm, gate, k, ready, at, opens, now)
            soon = first_wake(sched.wakes, now)
    return alone, ready, limit, soon


@merged
def put_back(sm: Sm, k: int, bit: int, ready: int, word: int, until: int, low: int, now: int) -> int:
    """Entry `word` of the warp is not issued now: it will be woken, or is ready soon. The ready warps with it.

    `until`: as `dependence`; nothing else holds the entry from cycle `low` on.
    """
    warp, sched = sm.warps[bit * sm.schedulers + k], sm.scheds[k]
    gate = sm.gates[port_in(word) * sm.schedulers + k]
    low = plan(sm, k, bit, word, until, low)
    later = gate.closes != 0 or low > sm.gates[sm.memory_gate].until
    if gate.behind != 0 or (low > now + 1 and later):
        schedule(sm, k, bit, int64(port_in(word) != FREE_PORT), low, now)
        return ready
    # in the next cycle, or before the memory port opens: no need to be woken
    closed = int64(0)
    if port_in(word) != FREE_PORT:
        closed = need_port(sm, warp, gate, bit, low)
    if closed > low:
        sched.next_open = min(sched.next_open, closed)
    else:
        sched.open |= int64(1) << bit
    return ready | int64(1) << bit


@merged
def rank(sm: Sm, k: int, bit: int, greedy: int, at: int) -> None:
    """What the policy remembers of the warp that issued up to cycle `at`; `greedy`: it, -1 when it has exited."""
    sched, key = sm.scheds[k], (k << 6) | bit
    if sm.policy == GTO:
        sm.keys[key] = (at << KEY_SHIFT) | bit
    elif sm.policy == GTO_BLOCK:
        block_of = sm.keys[key] >> (BLOCK_KEY + KEY_SHIFT) << BLOCK_KEY
        sm.keys[key] = ((block_of | at) << KEY_SHIFT) | bit
    if is_greedy(sm.policy):
        sched.greedy = greedy
        sched.busy = at + 1
    else:
        sched.after = after(bit)


@merged
def leaves(sm: Sm, k: int, bit: int, word: int, position: int, event: int, bits: int, at: int) -> tuple[bool, bool]:
    """Whether the warp has exited with entry `word`, and whether it waits now for others: it goes on at `position`.

    `event`, `bits`: as of `perform`.
    """
    operation = sm.operations[operation_in(word)]
    if has(word, LAST_AT):
        exit_warp(sm, k, bit, operation_in(word), at)
        return True, True
    if kind_in(word) != KIND_BARRIER or bits & (EVENT_COUNTS | EVENT_WAITS) == EVENT_COUNTS:
        return False, False
    place = bit * sm.schedulers + k
    arrive(sm, place, position, operation.latency, at)
    if bits != 0:
        wait_for_event(sm, place, event, operation.held_for, at)
    else:
        meet(sm, sm.warps[place].block_slot, at)
    return False, True


@cache
def make_perform(asks: Compiled, ask: Compiled) -> Compiled:
    """What an entry that issues does; `asks(kind, mem)` says whether it goes to the load/store unit, `ask` is as
    `issue_memory`."""

    @merged
    def perform(sm: Sm, k: int, bit: int, word: int, gate: int, enters: int, at: int) -> tuple[int, int, int]:
        """Entry `word` of a warp issues in cycle `at`: (cycle of its result, its event or -1, EVENT_* bits).

        `enters`: `announce` of its operation.
        """
        kind, operation = kind_in(word), sm.operations[operation_in(word)]
        place, starts = bit * sm.schedulers + k, at
        slot = (place << sm.slot_shift) + slot_in(word)
        if port_in(word) != FREE_PORT:
            starts = pass_port(sm, sm.gates[gate], k, at, operation.interval)
        entered = (starts << 2) + enters
        done, room, event, bits = entered >> 2, int64(0), int64(-1), int64(0)
        if not has(word, AHEAD_AT):
            if kind in (KIND_BARRIER, KIND_LOAD):
                bits = operation.event
                if bits != 0:
                    event = next_event(sm, place)
            if asks(kind, sm.mem):
                done, room = ask(sm, place, kind, operation.way, at, (slot << 2) | (enters & 3), event)
                entered = (done << 2) | (enters & 3)
            elif kind == KIND_CONSTANT and operation.cached != ALWAYS_THERE:
                done, room = read_constants(sm, place, operation, starts, at)
                entered = (done << 2) | (enters & 3)
        if room > at:
            block_queued(sm, at, room)
        known = sm.on_chip == 0 or done < NEVER
        warp = sm.warps[place]
        if bits & EVENT_COUNTS and known:  # else it counts when its result is known
            count_event(sm, warp.block_slot, event, done if bits & EVENT_LATE else at, at)
        sm.slots[slot] = entered
        if known:
            warp.results = max(warp.results, done)
        return done, event, bits

    return perform


@cache
def make_issue(asks: Compiled, ask: Compiled) -> Compiled:
    """How a warp issues; `asks`, `ask`: as of `make_perform`."""
    perform = make_perform(asks, ask)

    @merged
    def issue(sm: Sm, k: int, bit: int, now: int) -> int:
        """The warp issues its next entry, and those that follow it in the same cycle or ahead of time. The last cycle.

        The warp's wait up to here has been charged.
        """
        place, sched = bit * sm.schedulers + k, sm.scheds[k]
        warp = sm.warps[place]
        position, word, enters, gate = warp.pos, warp.word, warp.enters, warp.gate & (LET_IN - 1)
        charge_ready(sm, k, bit, word, gate, now)
        ahead = sm.width == 1 and is_greedy(sm.policy)
        ready = sched.ready & ~(int64(1) << bit)
        at, issued, greedy = now, 1, bit
        limit, soon = int64(-1), int64(-1)
        while True:
            done, event, bits = perform(sm, k, bit, word, gate, enters, at)
            position += 1
            if not has(word, AHEAD_AT):
                gone, waits = leaves(sm, k, bit, word, position, event, bits, at)
                if gone:
                    greedy = int64(-1)
                if waits:
                    break
            branch, there = done if kind_in(word) == KIND_BRANCH else int64(0), int64(0)
            word = sm.code[position]
            operation, gate = operation_in(word), port_in(word) * sm.schedulers + k
            until = dependence(sm, place, word, position)
            enters = sm.operations[operation].announce
            if has(word, FETCH_AT):
                there = line_there(sm.mem, operation, int64(0), int64(0), at + 1)
            soonest, port = max(until >> 2, branch, there), sm.gates[gate]
            let_in = port.behind == 0 or sm.scheds[0].door <= at
            if issued < sm.width and let_in and soonest <= at and sm.gates[port.main].until <= at:
                issued += 1
                sm.doubled[operation] += 1
                continue
            goes_ahead = ahead and has(word, AHEAD_AT)
            if goes_ahead and port_in(word) == FREE_PORT and soonest <= at + 1:
                at += 1
                continue
            low = charge_stream(sm, operation, branch, there, at + 1)
            if goes_ahead:
                opens = max(low, until >> 2, port.until)
                alone, ready, limit, soon = nobody_before(sm, k, gate, ready, at, opens, limit, soon, now)
                if alone:
                    if opens > at + 1:
                        free_of = max(low, until >> 2)
                        stalls = operation << STALL_SHIFT
                        sm.op_stall[stalls + (until & 3)] += free_of - low
                        sm.op_stall[stalls + throttle_in(word)] += opens - free_of
                    at = opens
                    continue
            warp.pos = position
            ready = put_back(sm, k, bit, ready, word, until, low, now)
            break
        rank(sm, k, bit, greedy, at)
        sched.ready = ready
        need = sm.gates[sm.memory_gate + k].need
        others = sm.occupied[READY_OTHERS] & ~(int64(1) << k)
        sm.occupied[READY_OTHERS] = others | (int64(ready != need) << k)
        return at

    return issue
