"""What bounds the SM loop: loops that do less, step by step.

The loops that do less know only compute entries of one path, on 4 schedulers of 16 warps each, policy lrr, all warps
from cycle 0 on: a wheel of masks, then what each step adds. With all steps an SM takes as many cycles as in the whole
loop.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.loop_programs import DEPENDENT_FMA, Entry, loop_program
from ppt_gpu.common.bits import int64, pointer
from ppt_gpu.common.compiled import entry
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.loop import run_core
from ppt_gpu.sm.loop.pack import NOT_SELECTED, OP_AT, OP_MASK, SLOT_AT, W1_AT, Packed
from ppt_gpu.sm.loop.policy import after, next_in_turn
from ppt_gpu.sm.loop.state import STALL_SHIFT, WHEEL
from ppt_gpu.sm.one_sm import MAX_CYCLES
from ppt_gpu.sm.program.machine import Machine, machine_of
from ppt_gpu.sm.program.program import Program, op_issues
from ppt_gpu.spec.gpu import Gpu

CHIP, SCHEDULERS, ROWS, WARPS = "v100", 4, 16, 8
RESIDENT = SCHEDULERS * ROWS // WARPS  # blocks
#: what the loop knows in each step: (scoreboard slots, stalls, a pipe that is busy)
STEPS = (
    ("wheel and masks", (False, False, False)),
    ("these and slots", (True, False, False)),
    ("these, slots and stalls", (True, True, False)),
    ("these, slots, stalls and a pipe", (True, True, True)),
)


@cache
def make_smallest(slots_too: bool, stalls_too: bool, pipe_too: bool) -> Any:
    """The loop of a step; it returns the cycle behind the last issue."""

    def smallest(
        code: Words, announce: Words, interval: Words, words: Words, positions: Words, ready_at: Words, slots: Words,
        wheel: Words, masks: Words, places: Words, busy: Words, op_stall: Words, slot_shift: int, entries: int,
    ) -> int:  # fmt: skip
        left, now, K = len(words), int64(0), int64(SCHEDULERS)
        code, announce, interval = pointer(code), pointer(announce), pointer(interval)
        words, positions = pointer(words), pointer(positions)
        ready_at, slots, wheel, masks = pointer(ready_at), pointer(slots), pointer(wheel), pointer(masks)
        places, busy, op_stall = pointer(places), pointer(busy), pointer(op_stall)
        while left > 0:
            for k in range(K):
                row = (now & (WHEEL - 1)) * K + k
                ready = masks[k] | wheel[row]
                wheel[row] = 0
                masks[k] = ready
                if ready == 0 or (pipe_too and busy[k] > now):
                    continue
                bit = next_in_turn(ready, places[k])
                places[k] = after(bit)
                masks[k] = ready & ~(int64(1) << bit)
                me = bit * K + k
                word = words[me]
                operation = (word >> OP_AT) & OP_MASK
                if stalls_too:
                    op_stall[(operation << STALL_SHIFT) + NOT_SELECTED] += now - ready_at[me]
                if pipe_too:
                    busy[k] = now + interval[operation]
                until = (now << 2) + announce[operation]
                if slots_too:
                    slots[(me << slot_shift) + ((word >> SLOT_AT) & 127)] = until
                positions[me] += 1
                if positions[me] == entries:
                    left -= 1
                    continue
                word = code[positions[me]]
                if slots_too:
                    base = me << slot_shift
                    until = max(slots[base + (word & 127)], slots[base + ((word >> W1_AT) & 127)])
                start = max(now + 1, until >> 2)
                if stalls_too:
                    op_stall[(((word >> OP_AT) & OP_MASK) << STALL_SHIFT) + (until & 3)] += start - (now + 1)
                    ready_at[me] = start
                words[me] = word
                wheel[(start & (WHEEL - 1)) * K + k] |= int64(1) << bit
            now += 1
        return now

    return entry(smallest)


def run_smallest(program: Program, machine: Machine, step: tuple[bool, bool, bool]) -> tuple[int, float]:
    """(cycle behind the last issue, s) of one path of compute entries, run by all warps that are resident at once."""
    packed, warps = Packed(program, machine), SCHEDULERS * ROWS

    def zeros(words: int) -> NDArray[np.int64]:
        return np.zeros(words, np.int64)

    tables = (
        packed.code, packed.operations["announce"].copy(), packed.operations["interval"].copy(),
        np.full(warps, packed.code[0]), zeros(warps), zeros(warps), zeros(warps << packed.slot_shift),
        zeros(WHEEL * SCHEDULERS), np.full(SCHEDULERS, (1 << ROWS) - 1, np.int64),
        np.full(SCHEDULERS, -1, np.int64), zeros(SCHEDULERS), zeros(len(program.op_name) << STALL_SHIFT),
    )  # fmt: skip
    loop = make_smallest(*step)
    began = time.thread_time()
    cycles = loop(*tables, packed.slot_shift, len(packed.code))
    return int(cycles), time.thread_time() - began


def bench_limits(entries: int = 1 << 14, runs: int = 5) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: CPU time of the whole loop over that of loops that do less, on dependent
    multiply-adds. Without set-up, one core."""
    from ppt_gpu.spec import load_gpu

    gpu = load_gpu(CHIP)
    program, machine = _case(gpu, DEPENDENT_FMA, entries, RESIDENT)
    ways: list[Callable[[], float]] = [partial(_whole, program, machine)]
    ways += [partial(_smallest, program, machine, step) for _, step in STEPS]
    whole, *smaller = _in_turns(ways, runs)
    inputs = {"entries": int(op_issues(program).sum()), "gpu": CHIP, "policy": "lrr"}
    figures: list[dict[str, Any]] = [
        {"name": f"sm loop, dependent FMA: time over that of {name}", "value": whole / taken, "unit": "x",
         "inputs": inputs} for (name, _), taken in zip(STEPS, smaller, strict=True)
    ]  # fmt: skip
    return figures


def _case(gpu: Gpu, body: tuple[Entry, ...], entries: int, blocks: int) -> tuple[Program, Machine]:
    """With all warps at the start."""
    program = loop_program(gpu, body, max(1, entries // len(body)), blocks, WARPS)
    machine = machine_of(program, gpu, gpu.sm.count, "lrr", 0.0, None)
    return program, dataclasses.replace(machine, ramp=0, warp_launch=0)


def _whole(program: Program, machine: Machine) -> float:
    return run_core(program, machine, RESIDENT, MAX_CYCLES, specialise=True, skip=False).wall


def _smallest(program: Program, machine: Machine, step: tuple[bool, bool, bool]) -> float:
    return run_smallest(program, machine, step)[1]


def _in_turns(ways: list[Callable[[], float]], runs: int) -> list[float]:
    """The median of each, after a run that compiles."""
    taken = [[way() for way in ways] for _ in range(1 + runs)][1:]
    return [statistics.median(times) for times in zip(*taken, strict=True)]
