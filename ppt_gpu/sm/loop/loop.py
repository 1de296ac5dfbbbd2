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

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import about_to_run, entry, merged
from ppt_gpu.common.progress import Progress
from ppt_gpu.common.records import Words, known
from ppt_gpu.common.threads import COMPILING
from ppt_gpu.sm.loop.blocks import launch_due, note_due
from ppt_gpu.sm.loop.issue import Compiled, asks_memory, issue_memory, make_issue, open_warps, pick
from ppt_gpu.sm.loop.memory import MemoryArrays
from ppt_gpu.sm.loop.pack import Packed
from ppt_gpu.sm.loop.ports import somebody_needs, wake
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET, PAUSED, result_of, unfinished
from ppt_gpu.sm.loop.skip import Skipping, looks_the_same
from ppt_gpu.sm.loop.state import NEAR, READY_OTHERS, WHEEL, Sm, State, sm_at
from ppt_gpu.sm.loop.wheel import bring_near, next_wake, wakes_at
from ppt_gpu.sm.loop.windows import WindowSkipping
from ppt_gpu.sm.program.machine import GTO, LRR, NEVER, Machine
from ppt_gpu.sm.program.program import Program, op_issues
from ppt_gpu.sm.program.result import SmResult

#: warp instructions; of a whole chip, whose loop takes longer to compile, more than level steady ever simulates
SPECIALISE_FROM, SPECIALISE_CHIP_FROM, SKIP_FROM = 4_000_000, 64_000_000, 500_000


@merged
def wake_up(sm: Sm, now: int) -> None:
    """Warps whose next entry waits for nothing any more in cycle `now`."""
    row = now & (WHEEL - 1)
    if row == 0:
        bring_near(sm, now)
    if wakes_at(sm.occupied, now):
        sm.occupied[NEAR] &= ~(int64(1) << row)
        wake(sm, row, now)


@merged
def next_cycle(sm: Sm, following: int, now: int) -> int:
    """The next cycle in which anything can happen, NEVER without any. `following`: in which a ready warp may issue."""
    track = sm.track[0]
    following = min(following, track.next_launch, next_wake(sm.occupied[NEAR], sm.occupied, now))
    if sm.on_chip != 0:
        track.nothing_due = int64(following == NEVER)
        following = min(following, track.look_at)
    return following


@cache
def make_step(fixed: bool, asks: Compiled, ask: Compiled) -> Compiled:
    """The schedulers' part of a cycle. `fixed`: the compiler knows how many there are. `asks`, `ask`: as of
    `make_perform`."""
    issue = make_issue(asks, ask)

    @merged
    def step(sm: Sm, issued: int, now: int) -> tuple[int, int]:
        """The schedulers have their turns in cycle `now`: (the next one in which a ready warp may issue, the warp slot
        that issued last; before it was `issued`)"""
        K, following = sm.schedulers, int64(NEVER)
        everyone = (int64(2) << (K - 1)) - 1  # a mask of all schedulers
        full = sm.gates[sm.memory_gate].until
        turns = sm.occupied[READY_OTHERS] if full > now else everyone
        k = int64(np.uint64(now) % np.uint64(K)) if K & (K - 1) else now & (K - 1)
        for _turn in range(K):
            if fixed:  # what each scheduler does can be foreseen better than who does
                this, k = k & 63, (k + 1 if k + 1 < K else 0)
            else:
                if turns == 0:
                    break
                later = turns & (int64(-1) << k)
                this = ctz(later if later else turns)
                turns &= ~(int64(1) << this)
            mask, then = open_warps(sm, this, full, now)
            if mask == 0:
                following = min(following, then)
                continue
            bit = pick(sm, this, mask)
            at = issue(sm, this, bit, now)
            issued = bit * K + this
            sched, full = sm.scheds[this], sm.gates[sm.memory_gate].until
            if full > now:
                turns &= sm.occupied[READY_OTHERS]
            waiting = sm.gates[sm.memory_gate + this].need if full > at + 1 else int64(0)
            then = at + 1 if sched.open & ~waiting != 0 else sched.next_open
            following = min(following, max(at + 1, then))
        # (where nobody needs it that cycle is visited in vain, which costs less than to ask)
        if full > now and following > now + 1 and (sm.on_chip == 0 or somebody_needs(sm, sm.memory_gate)):
            following = min(following, full)
        return following, issued

    return step


