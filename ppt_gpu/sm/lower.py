"""Lowering: a functional trace becomes a Program for one GPU.

The stages are `lower_ops` (PTX to machine operations), `scoreboard` (who waits for whom), `lower_access` (addresses
to transactions and bank passes) and `sharing` (what the L2 holds before).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import PptError
from ppt_gpu.exec.global_accesses import GlobalAccesses, global_accesses
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.workload import Launch
from ppt_gpu.machine.code import MachineKernel
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.camping import camping, in_order, joined, may_camp
from ppt_gpu.sm.coalesce import WARP
from ppt_gpu.sm.in_flight import by_others, first_moments
from ppt_gpu.sm.left_lines import LeftLines
from ppt_gpu.sm.lower_access import Accesses, Geometry, geometry, lower_accesses
from ppt_gpu.sm.lower_code import ANY, NOBODY, Code, lower_code
from ppt_gpu.sm.lower_hash import dense_ids
from ppt_gpu.sm.lower_match import Entries, match_accesses
from ppt_gpu.sm.lower_ops import pipe_order
from ppt_gpu.sm.lower_program import assemble
from ppt_gpu.sm.lower_shapes import GLOBAL
from ppt_gpu.sm.lower_tasks import lower_tasklist
from ppt_gpu.sm.moments import Course, waits_before
from ppt_gpu.sm.program import Program
from ppt_gpu.sm.same_line import Atomics, atomic_share
from ppt_gpu.sm.scoreboard import SLOTS, Schedule, schedule
from ppt_gpu.sm.sharing import Touched, Users, areas, copied_lines, sectors_used, sharers
from ppt_gpu.spec.gpu import Gpu

__all__ = ["lower_tasklist", "lower_trace", "pipe_order"]


def lower_trace(
    kernel: Kernel,
    trace: Trace,
    gpu: Gpu,
    *,
    launch: Launch,
    active_sms: int,
    neighbours: GlobalAccesses | None = None,
    neighbour_sm: NDArray[np.int64] | None = None,
    neighbour_stands_for: NDArray[np.float64] | None = None,
    left: LeftLines | None = None,
    alone: bool = True,
    resident: int = 1,
    own: GlobalAccesses | None = None,
) -> Program:
    """The Program of the trace's blocks on one SM of `gpu`.

    active_sms: SMs that run blocks at the same time. neighbours: what the blocks that a sample of the other SMs run
    meanwhile access; neighbour_sm [blocks of neighbours]: on which SM, by default the block number modulo active_sms;
    neighbour_stands_for [blocks of neighbours]: for how many SMs that SM stands, by default the same for all.
    left: the lines that earlier launches left in the L2; None: host copies came just before this launch. With `alone`,
    they are told from those that the launch pushes out before it comes to them: the SM that is simulated does not see
    what the others do; without, the blocks are the whole grid, which is simulated on all SMs.
    resident: blocks that an SM runs at a time: who comes when to a line that several ask for (`moments`), and slices of
    the L2 that get uneven shares (`camping`), which are looked for when the neighbours are all other SMs.
    own: what the trace's blocks access, as `neighbours` has it, where the trace is one of other code.
    Local memory: every warp has a frame of its own, so later blocks do not find those of earlier ones in the caches.

    Raises PptError when the trace does not belong to the kernel or launch, or the ISA lacks an operation.
    """
    per_block = -(-launch.threads_per_block // gpu.sm.warp_size)
    if trace.warps != per_block * len(trace.blocks):
        raise PptError(f"the trace has {trace.warps} warps, not {per_block} in each of {len(trace.blocks)} blocks")
    code = lower_code(kernel, trace, gpu, per_block if alone and not gpu.collectors.units else 0)
    shape = geometry(gpu)
    plan = schedule(code.static, trace.path_start, trace.path_pc, gpu.sm.issue_width, SLOTS)
    entries = match_accesses(trace, code.traced, code.memory_operations)
    variant, pattern, base = _variants(code, trace, entries)
    pattern, offsets, masks = _by_one_lane(code, entries.pc, pattern, trace.pattern_offset, trace.pattern_mask)
    found = lower_accesses(shape, code.variants, variant, pattern, base, offsets, masks)
    line, address = dense_ids(found.address)
    users, shared, uneven = Users.alone(len(address)), None, 1.0
    atomics = _atomics(code, variant, pattern, base, offsets, masks)[0]
    share = atomic_share(atomics, shape.line)
    if neighbours is not None and active_sms > 1:
        asked = _global_transactions(code, neighbours, shape)
        sm = neighbours.blocks % active_sms if neighbour_sm is None else np.asarray(neighbour_sm, np.int64)
        pc = _of_ptx(kernel, entries.pc)
        course = _course(code, plan, entries.start, pc, variant, trace, active_sms, resident)
        others = _touched(asked, neighbours, sm, neighbour_stands_for, active_sms, course)
        used, area = sectors_used(line, found.sectors, len(address)), areas(address, trace.ranges)
        touches = others.on(address)
        users = sharers(used, touches, active_sms, area)
        mine = own or global_accesses(kernel, trace)
        here = np.zeros(len(mine.blocks), np.int64)
        first = _touched(_global_transactions(code, mine, shape), mine, here, None, active_sms, course)
        shared = by_others(address, users, first_moments(first.on(address), len(address)), used, touches, area)
        if len(atomics.base):
            share = _share_of_all(code, neighbours, atomics, shape, others.stands_for, sm)
        if may_camp(gpu) and len(others.stands_for) == active_sms - 1:
            whole = in_order(asked, neighbours.start, sm, per_block, resident)
            one = in_order(found, entries.start[::per_block], np.zeros_like(trace.blocks), per_block, resident)
            uneven = camping(joined(whole, one), gpu, shape.sector)
    if left is None:
        copied = copied_lines(address, trace.ranges, gpu.l2.size, shape.line)
    elif alone:
        block = _first_blocks(line, found, entries, per_block, trace)
        copied = left.found(address, block * float(np.sum(1.0 / users.line)) / len(trace.blocks))
    else:
        copied = left.places(address) < len(left.address)
    ops = replace(code.ops, pc=_of_ptx(kernel, code.ops.pc))  # hot spots are told by the lines of the PTX
    program = assemble(
        ops,
        plan,
        shape,
        found,
        line=line,
        address=address,
        copied=copied,
        users=users,
        shared=shared,
        warp_path=trace.warp_path.astype(np.int32),
        warp_access=entries.start,
        warps_per_block=per_block,
        thread_instructions=trace.thread_instructions,
        l2_found=float(copied.mean()) if left is not None and len(copied) else 0.0,
        l2_dirty=0.0 if left is None else left.dirty,
        l2_camping=uneven,
        atomic_share=share,
    )
    if code.unheard:
        program = replace(program, unheard=code.unheard)
    events = code.events
    program = replace(program, op_copies=code.op_copies) if len(code.op_copies) else program
    if events is None:
        return program
    return replace(
        program, op_event=code.op_event, event_start=events.start, event_of=events.of, event_count=events.count
    )


def _first_blocks(
    line: NDArray[np.int32], found: Accesses, entries: Entries, per_block: int, trace: Trace
) -> NDArray[np.int64]:
    """[L] the number, in the grid, of the block that touches each line first; lines are numbered in that order."""
    first = np.flatnonzero(np.diff(np.maximum.accumulate(line), prepend=-1) > 0)
    access = np.searchsorted(found.start, first, side="right") - 1
    warp = np.searchsorted(entries.start, access, side="right") - 1
    return trace.blocks[warp // per_block].astype(np.int64)


def _variants(
    code: Code, trace: Trace, entries: Entries
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Of each memory entry: what kind of access it is, its pattern, its base address."""
    recorded = entries.access >= 0
    if len(trace.access_base) == 0:
        space = pattern = np.zeros(len(recorded), np.int32)
        base = np.zeros(len(recorded), np.int64)
    elif np.array_equal(entries.access, np.arange(len(trace.access_base))):  # each once: nothing to gather
        space = trace.access_space.astype(np.int32)
        pattern, base = trace.access_pattern, trace.access_base.astype(np.int64)
    else:
        space = trace.access_space[entries.access].astype(np.int32)
        pattern = trace.access_pattern[entries.access]
        base = trace.access_base[entries.access].astype(np.int64)
    return np.where(recorded, code.variant_of[entries.pc, space], -1).astype(np.int32), pattern, base


