"""Launches of many waves of blocks at level "steady": how an SM is found when the launch has run for a while.

At first all SMs ask DRAM for the data of their first blocks at once. That is over after a few blocks, but on one SM,
whose surroundings never change, it would last: blocks whose data came one after another because of it would keep the
distance that this gave them. On a whole chip (level grid) SMs get out of step, and blocks that need the same unit of
their SM meet at it, however they began. So the SM begins as it is found later: with unused share of DRAM
(`out_of_step`), unless it turns out that the launch leaves none unused.

How many blocks the SM gets whose slots are free first, in a launch of a few waves.

Each next block goes to the SM that frees a slot first. Where the blocks that an SM holds end one by one, further apart
than SMs are from one another, every SM gets its even share. Where they end close to each other, whoever is a little
earlier frees many slots before the others free any, and gets more blocks than they: the launch ends with it.

SMs, and the blocks in their slots, are apart by what the first access to a line decides: one finds it in the L2, where
another has to wait for DRAM. Between 0 and the difference of the two latencies everything is as likely. With an even
share a launch is taken to end with the simulated SM, so the last one is where that is; the first is before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.scale.blocks.distribution import GridSpread, plan, plan_of, spread_grid
from ppt_gpu.scale.blocks.strata import GOLDEN
from ppt_gpu.scale.levels.steady import AFFORDABLE, TOLERANCE, WAVES, extrapolate_steady, in_bunches, steady_prediction
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.spec.gpu import Gpu

#: as GOLDEN, whose multiples, less their whole parts, fill [0, 1) evenly, however many are taken
SILVER = 2**0.5 - 1


@dataclass(frozen=True)
class FirstFree:
    """The SM that gets the most blocks."""

    later_blocks: tuple[int, ...]  # ids of those after its first wave
    earlier: float  # cycles by which it is before the last SM


def first_free(ends: NDArray[np.int64], spread: GridSpread, gpu: Gpu) -> FirstFree:
    """Of SMs that are apart, which gets the most blocks of a launch of more than one wave.

    ends: [n] cycles at which the blocks of one SM ended, which had at least an even share of them.
    """
    sms, slots = spread.sms, len(ends)
    apart = 0 if gpu.perfect_memory else max(gpu.dram.latency - gpu.l2.latency, 0)
    sm = apart * ((np.arange(1, sms + 1) * GOLDEN) % 1.0 - 0.5)
    if gpu.host.blocks_per_cycle:
        sm += (np.arange(sms) - (sms - 1) / 2.0) / gpu.host.blocks_per_cycle
    slot = apart * ((np.arange(1, sms * slots + 1) * SILVER) % 1.0 - 0.5).reshape(sms, slots)
    free = np.sort(ends)[np.newaxis] + sm[:, np.newaxis] + slot
    first = spread.resident * spread.sms
    given = np.argsort(free, axis=None, kind="stable")[: spread.grid_blocks - first]  # in the order of the blocks
    taken = np.bincount(given // slots, minlength=sms)
    most = np.flatnonzero(taken == taken.max())
    last = int(most[np.argmax(sm[most])])  # of those that get most
    blocks = first + np.flatnonzero(given // slots == last)
    return FirstFree(tuple(blocks.tolist()), float(sm.max() - sm[last]))


#: waves after which stores wait for a DRAM that falls behind by a hundredth of its time, by then for sure
BEHIND = 257


def long_launch(sm: SimulatedSm, waves: Sequence[int]) -> KernelPrediction:
    """`steady_prediction` of a launch whose blocks all do the same work, in the order in which `sm` gets them."""
    found = _as_found_later(sm, waves)
    if in_bunches(found):
        spread = spread_grid(sm.launch.blocks, sm.occupancy.blocks_per_sm, sm.gpu.sm.count, bunched=True)
        # place 0: one of the busiest, whichever blocks it gets
        return _as_found_later(replace(sm, spread=spread, place=0), waves)
    if found.exact and 1.0 < sm.spread.waves < 3.0:  # of longer ones it would have been seen
        return _of_first_free(found)
    return found


def _of_first_free(found: KernelPrediction) -> KernelPrediction:
    """The prediction from the SM whose slots are free first, where it gets more than the even share of `found`."""
    sm = found.simulated_sm
    first = first_free(found.result.block_end, sm.spread, sm.gpu)
    blocks = sm.spread.resident + len(first.later_blocks)
    if blocks <= sm.spread.max_blocks:
        return found
    spread = replace(sm.spread, max_blocks=blocks, later_blocks=first.later_blocks)
    sm = replace(sm, spread=spread, share=spread.busiest_share)
    chosen = plan_of(spread, waves=blocks, sm=sm.place)
    timing = sm(list(chosen.blocks))
    made = extrapolate_steady(timing.result, chosen)
    return replace(made, cycles=max(made.cycles - first.earlier, found.cycles), timing=timing, sm=sm)


def dram_use(found: KernelPrediction, gpu: Gpu) -> float:
    """Time that the SM's share of DRAM works for a wave, over the time that the wave takes."""
    result, spread = found.result, found.plan.spread
    moved = result.dram_read_bytes + result.dram_write_bytes
    if not moved or found.wave_cycles <= 0:
        return 0.0
    turns = 2.0 * (result.dram_read_bytes / moved) * (result.dram_write_bytes / moved)
    share = gpu.dram_bytes_per_cycle * gpu.dram.efficiency * spread.busiest_share
    wave = moved * found.plan.resident / len(found.plan.blocks)
    return wave / share * (1.0 + gpu.dram.turnaround * turns) / found.wave_cycles


def _as_found_later(sm: SimulatedSm, waves: Sequence[int]) -> KernelPrediction:
    blocks, fit, gpu, bunched = sm.launch.blocks, sm.occupancy, sm.gpu, sm.spread.bunched

    def simulated(out_of_step: bool, waves: Sequence[int]) -> KernelPrediction:
        under = replace(sm, share=sm.spread.busiest_share, out_of_step=out_of_step)
        return replace(steady_prediction(under, blocks, fit, gpu, waves, sm=sm.place, bunched=bunched), sm=under)

    few = plan(blocks, fit, gpu, "steady", min(waves[0], WAVES[0]), sm.place, bunched).exact
    out_of_step = gpu.dram.loaded_latency > 0 and sm.spread.active_sms > 1 and not few
    found = simulated(out_of_step, waves)
    if out_of_step and dram_use(found, gpu) > 1.0 - TOLERANCE:
        out_of_step = False
        found = simulated(out_of_step, waves)
    if not found.exact and dram_use(found, gpu) > 1.0 + TOLERANCE:  # DRAM falls behind, but stores wait only later on
        per_wave = found.result.issued * found.plan.resident / len(found.plan.blocks)
        more = max(min(BEHIND, int(AFFORDABLE / per_wave)), waves[-1])
        found = simulated(out_of_step, (more,))
    return found