@cache
def make_run(
    schedulers: int, policy: int, width: int, asks: Compiled = asks_memory, ask: Compiled = issue_memory
) -> Compiled:
    """The loop for a number of schedulers, a policy and an issue width that the compiler folds; 0, 0, 0: for all.

    `asks`, `ask`: as of `make_perform`. With those of chip.lsu that of an SM of a whole chip (chip.loop): what is below
    the L1 answers after the window, and blocks are dispatched to the chip. The compiler leaves out what a loop has no
    use for.
    """
    FIXED, ON_CHIP = schedulers > 0, int(ask is not issue_memory)
    step = make_step(FIXED, asks, ask)

    @merged
    def general(sm: Sm) -> Any:
        return known(sm, "on_chip", ON_CHIP)

    @merged
    def fixed(sm: Sm) -> Any:
        return known(known(known(general(sm), "schedulers", schedulers), "policy", policy), "width", width)

    specialised = fixed if FIXED else general

    @merged
    def run(given: Sm, max_cycles: int) -> int:
        sm = specialised(given)
        track, now, issued = sm.track[0], sm.track[0].now, sm.track[0].issued
        anchor, target = sm.warps[track.anchor], track.target
        note_due(track)
        while True:
            if now >= max_cycles:
                return OVER_BUDGET
            if anchor.pos >= target or now >= track.due:
                if now >= track.look_at or (anchor.pos >= target and looks_the_same(sm, now)):
                    track.now, track.issued = now, issued
                    return PAUSED
                target = track.target
                if now >= track.next_launch:
                    launch_due(sm, now)
            wake_up(sm, now)
            following, issued = step(sm, issued, now)
            # (Mostly the next one. That is a branch of its own because the processor can predict it, and so need not
            # wait for the masks of this cycle before it starts on the next.)
            if following <= now + 1 or wakes_at(sm.occupied, now + 1):
                now += 1
                continue
            if track.ended == sm.total:
                return DONE
            now = next_cycle(sm, following, now)
            if now == NEVER:
                return DEADLOCK

    return run


@cache
def make_loop(schedulers: int, policy: int, width: int) -> Any:
    """The loop of one SM, compiled: `make_run`, for Python."""
    run = make_run(schedulers, policy, width)

    def loop(words: Words, max_cycles: int) -> int:
        return run(sm_at(words), max_cycles)

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
    state = State(program, machine, packed, resident)
    lines = machine.constant_sets and len(program.constant_start)
    if lines or len(program.event_start):  # neither lines of constants nor phases are compared, and do not repeat
        skip = False
    elif skip is None:
        skip = int(op_issues(program).sum()) >= SKIP_FROM
    skipping: Skipping | WindowSkipping | None = None
    if skip:
        skipping = (WindowSkipping if approximate else Skipping)(state, memory)
    sm = skipping.sm if skipping else state.sm(state.core, memory.access, memory.tx, memory.mem)
    fixed = pays(program, machine) if specialise is None else specialise
    constants = (machine.schedulers, machine.policy, machine.width) if fixed else (0, 0, 0)
    with COMPILING:
        loop = make_loop(*constants)
    about_to_run(loop)
    began = time.thread_time()
    with Progress("blocks simulated", len(state.block_end), counted=state.ended_blocks):
        status = loop(sm, max_cycles)
        while status == PAUSED and skipping:
            skipping.look_around(max_cycles)
            status = loop(sm, max_cycles)
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
        op_stall=state.charged(state.core),
        idle=int(state.track["idle"]),
        counters=memory.counters(),
        seconds=seconds,
        skipped=skipping.skipped if skipping else 0,
        approximate=skipping.approximate if skipping else 0,
        estimated=skipping.estimated if skipping else 0,
    )


def pays(program: Program, machine: Machine, least: int = SPECIALISE_FROM) -> bool:
    """A loop of its own, somewhat faster, for what real GPUs have; not for runs of less than `least` warp instructions,
    which end before it is compiled."""
    common = machine.schedulers in (1, 2, 4) and machine.policy in (LRR, GTO) and machine.width in (1, 2)
    return common and int(op_issues(program).sum()) >= least
