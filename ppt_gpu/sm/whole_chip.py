"""Run a program on all SMs of a GPU: check the input, choose the loop, name the result."""

from __future__ import annotations

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm import reference as reference_loops
from ppt_gpu.sm.chip.machine import Chip, checked_window, chip_of, with_left
from ppt_gpu.sm.chip.memory_replay import RecordedChip, chip_run_name, recorded_chip, run_chip_again
from ppt_gpu.sm.chip.record import room_for
from ppt_gpu.sm.loop.raw import Raw
from ppt_gpu.sm.one_sm import MAX_CYCLES, Runs, check, name_result
from ppt_gpu.sm.program.highest_first import highest_first
from ppt_gpu.sm.program.program import CODE_COLD, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.run_chip import run_chip
from ppt_gpu.spec.gpu import Gpu


def simulate_chip(
    program: Program,
    gpu: Gpu,
    *,
    resident_blocks: int,
    policy: str | None = None,
    max_cycles: int = MAX_CYCLES,
    l1_bytes: int | None = None,
    code_at: int = CODE_COLD,
    constants_at: int = CODE_COLD,
    window: int | None = None,
    reference: bool = False,
    runs: Runs[RecordedChip] | None = None,
) -> SmResult:
    """All SMs of `gpu` run the blocks of `program`, of which each holds `resident_blocks`; counts of all SMs together.

    See sm/README.md, "The whole chip". `window`: cycles of a window, by default as long as may be. It does not change
    the result, but with `interconnect.port`; the number of threads never does. `runs`: recorded runs of this program,
    to use and to add to; the result is the same. The rest as for `simulate`. PptError when program and GPU do not fit
    together or the window is too long, BudgetError after `max_cycles` cycles.
    """
    program = with_left(program)
    chip = chip_of(
        program, gpu, policy=policy, l1_bytes=l1_bytes, code_at=code_at, constants_at=constants_at
    )  # fmt: skip
    check(program, chip.sm, resident_blocks)
    if gpu.memory.highest_first:
        program = highest_first(program)
    length = checked_window(window, chip)
    if reference:
        raw = reference_loops.run_chip_reference(program, chip, resident_blocks, max_cycles, length)
    else:
        raw = _fast_chip(program, chip, resident_blocks, max_cycles, length, runs)
    return name_result(program, chip.sm, raw, max_cycles)


def _fast_chip(
    program: Program, chip: Chip, resident: int, max_cycles: int, window: int, runs: Runs[RecordedChip] | None
) -> Raw:
    """By the compiled loop, or by the answers from below its SMs to a recorded run."""
    if chip.sm.collectors and len(program.event_start):
        raise PptError("programs with events are simulated without collector units")
    recorded = runs is not None and not chip.sm.collectors and not chip.crossbar
    room = room_for(program) if recorded else 0
    if runs is None or not room:
        return run_chip(program, chip, resident, max_cycles, window)
    name = chip_run_name(chip, resident, window)
    known = runs.get(name)
    raw = run_chip_again(program, chip, known, window) if known is not None else None
    if raw is not None and raw.cycles <= max_cycles:
        return raw
    raw = run_chip(program, chip, resident, max_cycles, window, room)
    found = recorded_chip(raw)
    if found is not None:
        runs.put(name, found)
    return raw
