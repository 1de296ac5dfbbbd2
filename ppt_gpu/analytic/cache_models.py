"""The cache models on one launch: hit rates of L1 and L2 by reuse distance, with sets, by SDCM, and in fake time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.analytic.access_stream import AccessStream, access_stream
from ppt_gpu.analytic.hit_rates import HitRates, Touched, hit_rates, touched
from ppt_gpu.analytic.model_inputs import DoesNotApply, ModelInputs
from ppt_gpu.analytic.nugteren import launch_misses
from ppt_gpu.analytic.reuse_distance import COLD, reuse_distances, reuse_distances_in_sets
from ppt_gpu.analytic.sdcm import hit_probability, released_hit_probability
from ppt_gpu.sm.core_machine import set_index
from ppt_gpu.sm.program import KIND_LOAD


def cache_models(inputs: ModelInputs, *, literal: bool = False) -> tuple[HitRates, ...]:
    """What each model says of the simulated blocks. literal: SDCM as released, with its absolute value."""
    stream = access_stream(inputs)
    before = touched(stream)
    machine = stream.machine
    in_l1 = stream.cached & ((stream.kind == KIND_LOAD) | machine.l1_allocate)
    in_l2 = stream.line >= 0
    l1_lines, l2_lines = machine.l1_sets * machine.l1_ways, machine.l2_sets * machine.l2_ways
    l1_depth, l2_depth = _depths(stream, in_l1), _depths(stream, in_l2)
    l1_sets = set_index(inputs.program, machine.l1_sets, machine.l1_hash)
    l2_sets = set_index(inputs.program, machine.l2_sets, True)
    probability = released_hit_probability if literal else hit_probability
    return (
        hit_rates("reuse distance", stream, before, _below(l1_depth, l1_lines), _below(l2_depth, l2_lines)),
        hit_rates(
            "reuse distance in sets",
            stream,
            before,
            _below(_depths(stream, in_l1, l1_sets), machine.l1_ways),
            _below(_depths(stream, in_l2, l2_sets), machine.l2_ways),
        ),
        hit_rates(
            "SDCM",
            stream,
            before,
            probability(l1_depth, machine.l1_ways, l1_lines) if l1_lines else np.zeros(len(stream.line)),
            probability(l2_depth, machine.l2_ways, l2_lines),
        ),
        _nugteren(inputs, stream, before),
    )


def _depths(
    stream: AccessStream, chosen: NDArray[np.bool_], sets: NDArray[np.int32] | None = None
) -> NDArray[np.int64]:
    """[T] reuse distances among the chosen transactions, COLD for the others. sets [L]: within sets."""
    found = np.full(len(stream.line), COLD, np.int64)
    lines = stream.line[chosen]
    found[chosen] = (
        reuse_distances(lines) if sets is None else reuse_distances_in_sets(lines, sets[lines].astype(np.int64))
    )
    return found


def _below(depth: NDArray[np.int64], lines: int) -> NDArray[np.float64]:
    return ((depth != COLD) & (depth < lines)).astype(np.float64)


def _nugteren(inputs: ModelInputs, stream: AccessStream, before: Touched) -> HitRates:
    try:
        found, hit = launch_misses(inputs)
    except DoesNotApply as error:
        return HitRates("Nugteren", None, None, (str(error),))
    text = ", ".join(f"{cause} {count}" for cause, count in found.by_cause().items())
    note = f"{found.misses} of {found.accesses} lines missed: {text}"
    return hit_rates("Nugteren", stream, before, hit[stream.place].astype(np.float64), None, (note,))
