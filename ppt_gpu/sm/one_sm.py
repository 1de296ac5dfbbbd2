"""Run a program on one SM: check the input, choose the loop."""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.sm import collectors
from ppt_gpu.sm import reference as reference_loops
from ppt_gpu.sm.loop.loop import run_core
from ppt_gpu.sm.program.highest_first import highest_first
from ppt_gpu.sm.program.machine import Machine, machine_of
from ppt_gpu.sm.program.program import (
    CODE_COLD,
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    Program,
    events_of,
    looked_up_by,
)
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu

MAX_CYCLES = 1 << 36
#: a scheduler keeps its warps in one machine word
MAX_WARPS_PER_SCHEDULER = 64


def simulate(
    program: Program,
    gpu: Gpu,
    *,
    resident_blocks: int,
    active_sms: int,
    policy: str | None = None,
    l2_dirty: float = 0.0,
    max_cycles: int = MAX_CYCLES,
    l1_bytes: int | None = None,
    code_at: int = CODE_COLD,
    constants_at: int = CODE_COLD,
    out_of_step: bool = False,
    share: float | None = None,
    reference: bool = False,
    skip: bool | None = None,
    approximate: bool = False,
) -> SmResult:
    """One SM runs all blocks of `program` in order, at most `resident_blocks` at a time. See sm/README.md.

    `active_sms` SMs share L2 and DRAM; `share` of both is this one's, by default as much as others have. `policy`:
    instead of gpu.sm.policy. `l2_dirty`: how many sectors are written back for each one that comes to so far unused
    ways of the L2. `l1_bytes`: instead of gpu.l1.size, B. `code_at`, `constants_at`: CODE_*, where the launch finds its
    instructions and its constants. `out_of_step`: the SM starts as it is found later in a long launch, when SMs do not
    ask DRAM all at once any more. `reference`: the plain Python loop. `skip`: whether what only repeats is simulated
    once, by default in long runs; the result is the same. `approximate`: skip what goes much alike too; the
    result is near, and says how many of its cycles that were and of how many memory operations hits are estimated.
    PptError when program and GPU do not fit together, BudgetError after `max_cycles` cycles.
    """
    machine = machine_of(
        program, gpu, active_sms, policy, l2_dirty, l1_bytes, code_at, constants_at, out_of_step, share
    )
    check(program, machine, resident_blocks)
    if gpu.memory.highest_first:
        program = highest_first(program)
    if reference:
        return reference_loops.run_reference(program, machine, resident_blocks, max_cycles)
    if machine.collectors:
        if len(program.event_start):
            raise PptError("programs with events are simulated without collector units")
        return collectors.run_staged(program, machine, resident_blocks, max_cycles)
    return run_core(program, machine, resident_blocks, max_cycles, skip=skip, approximate=approximate)


def check(program: Program, machine: Machine, resident_blocks: int) -> None:
    """PptError unless the program's indices lie inside its arrays and its warps fit the SM."""
    if resident_blocks < 1:
        raise PptError(f"{resident_blocks} resident blocks; at least 1 must fit on the SM")
    per_block = int(np.diff(program.block_warp).max(initial=0))
    slots = -(-per_block * resident_blocks // machine.schedulers)
    if slots > MAX_WARPS_PER_SCHEDULER:
        raise PptError(
            f"{per_block * resident_blocks} resident warps on {machine.schedulers} schedulers",
            hint=f"the simulation holds up to {MAX_WARPS_PER_SCHEDULER} warps per scheduler",
        )
    lines = len(program.line_address)
    limits = (
        ("op_pipe", program.op_pipe, 0, len(machine.pipe_units)),
        ("entry_op", program.entry_op, 0, len(program.op_name)),
        ("entry_slot", program.entry_slot, -1, 64),
        ("warp_path", program.warp_path, 0, len(program.path_start) - 1),
        ("tx_line", program.tx_line, -3, lines),
        ("op_latency", program.op_latency, 0, 1 << 30),
        ("op_ii", program.op_ii, 0, 1 << 30),
        ("access_cycles", program.access_cycles, 0, 1 << 20),
        ("access_atomic", program.access_atomic, 0, 1 << 7),
    )
    for name, values, low, high in limits:
        if len(values) and not (low <= int(values.min()) and int(values.max()) < high):
            raise PptError(f"program: {name} leaves its range [{low}, {high})")
    _check_accesses(program)
    _check_events(program)
    _check_constants(program)


def _check_accesses(program: Program) -> None:
    """Every warp has as many memory entries as its path has operations of a queued kind."""
    queued = np.isin(program.op_kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED))[program.entry_op]
    before = np.concatenate(([0], np.cumsum(queued)))
    per_path = before[program.path_start[1:]] - before[program.path_start[:-1]]
    wrong = np.flatnonzero(np.diff(program.warp_access) != per_path[program.warp_path])
    if len(wrong):
        warp = int(wrong[0])
        found = int(program.warp_access[warp + 1] - program.warp_access[warp])
        expected = int(per_path[program.warp_path[warp]])
        raise PptError(f"program: warp {warp} has {found} memory entries, its path has {expected} memory operations")


def _check_events(program: Program) -> None:
    """Every warp has as many entries of `event_of` as its path has operations with events."""
    if not len(program.event_start):
        return
    bits = events_of(program)
    before = np.concatenate(([0], np.cumsum((bits != 0)[program.entry_op])))
    per_path = before[program.path_start[1:]] - before[program.path_start[:-1]]
    if not np.array_equal(np.diff(program.event_start), per_path[program.warp_path]):
        raise PptError("program: event_start does not match the operations with events")
    if (bits[~np.isin(program.op_kind, (KIND_BARRIER, KIND_LOAD))] != 0).any():
        raise PptError("program: only barriers and loads have events")
    for name, values, low, high in (
        ("event_start", program.event_start, 0, len(program.event_of) + 1),
        ("event_of", program.event_of, -1, len(program.event_count)),
    ):
        if len(values) and not (low <= int(values.min()) and int(values.max()) < high):
            raise PptError(f"program: {name} leaves its range [{low}, {high})")


def _check_constants(program: Program) -> None:
    """Every warp has as many reads in `constant_line` as its path has operations that are looked up."""
    if not len(program.constant_start):
        return
    looked_up = looked_up_by(program)
    before = np.concatenate(([0], np.cumsum(looked_up[program.entry_op])))
    per_path = before[program.path_start[1:]] - before[program.path_start[:-1]]
    reads = np.concatenate(([0], np.cumsum(program.constant_last)))[program.constant_start]
    ends = program.constant_start[np.diff(program.constant_start, prepend=0) > 0] - 1
    if not (np.array_equal(np.diff(reads), per_path[program.warp_path]) and program.constant_last[ends].all()):
        raise PptError("program: constant_line does not match the operations that are looked up")
    if len(program.constant_line) and int(program.constant_line.min()) < 0:
        raise PptError("program: constant_line has negative lines")
    if (program.op_kind[looked_up] != KIND_CONSTANT).any():
        raise PptError("program: only constants are looked up")
