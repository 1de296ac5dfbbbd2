"""Lowering of task lists: synthetic addresses for strides, given cache outcomes for transaction counts.

A task list may also give the cache level of a transaction, by hit rates or a reuse distance, instead of its address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError
from ppt_gpu.common.hash_ids import dense_ids
from ppt_gpu.sm.accesses.access import Accesses, Geometry, Variants, geometry, lower_accesses
from ppt_gpu.sm.accesses.atomic_contention import Atomics, atomic_share
from ppt_gpu.sm.accesses.coalesce import LINE
from ppt_gpu.sm.accesses.scoreboard import SLOTS, StaticCode, schedule
from ppt_gpu.sm.accesses.shapes import GLOBAL, SHARED
from ppt_gpu.sm.accesses.sharing import Touched, Users, Waves, areas, sectors_used, sharers, while_kept
from ppt_gpu.sm.l2_sharing.access_epochs import Course, waits_before
from ppt_gpu.sm.l2_sharing.in_flight import by_others, first_moments
from ppt_gpu.sm.l2_sharing.l2_residency import Uses, found_left
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.sm.l2_sharing.partial_sectors import written_in_part
from ppt_gpu.sm.lowering.program import assemble
from ppt_gpu.sm.program.ops import OpTable, build_ops
from ppt_gpu.sm.program.program import FORCED_DRAM, FORCED_L1, FORCED_L2, Program
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList, block_shifts, buffer_bases
from ppt_gpu.tasklist.model import Task, Transactions
from ppt_gpu.workload.workload import Range


def forced_transactions(
    flat: FlatTaskList,
    gpu: Gpu,
    shape: Geometry,
    task: NDArray[np.int32],
    found: Accesses,
    line: NDArray[np.int32],
    active_sms: int,
) -> tuple[NDArray[np.int32], Accesses]:
    """Add the given transactions to those found from addresses.

    task [M]: static task of each access, all warps; line [T]: line ids of `found`. Returns (tx_line, accesses).
    """
    given = {
        i: t.memory.pattern for i, t in enumerate(flat.tasks) if t.memory and isinstance(t.memory.pattern, Transactions)
    }
    if not given:
        return line, found
    extra = np.zeros(len(flat.tasks), np.int64)
    cycles = found.cycles.copy()
    for i, pattern in given.items():
        if flat.space[i] != SHARED:
            extra[i] = pattern.count
        passes = pattern.count if flat.space[i] == SHARED else int(np.ceil(pattern.count / shape.per_cycle))
        cycles[task == i] = max(1, passes)
    count = np.diff(found.start) + extra[task]
    start = np.zeros(len(task) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    own = np.repeat(extra[task] == 0, count)  # transactions that come from addresses
    tx_line, sectors = np.empty(start[-1], np.int32), np.empty(start[-1], np.uint8)
    tx_line[own], sectors[own] = line, found.sectors
    of_task = np.repeat(task, count)
    for i, pattern in given.items():
        at = np.flatnonzero((of_task == i) & ~own)
        tx_line[at] = levels(pattern, len(at), *_capacities(gpu, shape, active_sms))
        sectors[at] = _sectors(flat.tasks[i], pattern, shape)
    return tx_line, replace(found, start=start, cycles=cycles, sectors=sectors)


def levels(pattern: Transactions, count: int, l1_lines: int, l2_lines: int) -> NDArray[np.int32]:
    """[count] FORCED_*: the level that each transaction hits.

    With rates, the first j transactions have floor(j*l1) hits in the L1, and the first j misses floor(j*l2) hits in
    the L2, for every j (error diffusion).
    """
    if pattern.reuse is not None:
        near = FORCED_L2 if pattern.reuse < l2_lines else FORCED_DRAM
        return np.full(count, FORCED_L1 if pattern.reuse < l1_lines else near, np.int32)
    in_l1 = _diffuse(count, pattern.l1)
    level = np.full(count, FORCED_L1, np.int32)
    missed = np.flatnonzero(~in_l1)
    level[missed] = np.where(_diffuse(len(missed), pattern.l2), FORCED_L2, FORCED_DRAM)
    return level


def _diffuse(count: int, rate: float) -> NDArray[np.bool_]:
    # the small term keeps 3 * (1/3) = 1 from becoming 0.999...
    return np.diff(np.floor(np.arange(count + 1) * rate + 1e-9)) > 0


def _capacities(gpu: Gpu, shape: Geometry, active_sms: int) -> tuple[int, int]:
    """Lines that the L1, and this SM's share of the L2, hold."""
    return gpu.l1.size // shape.line if shape.l1_global else 0, gpu.l2.size // active_sms // shape.line


