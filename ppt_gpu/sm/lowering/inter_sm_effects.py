"""What other SMs do meanwhile, as this SM feels it: lines that they share, atomics at the same line, uneven L2 slices.

Samples of them stand for all; `sharing`, `in_flight`, `accesses.atomic_contention` and `camping` say how.

How much longer, or shorter, the L2 takes for sectors that many SMs ask for at the same moment (`moments`).

`l2.bandwidth` is what SMs get that are out of step. When all ask for the same lines in the same order, the requests on
their way are for few lines, which the slices of the L2 share unevenly: some slices idle while others have a queue. From
Hopper on a unit in front of the slices has reads of a sector that come together served by one. `l2.in_step` says how
many times `l2.bandwidth` they get then; where a share f of all blocks that run reads a sector at the same moment it is
1 + (in_step - 1) f, as measured on Hopper, where blocks read one of p parts: f = 1 / p (validation/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW, WINDOW_BYTES
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.accesses.access import Accesses, Geometry
from ppt_gpu.sm.accesses.atomic_contention import Atomics, atomic_share
from ppt_gpu.sm.accesses.scoreboard import Schedule
from ppt_gpu.sm.accesses.shapes import GLOBAL
from ppt_gpu.sm.accesses.sharing import BITS, Touched, Touches, Users, Waves, areas, sectors_used, sharers, while_kept
from ppt_gpu.sm.l2_sharing.access_epochs import Course, waits_before
from ppt_gpu.sm.l2_sharing.camping import beyond_l1, camping, few_lines, in_order, joined, may_camp
from ppt_gpu.sm.l2_sharing.dram_rows import opens_rows, row_openings
from ppt_gpu.sm.l2_sharing.in_flight import NEVER, ByOthers, by_others, first_moments
from ppt_gpu.sm.l2_sharing.l2_che_model import kept_lines
from ppt_gpu.sm.lowering.code import Code, of_ptx
from ppt_gpu.sm.lowering.global_memory import atomics_of, global_patterns, global_transactions, global_variants
from ppt_gpu.sm.lowering.match import Entries
from ppt_gpu.spec.gpu import Gpu


def time_in_step(
    loaded: NDArray[np.uint8], first: NDArray[np.int64], others: Touches, active_sms: int, resident: int, in_step: float
) -> float:
    """How many times as long as out of step the L2 takes for a sector that is read, in the mean.

    loaded [L]: masks of the sectors of each line that this SM loads; first [L, sectors of a line]: when it first comes
    to each; others: the touches of those lines by sampled SMs; resident: blocks that an SM runs at a time.
    """
    bits = first.shape[1]
    wanted = (loaded[:, None] >> np.arange(bits, dtype=np.uint8) & 1).astype(np.bool_) & (first < NEVER)
    if in_step == 1.0 or active_sms < 2 or not wanted.any():
        return 1.0
    sms = _sms_at_once(wanted, first, others) / (active_sms - 1)
    blocks = 1.0 - (1.0 - np.minimum(sms, 1.0)) ** (1.0 / resident)  # an SM asks when one of its blocks does
    return float((1.0 / (1.0 + (in_step - 1.0) * blocks[wanted])).mean())


def _sms_at_once(wanted: NDArray[np.bool_], first: NDArray[np.int64], others: Touches) -> NDArray[np.float64]:
    """[L, sectors of a line] how many other SMs ask for each wanted sector at the moment that this SM does."""
    found = np.zeros(first.shape)
    sampled = len(others.stands_for)
    for bit in range(first.shape[1]):
        meets = wanted[others.line, bit] & (first[others.line, bit] == others.moment)
        meets &= (others.sectors >> np.uint8(bit) & 1).astype(np.bool_)
        pairs = np.unique(others.line[meets].astype(np.int64) * sampled + others.sm[meets])
        found[:, bit] = np.bincount(pairs // max(sampled, 1), others.stands_for[pairs % max(sampled, 1)], len(first))
    return found


#: of blocks of the grid [B], how many the SM of each begins before it
TurnOf = Callable[[NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True)
class Own:
    """What the blocks of this SM do: M memory entries, T transactions, L lines."""

    kernel: Kernel
    trace: Trace
    code: Code
    plan: Schedule
    entries: Entries
    variant: NDArray[np.int32]  # [M]
    found: Accesses
    line: NDArray[np.int32]  # [T]
    address: NDArray[np.uint64]  # [L]
    atomics: Atomics
    resident: int  # blocks that run at a time


@dataclass(frozen=True)
class Meanwhile:
    """What that means for this SM."""

    users: Users
    shared: ByOthers | None  # None: nothing is known of others
    kept: NDArray[np.bool_] | None  # Program.line_kept
    atomic_share: float  # Program.atomic_share
    camping: float  # Program.l2_camping
    reads: float = 1.0  # Program.l2_reads
    dram_rows: float = 1.0  # Program.dram_rows


def nobody_else(own: Own, shape: Geometry) -> Meanwhile:
    """No other SM runs blocks, or none is known."""
    return Meanwhile(Users.alone(len(own.address)), None, None, atomic_share(own.atomics, shape.serving), 1.0)


def among_others(
    own: Own,
    gpu: Gpu,
    shape: Geometry,
    active_sms: int,
    accesses: GlobalAccesses,
    neighbours: GlobalAccesses,
    sm: NDArray[np.int64] | None,
    stands_for: NDArray[np.float64] | None,
    turn_of: TurnOf,
) -> Meanwhile:
    """accesses: of this SM's blocks; neighbours, and of its blocks sm, stands_for and turn_of: as `lower_trace` has
    them."""
    sm = neighbours.blocks % active_sms if sm is None else np.asarray(sm, np.int64)
    course = _course(own, turn_of)
    asked = global_transactions(own.code, neighbours, shape)
    others = _touched(asked, neighbours, sm, stands_for, active_sms, course, turn_of)
    here = np.zeros(len(accesses.blocks), np.int64)
    bases = global_transactions(own.code, accesses, shape)
    mine = _touched(bases, accesses, here, None, active_sms, course, turn_of)
    waves = Waves(course.waves, course.of_a_wave, active_sms)
    users, shared, kept, reads = _sharing(own, waves, mine, others, gpu.l2.size / shape.line, gpu.l2.in_step)
    uneven = few_lines(own.address, _asked_of_l2(own), users.line, gpu, shape.line, shape.sector, active_sms)
    if may_camp(gpu) and len(others.stands_for) == active_sms - 1:
        per_block = own.trace.warps // len(own.trace.blocks)
        loads = _loads(own.code, global_variants(own.code, neighbours))
        whole = in_order(asked, loads, neighbours.start, sm, per_block, own.resident)
        this, loads = np.zeros_like(own.trace.blocks), _loads(own.code, own.variant)
        one = in_order(_but_local(own.found), loads, own.entries.start[::per_block], this, per_block, own.resident)
        uneven = max(uneven, camping(beyond_l1(joined(whole, one), gpu, shape.line, shape.sector), gpu, shape.sector))
    opened = 1.0
    if opens_rows(gpu):
        by_turn = (
            _in_turns(mine, bases, accesses, course, turn_of),
            _in_turns(others, asked, neighbours, course, turn_of),
        )
        load = np.repeat(_loads(own.code, global_variants(own.code, accesses)), np.diff(bases.start))
        opened = row_openings(by_turn[0], load, by_turn[1], own.address, users, gpu, shape.sector)
    share = _share_of_all(own, neighbours, shape, others.stands_for, sm)
    return Meanwhile(users, shared, kept, share, uneven, reads, opened)


def _but_local(found: Accesses) -> Accesses:
    """Without the sectors of local memory: what other SMs ask of theirs is not known, and lies elsewhere."""
    local = (found.address >= LOCAL_WINDOW) & (found.address < LOCAL_WINDOW + WINDOW_BYTES)
    return replace(found, sectors=np.where(local, 0, found.sectors).astype(np.uint8)) if local.any() else found


def _sharing(
    own: Own, waves: Waves, mine: Touched, others: Touched, capacity: float, in_step: float
) -> tuple[Users, ByOthers, NDArray[np.bool_], float]:
    """Who uses the lines of this SM, which of them others fetch, and keep, and Program.l2_reads. mine: all that this SM
    touches."""
    used, area = sectors_used(own.line, own.found.sectors, len(own.address)), areas(own.address, own.trace.ranges)
    here, elsewhere = mine.on(own.address), others.on(own.address)
    first = first_moments(here, len(own.address))
    touches = while_kept(used, elsewhere, first.min(axis=1), waves, capacity, area)
    users = sharers(used, touches, waves.sms, area)
    kept = kept_lines(own.address, users, here, elsewhere, waves, capacity)
    reads = time_in_step(_loaded(own), first, elsewhere, waves.sms, own.resident, in_step)
    return users, by_others(own.address, users, first, used, touches, area), kept, reads


def _asked_of_l2(own: Own) -> NDArray[np.float64]:
    """[L] the sectors of each line that this SM asks the L2 for: every store and atomic, of loads each sector once."""
    load = _load(own)
    return BITS[_loaded(own)] + np.bincount(own.line[~load], BITS[own.found.sectors[~load]], len(own.address))


def _loaded(own: Own) -> NDArray[np.uint8]:
    """[L] the sectors of each line that this SM loads."""
    load = _load(own)
    return sectors_used(own.line[load], own.found.sectors[load], len(own.address))


def _load(own: Own) -> NDArray[np.bool_]:
    """[T] which transactions only read."""
    return np.repeat(_loads(own.code, own.variant), np.diff(own.found.start))


def _loads(code: Code, variant: NDArray[np.int32]) -> NDArray[np.bool_]:
    """[M] which of the accesses of these kinds only read; what nothing was recorded for counts as one."""
    return np.append(code.variants.load & ~code.variants.atomic, True)[variant]


def _share_of_all(
    own: Own,
    neighbours: GlobalAccesses,
    shape: Geometry,
    stands_for: NDArray[np.float64],
    sm_of_block: NDArray[np.int64],
) -> float:
    """`atomic_share` of this SM among all; stands_for: of the sampled SMs, by their number."""
    if not len(own.atomics.base):
        return atomic_share(own.atomics, shape.serving)
    variant = global_variants(own.code, neighbours)
    others, which = atomics_of(own.code, variant, *global_patterns(own.code, neighbours))
    sm = np.unique(sm_of_block, return_inverse=True)[1]
    return atomic_share(own.atomics, shape.serving, others, stands_for[np.repeat(sm, np.diff(neighbours.start))[which]])


def _touched(
    found: Accesses,
    accesses: GlobalAccesses,
    sm_of_block: NDArray[np.int64],
    stands_for: NDArray[np.float64] | None,
    active_sms: int,
    course: Course,
    turn_of: TurnOf,
) -> Touched:
    """What SMs touch, with their transactions. Every warp has local memory of its own, so none of that is shared."""
    sms, first, dense = np.unique(sm_of_block, return_index=True, return_inverse=True)
    weight = np.full(len(sms), (active_sms - 1) / len(sms)) if stands_for is None else stands_for[first]
    sm_of_access = np.repeat(dense, np.diff(accesses.start))
    sm = np.repeat(sm_of_access, np.diff(found.start)).astype(np.int32)
    moment = course.moments(turn_of(accesses.blocks), accesses.start, accesses.pc)
    return Touched(found.address, found.sectors, sm, np.repeat(moment, np.diff(found.start)), weight)


def _in_turns(touched: Touched, found: Accesses, accesses: GlobalAccesses, course: Course, turn_of: TurnOf) -> Touched:
    """`touched`, with moments of their own for each turn of blocks, as those of a wave begin one after another."""
    turn = np.repeat(np.repeat(turn_of(accesses.blocks), np.diff(accesses.start)), np.diff(found.start))
    return replace(touched, moment=touched.moment + (turn - turn // course.resident) * course.of_a_wave)


def _course(own: Own, turn_of: TurnOf) -> Course:
    """How far the blocks of this SM are at their accesses to global memory."""
    trace, start = own.trace, own.entries.start
    every = waits_before(own.plan, own.code.ops).of_warps(trace.warp_path, trace.warps // len(trace.blocks))
    chosen = np.append(own.code.variants.space == GLOBAL, False)[own.variant]
    warps = np.add.reduceat(np.append(chosen, False), start[:-1]) * (np.diff(start) > 0)
    counts = warps.reshape(len(trace.blocks), -1).sum(axis=1)
    turns = turn_of(trace.blocks)
    return Course.of(turns, counts, of_ptx(own.kernel, own.entries.pc[chosen]), every[chosen], own.resident)
