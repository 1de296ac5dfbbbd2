"""Block timing kept between predictions: what simulating some blocks on one SM yielded, beside their traces.

Two simulations have the same name when the same blocks run on the SM and on those around it, and the SM is the same to
everything that lowering and simulation read; they are in one group when their launches find the same (the group of the
traces, see `ppt_gpu.emulator.cache.traces`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.cache.block_timing import BlockTiming, read_timing, write_timing
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_sm
from ppt_gpu.spec.gpu import Gpu

SUFFIX = ".timing"


class Timings(Protocol):
    """Where timings are kept."""

    def get(self, name: str) -> BlockTiming | None:
        """The timing of this name, if it is kept."""

    def put(self, name: str, timing: BlockTiming) -> None:
        """Keep it, where that can be done."""


class TimingStore:
    """The timings of one launch. `group`: the digest of all that its traces depend on."""

    def __init__(self, store: Store, group: str) -> None:
        self.store, self.group = store, group

    def get(self, name: str) -> BlockTiming | None:
        """The timing of this name, if it is kept."""
        return self.store.read(self.group, name + SUFFIX, read_timing)

    def put(self, name: str, timing: BlockTiming) -> None:
        """Keep it, where the folder can be written."""
        self.store.write(self.group, name + SUFFIX, write_timing(timing))


def kept_or_made(timings: Timings | None, name: Callable[[], str], simulate: Callable[[], BlockTiming]) -> BlockTiming:
    """What is kept under `name`, or what `simulate` makes, which is kept from then on."""
    if timings is None:
        return simulate()
    found = timings.get(name())
    if found is None:
        found = simulate()
        timings.put(name(), found)
    return found


def timing_name(
    gpu: Gpu,
    policy: str | None,
    l1_bytes: int | None,
    spread: GridSpread,
    blocks: Sequence[int],
    resident: int,
    finds: tuple[int | float | str | None, ...] = (),
) -> str:
    """The name of the simulation of `blocks` in `resident` slots; equal names in one group, equal results.

    `finds`: where it finds its instructions and constants, what in the L2, and how much of L2 and DRAM is for it.

    `spread` decides what the other SMs run meanwhile; a grid of a block an SM does not know how many SMs stay empty.
    """
    around = (spread.grid_blocks, spread.active_sms, spread.sms if spread.grid_blocks > spread.sms else 0)
    sm = (digest_of(seen_by_sm, gpu), policy, l1_bytes, resident, around, finds)
    return digest(sources_digest(*SIMULATING), sm, tuple(blocks))[:32]