def _sectors(task: Task, pattern: Transactions, shape: Geometry) -> int:
    """Sector mask of each transaction: an equal share of the bytes; loads by the "line" rule fetch whole lines."""
    per_line = shape.line // shape.sector
    if shape.rule == LINE and task.op.startswith("load") and shape.l1_global:
        return (1 << per_line) - 1
    share = (task.memory.bytes if task.memory else 0) * task.active / pattern.count
    return (1 << min(per_line, max(1, int(np.ceil(share / shape.sector))))) - 1


#: Memory accesses, over all warps, that are lowered without being asked for more (about 60 B each).
MAX_ACCESSES = 1 << 27


def lower_tasklist(
    flat: FlatTaskList,
    gpu: Gpu,
    *,
    warps_per_block: int,
    blocks: int | Sequence[int],
    active_sms: int,
    grid: Sequence[int] = (),
    neighbours: Sequence[int] = (),
    neighbour_sm: Sequence[int] = (),
    neighbour_stands_for: Sequence[float] = (),
    max_accesses: int = MAX_ACCESSES,
    resident: int = 1,
) -> Program:
    """The Program of the blocks of a task list that one SM of `gpu` runs.

    blocks: their ids in launch order, or how many; then SM 0 runs block 0, active_sms, 2*active_sms, ...
    grid: its extents, x first; by default those that the list states.
    neighbours: ids of the blocks that a sample of the other SMs run meanwhile, neighbour_sm the SM of each, and
    neighbour_stands_for for how many SMs that stands: what
    they fetch too is shared. resident: blocks that an SM runs at a time.
    A transaction of a task with a given count moves an equal share of the access's bytes, in whole sectors; whether
    it hits follows the given rates by error diffusion over the executions of the task, warp after warp, or the
    reuse distance: a hit in the L1, or this SM's share of the L2, if that holds more lines.

    Raises PptError when the ISA lacks an operation, BudgetError for more than `max_accesses` memory accesses.
    """
    ids = np.arange(blocks) * active_sms if isinstance(blocks, int) else np.asarray(blocks, np.int64)
    warps = warps_per_block * len(ids)
    ops = build_ops(
        [(task.op,) for task in flat.tasks],
        gpu,
        numbers=[t.number for t in flat.tasks],
        unit="task",
    )
    kept = ops.recorded[flat.access_task]  # constant accesses have no memory entry
    task = flat.access_task[kept]
    if warps * len(task) > max_accesses:
        raise BudgetError(
            f"{warps} warps of '{flat.tasklist.name}' make {warps * len(task):,} memory accesses; "
            f"the budget is {max_accesses:,}",
            hint="shorten the loops, simulate fewer blocks, or raise max_accesses",
        )
    plan = schedule(
        _static(flat, ops, bool(gpu.collectors.units)),
        np.array([0, len(flat.path)]),
        flat.path,
        gpu.sm.issue_width,
        SLOTS,
    )
    shape = geometry(gpu, active_sms)
    bases = _bases(flat, task, kept, warps_per_block, ids, grid)
    strides = _strides(flat, task, bases)
    found = lower_accesses(shape, *strides)
    address_line, address = dense_ids(found.address)
    users, shared = Users.alone(len(address)), None
    atomics = _atomics(flat, task, bases)[0]
    share = atomic_share(atomics, shape.serving)
    if len(neighbours) and active_sms > 1:
        depth = waits_before(plan, ops).of_warps(np.zeros(1, np.int32), 1)[flat.space[task] == GLOBAL]
        counts, number = np.full(len(ids), warps_per_block * len(depth)), np.arange(len(depth), dtype=np.int32)
        course = Course.of(ids // active_sms, counts, np.tile(number, warps), np.tile(depth, warps), resident)
        places = flat, shape, warps_per_block, grid, active_sms, course
        others, theirs, weight = _touched(*places, neighbours, neighbour_sm, neighbour_stands_for)
        used, area = sectors_used(address_line, found.sectors, len(address)), areas(address, _ranges(flat))
        mine = _touched(*places, ids, np.zeros_like(ids), np.ones(len(ids)))[0]
        first = first_moments(mine.on(address), len(address))
        waves = Waves(course.waves, course.of_a_wave, active_sms)
        touches = while_kept(used, others.on(address), first.min(axis=1), waves, gpu.l2.size / shape.line, area)
        users = sharers(used, touches, active_sms, area)
        shared = by_others(address, users, first, used, touches, area)
        share = atomic_share(atomics, shape.serving, theirs, weight)
    start = np.arange(warps + 1, dtype=np.int64) * len(task)
    uses = Uses(address_line, found.start, np.tile(_writes(flat)[task], warps), start, ids, resident)
    left = LeftLines.copied(_ranges(flat), gpu.l2.size // shape.line, shape.line)
    extents = tuple(grid) or flat.tasklist.grid or (int(ids.max(initial=0)) + 1,)
    whole = int(np.prod(extents))
    copied, *_ = found_left(left, uses, address, users.line, _ranges(flat), active_sms, whole, shape.line)
    line, found = forced_transactions(flat, gpu, shape, np.tile(task, warps), found, address_line, active_sms)
    return assemble(
        ops,
        plan,
        shape,
        found,
        line=line,
        address=address,
        copied=copied,
        users=users,
        shared=shared,
        warp_path=np.zeros(warps, np.int32),
        warp_access=start,
        warps_per_block=warps_per_block,
        thread_instructions=warps * int(np.array([t.active for t in flat.tasks], np.int64)[flat.path].sum()),
        l2_in_part=written_in_part(shape.sector, *strides),
        atomic_share=share,
    )


def _static(flat: FlatTaskList, ops: OpTable, held: bool) -> StaticCode:
    """A task is a register that it alone writes: a dependency means its most recent execution. `held`: between issue
    and start instructions may be held up."""
    count = len(flat.tasks)
    return StaticCode(
        registers=count,
        read_start=flat.dep_start.astype(np.int32),
        reads=flat.dep_task,
        write_start=np.arange(count + 1, dtype=np.int32),
        writes=np.arange(count, dtype=np.int32),
        guarded=np.zeros(count, np.bool_),
        chain_start=ops.start,
        op_fixed=np.full_like(ops.fixed, -1) if held else ops.fixed,
        op_value=ops.value,
        op_fence=ops.fence,
        checks_writes=held,
    )


def _bases(
    flat: FlatTaskList,
    task: NDArray[np.int32],
    kept: NDArray[np.bool_],
    warps_per_block: int,
    ids: NDArray[np.int64],
    grid: Sequence[int],
) -> NDArray[np.int64]:
    """[warps x accesses] the address of lane 0, warps in block order."""
    warp = np.tile(np.arange(warps_per_block), len(ids))[:, None] * flat.warp_step[task]
    block = np.repeat(block_shifts(flat, ids, grid), warps_per_block, axis=0)[:, task]
    return np.asarray(flat.access_base[kept] + warp + block).reshape(-1)


def _touched(
    flat: FlatTaskList,
    shape: Geometry,
    warps_per_block: int,
    grid: Sequence[int],
    active_sms: int,
    course: Course,
    blocks: Sequence[int] | NDArray[np.int64],
    sm_of_block: Sequence[int] | NDArray[np.int64],
    stands_for: Sequence[float] | NDArray[np.float64],
) -> tuple[Touched, Atomics, NDArray[np.float64]]:
    """What the sampled SMs touch of global memory: shared and local memory belong to a block or warp alone.

    And their atomics, with how many SMs the SM of each stands for.
    """
    _, first, dense = np.unique(np.asarray(sm_of_block), return_index=True, return_inverse=True)
    order = np.argsort(dense, kind="stable")
    ids = np.asarray(blocks, np.int64)[order]
    kept = flat.space[flat.access_task] == GLOBAL
    task = flat.access_task[kept]
    bases = _bases(flat, task, kept, warps_per_block, ids, grid)
    found = lower_accesses(shape, *_strides(flat, task, bases))
    sm_of_access = np.repeat(dense[order], warps_per_block * len(task))
    sm = np.repeat(sm_of_access, np.diff(found.start)).astype(np.int32)
    weight = np.asarray(stands_for, np.float64)[first]
    number = np.tile(np.arange(len(task), dtype=np.int32), len(ids) * warps_per_block)
    moment = course.moments(ids // active_sms, np.arange(len(ids) + 1) * (warps_per_block * len(task)), number)
    moment = np.repeat(moment, np.diff(found.start))
    atomics, which = _atomics(flat, task, bases)
    return Touched(found.address, found.sectors, sm, moment, weight), atomics, weight[sm_of_access[which]]


def _atomics(
    flat: FlatTaskList, task: NDArray[np.int32], bases: NDArray[np.int64]
) -> tuple[Atomics, NDArray[np.int64]]:
    """Atomics of global memory with addresses, and which they are of the accesses."""
    meets = (flat.space == GLOBAL) & ~_given(flat)
    meets &= np.array([t.op.startswith("atomic.") for t in flat.tasks], np.bool_)
    every = np.tile(task, len(bases) // max(1, len(task)))
    chosen = np.flatnonzero(meets[every])
    return Atomics(every[chosen], bases[chosen], flat.pattern_offset, flat.pattern_mask), chosen


def _writes(flat: FlatTaskList) -> NDArray[np.bool_]:
    """[tasks] stores and atomics."""
    return np.array([t.op.partition(".")[0] in ("store", "atomic") for t in flat.tasks], np.bool_)


def _given(flat: FlatTaskList) -> NDArray[np.bool_]:
    """[tasks] those that say how many transactions they make, and not where."""
    return np.array([bool(t.memory and isinstance(t.memory.pattern, Transactions)) for t in flat.tasks], np.bool_)


def _strides(
    flat: FlatTaskList, task: NDArray[np.int32], bases: NDArray[np.int64]
) -> tuple[Variants, NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """The accesses with synthetic addresses, as `lower_accesses` takes them; the others move nothing here."""
    access = [t.op.partition(".")[0] for t in flat.tasks]
    variants = Variants(
        space=np.where(flat.space < 0, GLOBAL, flat.space).astype(np.int8),
        size=np.array([t.memory.bytes if t.memory else 1 for t in flat.tasks], np.int32),
        load=np.array([a == "load" for a in access], np.bool_),
        atomic=np.array([a == "atomic" for a in access], np.bool_),
        onward=np.zeros(len(access), np.int8),
    )
    variant = np.tile(np.where(_given(flat)[task], -1, task).astype(np.int32), len(bases) // max(1, len(task)))
    pattern = np.tile(task, len(bases) // max(1, len(task)))
    return variants, variant, pattern, bases, flat.pattern_offset, flat.pattern_mask


def _ranges(flat: FlatTaskList) -> tuple[Range, ...]:
    start = buffer_bases(flat.tasklist)
    return tuple(Range(b.name, start[b.name], b.bytes, b.copied) for b in flat.tasklist.buffers)
