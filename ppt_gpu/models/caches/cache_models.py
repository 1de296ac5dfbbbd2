"""The cache models on one launch: hit rates of L1 and L2 by reuse distance, with sets, by SDCM, and in fake time."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.base.access_stream import AccessStream, access_stream
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.caches.hit_rates import HitRates, Touched, hit_rates, touched
from ppt_gpu.models.caches.nugteren import launch_misses
from ppt_gpu.models.caches.reuse_distance import COLD, reuse_distances, reuse_distances_in_sets
from ppt_gpu.models.caches.sdcm import hit_probability, released_hit_probability
from ppt_gpu.sm.program.machine import even_sets, set_index
from ppt_gpu.sm.program.program import KIND_LOAD


def cache_models(inputs: ModelInputs, *, literal: bool = False) -> tuple[HitRates, ...]:
    """What each model says of the simulated blocks. literal: SDCM as released, with its absolute value."""
    found = _Launch(inputs)
    return (
        found.whole(),
        found.in_sets(),
        found.sdcm(literal),
        _nugteren(inputs, found.stream, found.before),
        _functional(inputs),
    )


def sdcm_rates(inputs: ModelInputs) -> HitRates:
    """What SDCM alone says."""
    return _Launch(inputs).sdcm()


class _Launch:
    """The accesses of a launch and their reuse distances in L1 and L2."""

    def __init__(self, inputs: ModelInputs) -> None:
        self.program, self.stream = inputs.program, access_stream(inputs)
        self.machine, self.before = self.stream.machine, touched(self.stream)
        load = self.stream.kind == KIND_LOAD
        self.in_l1 = self.stream.cached & (load | (self.machine.l1_allocate & ~self.stream.drops))
        self.in_l2 = self.stream.line >= 0
        self.l1_lines = self.machine.l1_sets * self.machine.l1_ways
        self.l2_lines = self.machine.l2_sets * self.machine.l2_ways

    @cached_property
    def depths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[T] in the L1 and in the L2, each as one set."""
        return _depths(self.stream, self.in_l1), _depths(self.stream, self.in_l2)

    def whole(self) -> HitRates:
        """Fully associative caches: a line stays for fewer distinct lines than they hold."""
        l1, l2 = self.depths
        return self._rates("reuse distance", _below(l1, self.l1_lines), _below(l2, self.l2_lines))

    def in_sets(self) -> HitRates:
        """The sets of the simulated caches."""
        m = self.machine
        l1 = _depths(self.stream, self.in_l1, set_index(self.program, m.l1_sets, m.l1_index))
        l2 = _depths(self.stream, self.in_l2, even_sets(self.program, m.l2_sets))
        return self._rates("reuse distance in sets", _below(l1, m.l1_ways), _below(l2, m.l2_ways))

    def sdcm(self, literal: bool = False) -> HitRates:
        """Sets at random."""
        (l1, l2), m = self.depths, self.machine
        probability = released_hit_probability if literal else hit_probability
        in_l1 = probability(l1, m.l1_ways, self.l1_lines) if self.l1_lines else np.zeros(len(l1))
        return self._rates("SDCM", in_l1, probability(l2, m.l2_ways, self.l2_lines))

    def _rates(self, name: str, l1_stays: NDArray[np.float64], l2_stays: NDArray[np.float64]) -> HitRates:
        return hit_rates(name, self.stream, self.before, l1_stays, l2_stays)


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


def _functional(inputs: ModelInputs) -> HitRates:
    """The functional simulation that GPUMech and others read (`cache_outcomes`). It does not tell stores that hit."""
    found = inputs.caches
    return HitRates("functional", found.l1_hits / found.l1_sectors if found.l1_sectors else None, None)
