"""Level "steady" for kernels whose blocks differ: a mix of blocks simulated on one SM, the whole grid dispatched.

The survey of the grid (ppt_gpu.scale.blocks.survey) says how much each block does and of which kind it is. A mix of
blocks that represents the grid runs on one SM; from it comes the length of a block of each kind, its residence on a
full SM (ppt_gpu.scale.levels.irregular), in proportion to its warp instructions within the kind. Then all blocks of the
grid, each as long as its kind and its work say, are dispatched in order to the SMs (ppt_gpu.scale.levels.dispatch): so
a launch whose last blocks are the longest ends late, as it does on the chip. Lengths are those without waits for
bandwidth, which all SMs share: how long these are depends on what runs at the same time
(ppt_gpu.scale.levels.contention).

How fast an SM serves each of n resident blocks, and how long simulated blocks are by that measure.

f(n) is the speed of a block among n, relative to one among R, a full SM: f(R) = 1. It is measured: the same blocks
are simulated with 1, 2, 4, ... R slots, and f(n) = mean residence among R / mean residence among n, with residence
linear in n in between. A block's length is the service that it got, integral of f(n(t)) dt over its residence: its
residence on a full SM. Serving blocks of those lengths again (ppt_gpu.scale.levels.dispatch) gives the simulated times
back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.threads import both, ordered
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.scale.blocks.distribution import GridSpread, SmPlan, plan
from ppt_gpu.scale.blocks.representative_blocks import mixed_blocks
from ppt_gpu.scale.blocks.strata import stand_ins, stratified
from ppt_gpu.scale.blocks.survey import Survey
from ppt_gpu.scale.levels.contention import course, unlimited
from ppt_gpu.scale.levels.dispatch import Dispatch, Starts, dispatch, turn
from ppt_gpu.scale.levels.steady import AFFORDABLE, spread_assumptions
from ppt_gpu.scale.levels.tail import memory_load
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu


def speeds(simulate: Callable[[int], SmResult], resident: int) -> NDArray[np.float64]:
    """[R] f(1) ... f(R), never rising. `simulate(n)` runs the same blocks, about R of them, in n slots; in threads."""
    if resident == 1:
        return np.ones(1)
    counts = sorted({*(1 << k for k in range(resident.bit_length()) if 1 << k < resident), resident})
    results = ordered(simulate, counts)
    residence = np.array([float(np.mean(result.block_end - result.block_start)) for result in results])
    residence = np.maximum.accumulate(np.maximum(residence, 1.0))
    at = np.arange(1, resident + 1)
    return residence[-1] / np.interp(at, counts, residence)


def lengths(result: SmResult, speed: NDArray[np.float64]) -> NDArray[np.float64]:
    """[B] the length of each simulated block, cycles at full residency."""
    times = np.concatenate((result.block_start, result.block_end))
    change = np.concatenate((np.ones(len(result.block_start), np.int64), -np.ones(len(result.block_end), np.int64)))
    moments, position = np.unique(times, return_inverse=True)
    held = np.cumsum(np.bincount(position, weights=change, minlength=len(moments))).astype(np.int64)
    rate = np.where(held > 0, speed[(held - 1).clip(0, len(speed) - 1)], 0.0)
    served = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(moments))))
    blocks = len(result.block_start)
    return served[position[blocks:]] - served[position[:blocks]]


#: blocks dispatched one by one at the end of a launch; those before them keep every slot busy
DISPATCHED = 1 << 18
#: policies by which an old block holds up younger ones, so that these take long whatever they do, and one that is
#: like them but for that: how long a block is it shows
FAIR = {"gto_block": "gto", "gto_launch": "gto"}


def irregular_prediction(sm: TraceSm, survey: Survey) -> KernelPrediction:
    """Cycles of a launch whose blocks differ, from a mix of them."""
    gpu, resident, sms = sm.gpu, sm.spread.resident, sm.spread.active_sms
    blocks = mixed_blocks(sm.spread, survey, AFFORDABLE)
    mix = sm.slots(blocks)
    done = mix.feed(resident).features
    # of all waits for bandwidth, and of a policy by which some blocks wait for others
    free = replace(sm, gpu=unlimited(gpu, sms), policy=FAIR.get(sm.policy or gpu.sm.policy, sm.policy))
    typical = free.slots(_typical(done, resident))
    alone = free.slots(blocks)
    speed, (timing, apart) = both(
        lambda: speeds(typical.result, resident), lambda: (mix.timing(resident), alone.result(resident))
    )
    result = timing.result
    whole = dispatch_grid(survey, done, lengths(apart, speed), sm.spread, speed, block_starts(gpu, sms))
    busy = memory_load(result, gpu, sms) * result.cycles
    cycles = _with_memory(survey, done, whole, (result, apart), busy, sms)
    trailing = float(result.cycles - np.max(result.block_end))
    mixed = mix_plan(sm, survey, done)
    return KernelPrediction(
        cycles=cycles + trailing,
        plan=mixed,
        result=result,
        timing=timing,
        sm=sm,
        error=survey.error,
        assumptions=(*_texts(mixed, whole, cycles), *spread_assumptions(mixed)[:1]),
    )


def mix_plan(sm: SimulatedSm, survey: Survey, done: BlockFeatures) -> SmPlan:
    """The plan of a mix of blocks, those of `done`, that stands for the grid."""
    made = plan(sm.launch.blocks, sm.occupancy, sm.gpu, "workload")
    sectors = float(done.sectors.mean())
    return replace(
        made,
        level="steady",
        blocks=tuple(done.blocks.tolist()),
        waves=len(done) // made.resident,
        exact=False,
        mean_work=survey.warp_instructions / float(done.warp_instructions.mean()),
        mean_traffic=survey.sectors / sectors if sectors else None,
    )


def _with_memory(
    survey: Survey, done: BlockFeatures, whole: Dispatch, runs: tuple[SmResult, SmResult], busy: float, sms: int
) -> float:
    """Cycles of the grid, dispatched as `whole` without waits for bandwidth, with them.

    runs: the mix with its share of the bandwidth and without limit; busy: cycles in which its share moved its traffic.
    """
    by_sectors = bool(done.sectors.any())
    asked, of_each = (
        (found.sectors if by_sectors else found.warp_instructions).astype(np.float64)
        for found in (done, survey.features)
    )
    if not busy or not asked.any():
        return whole.cycles
    limited, free = runs
    start, end = free.block_start.astype(np.float64), free.block_end.astype(np.float64)
    p = course(start, end, asked * (busy / asked.sum())).overlap(float(limited.block_end.max()))
    cost = busy / asked.sum() / sms  # of all SMs' bandwidth
    demand = cost * survey.of_every_block(of_each, survey.grid_blocks - len(whole.sm))
    every = cost * (survey.sectors if by_sectors else survey.warp_instructions) * survey.grid_blocks
    every_block = course(whole.block_start, whole.block_end, demand)
    return every_block.stretched(p, max(every - float(demand.sum()), 0.0))


def dispatch_grid(
    survey: Survey,
    done: BlockFeatures,
    length: NDArray[np.float64],
    spread: GridSpread,
    speed: NDArray[np.float64],
    starts: Starts,
) -> Dispatch:
    """Dispatch every block of the grid; `done` and `length` (cycles at full residency) are of the simulated blocks.

    The first wave of the simulation starts on an empty SM. What its blocks take beyond later ones of their kinds, all
    SMs take once, at the start of the launch.
    """
    kind = survey.clusters.assign(done)
    late = slice(spread.resident if len(done) >= 2 * spread.resident else 0, None)
    rate = _rates(kind[late], done.warp_instructions[late], length[late], len(survey.clusters))
    early = slice(0, late.start)
    cold = float((length[early] - rate[kind[early]] * done.warp_instructions[early]).sum()) / spread.resident
    first = max(survey.grid_blocks - DISPATCHED, 0)
    features = survey.features
    surveyed = rate[survey.clusters.member] * features.warp_instructions
    cycles = survey.of_every_block(surveyed, first)
    simulated = done.blocks[late]
    inside = simulated >= first
    cycles[simulated[inside] - first] = length[late][inside]
    start = max(cold, 0.0)
    if first:
        sample = features.blocks[survey.strata]
        bulk = surveyed[survey.strata][stand_ins(stratified(first, DISPATCHED), sample)]
        start += turn(float(bulk.mean()), speed, starts) * first / (spread.sms * spread.resident)
    return dispatch(cycles, spread.sms, spread.resident, speed, start, starts)


def block_starts(gpu: Gpu, active_sms: int) -> Starts:
    """When the slots of `active_sms` SMs take blocks, as the SM simulation has it."""
    return Starts(float(gpu.host.block_launch), gpu.start_ramp(active_sms))


def _rates(
    member: NDArray[np.int64], work: NDArray[np.int64], length: NDArray[np.float64], clusters: int
) -> NDArray[np.float64]:
    """[K] cycles a warp instruction of each kind of block; of a kind that was not simulated, those of all."""
    cycles = np.bincount(member, weights=length, minlength=clusters)
    instructions = np.bincount(member, weights=work, minlength=clusters)
    return np.where(instructions > 0, cycles / np.maximum(instructions, 1), length.sum() / max(int(work.sum()), 1))


def _typical(done: BlockFeatures, count: int) -> list[int]:
    """Up to `count` simulated blocks alike, such that a warp instruction is most likely to be in: by work, in order."""
    work = done.warp_instructions.astype(np.float64)
    usual = float((work**2).sum() / max(work.sum(), 1.0))
    nearest = np.argsort(np.abs(work - usual), kind="stable")[:count]
    return [int(block) for block in done.blocks[np.sort(nearest)]]


def _texts(mixed: SmPlan, whole: Dispatch, cycles: float) -> tuple[str, ...]:
    texts = [
        f"blocks differ: a mix of {len(mixed.blocks)} that represents the grid was simulated on one SM, then all "
        f"{mixed.spread.grid_blocks} blocks were dispatched in order to {mixed.spread.sms} SMs; when the launch ends, "
        f"SMs have been done for {1.0 - whole.balance:.1%} of the time on average"
    ]
    if cycles >= 1.001 * whole.cycles:
        texts.append(f"waits for bandwidth of L2 and DRAM make the launch {cycles / whole.cycles:.2f} times as long")
    return tuple(texts)