def _by_one_lane(
    code: Code,
    pc: NDArray[np.int32],
    pattern: NDArray[np.int32],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
    """Patterns of accesses (of instructions `pc`), and all patterns; atomics that one lane does have one lane left."""
    if not code.elected.any():
        return pattern, offsets, masks
    mode, mask = code.elected[pc], masks[pattern] if len(masks) else np.zeros(len(pattern), np.uint32)
    alone = (mode != NOBODY) & (mask != 0) & ((mode == ANY) | (mask == np.uint32(0xFFFFFFFF)))
    one = np.where(alone, len(masks), pattern).astype(np.int32)
    return one, np.concatenate((offsets, np.zeros((1, WARP), np.int64))), np.append(masks, np.uint32(1))


def _atomics(
    code: Code,
    variant: NDArray[np.int32],
    pattern: NDArray[np.int32],
    base: NDArray[np.int64],
    offsets: NDArray[np.int64],
    masks: NDArray[np.uint32],
) -> tuple[Atomics, NDArray[np.int64]]:
    """Atomics of global memory, and which they are of the accesses."""
    meets = np.append(code.variants.atomic & (code.variants.space == GLOBAL), False)  # the last: -1, nothing recorded
    chosen = np.flatnonzero(meets[variant]) if meets.any() else np.zeros(0, np.int64)
    return Atomics(pattern[chosen], base[chosen], offsets, masks), chosen


def _share_of_all(
    code: Code,
    neighbours: GlobalAccesses,
    own: Atomics,
    shape: Geometry,
    stands_for: NDArray[np.float64],
    sm_of_block: NDArray[np.int64],
) -> float:
    """`atomic_share` of this SM among all; stands_for: of the sampled SMs, by their number."""
    others, which = _atomics(code, _global_variants(code, neighbours), *_global_patterns(code, neighbours))
    sm = np.unique(sm_of_block, return_inverse=True)[1]
    return atomic_share(own, shape.line, others, stands_for[np.repeat(sm, np.diff(neighbours.start))[which]])


def touched_lines(
    kernel: Kernel, trace: Trace, gpu: Gpu, accesses: GlobalAccesses
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """(Line addresses of the transactions of `accesses`, in their order; whether each writes).

    trace: of some blocks of the launch.
    """
    code = lower_code(kernel, trace, gpu)
    found, variant = _global_transactions(code, accesses, geometry(gpu)), _global_variants(code, accesses)
    writes = ~code.variants.load[variant] | code.variants.atomic[variant]
    return found.address, np.repeat(writes, np.diff(found.start))


def _global_variants(code: Code, accesses: GlobalAccesses) -> NDArray[np.int32]:
    return np.where(code.memory_operations > 0, code.variant_of[:, GLOBAL], -1)[accesses.pc].astype(np.int32)


def _global_transactions(code: Code, accesses: GlobalAccesses, shape: Geometry) -> Accesses:
    variant = _global_variants(code, accesses)
    return lower_accesses(shape, code.variants, variant, *_global_patterns(code, accesses))


def _global_patterns(
    code: Code, accesses: GlobalAccesses
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Pattern and base address of each access, and offsets and masks of the patterns."""
    known = accesses.pattern_offset, accesses.pattern_mask
    pattern, offsets, masks = _by_one_lane(code, accesses.pc, accesses.pattern, *known)
    return pattern, accesses.base.astype(np.int64), offsets, masks


def _touched(
    found: Accesses,
    neighbours: GlobalAccesses,
    sm_of_block: NDArray[np.int64],
    stands_for: NDArray[np.float64] | None,
    active_sms: int,
    course: Course,
) -> Touched:
    """What the sampled SMs touch. Every warp of the grid has local memory of its own, so none of that is shared."""
    sms, first, dense = np.unique(sm_of_block, return_index=True, return_inverse=True)
    weight = np.full(len(sms), (active_sms - 1) / len(sms)) if stands_for is None else stands_for[first]
    sm_of_access = np.repeat(dense, np.diff(neighbours.start))
    sm = np.repeat(sm_of_access, np.diff(found.start)).astype(np.int32)
    moment = course.moments(neighbours.blocks // active_sms, neighbours.start, neighbours.pc)
    return Touched(found.address, found.sectors, sm, np.repeat(moment, np.diff(found.start)), weight)


def _of_ptx(kernel: Kernel, pc: NDArray[np.int32]) -> NDArray[np.int32]:
    """Instructions of the PTX from which those at `pc` were made."""
    return np.array(kernel.origin, np.int32)[pc] if isinstance(kernel, MachineKernel) else pc


def _course(
    code: Code,
    plan: Schedule,
    start: NDArray[np.int64],
    pc: NDArray[np.int32],
    variant: NDArray[np.int32],
    trace: Trace,
    active_sms: int,
    resident: int,
) -> Course:
    """How far the trace's blocks are at their accesses to global memory. start [W+1]: of the memory entries of its
    warps; pc [entries]: lines of the PTX."""
    every = waits_before(plan, code.ops).of_warps(trace.warp_path, trace.warps // len(trace.blocks))
    chosen = np.append(code.variants.space == GLOBAL, False)[variant]
    warps = np.add.reduceat(np.append(chosen, False), start[:-1]) * (np.diff(start) > 0)
    counts = warps.reshape(len(trace.blocks), -1).sum(axis=1)
    return Course.of(trace.blocks // active_sms, counts, pc[chosen], every[chosen], resident)
