"""Which blocks one simulated SM runs when blocks differ: a mix that represents the whole grid.

When blocks progress alike, the blocks that share an SM for a while (a wave) lie S apart: wave w of SM s is w R S + s,
w R S + s + S, ... Whole waves are taken, evenly spaced over the launch and over the SMs, so that trends along the grid
and what successive blocks share are both there; then a block of every cluster that no wave held, and the longest block.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.blocks.strata import stratified
from ppt_gpu.scale.blocks.survey import Survey

#: waves simulated at most, and at least where the grid has them; in between as many as an SM runs
MOST_WAVES, FEWEST_WAVES = 16, 3


def mixed_blocks(spread: GridSpread, survey: Survey, affordable: float) -> list[int]:
    """Ids of the blocks to simulate one after another, of about `affordable` warp instructions, in launch order.

    No more than an SM runs (FEWEST_WAVES apart): more would find more in the caches than the SM's own blocks do.
    """
    per_wave = max(spread.resident * survey.warp_instructions, 1.0)
    wanted = max(min(int(affordable / per_wave), MOST_WAVES, round(spread.waves)), FEWEST_WAVES)
    waves = -(-spread.grid_blocks // (spread.resident * spread.sms))
    numbers = stratified(waves * spread.active_sms, wanted)
    mixed = {block for n in numbers for block in wave(spread, *divmod(int(n), spread.active_sms))}
    return sorted(mixed | _telling(survey, mixed), key=lambda block: _start(spread, block))


def wave(spread: GridSpread, number: int, sm: int) -> list[int]:
    """Ids of the blocks of wave `number` of SM `sm`, when all SMs progress alike."""
    first = number * spread.resident * spread.sms + sm
    ids = range(first, first + spread.resident * spread.sms, spread.sms)
    return [block for block in ids if block < spread.grid_blocks]


def _telling(survey: Survey, mixed: set[int]) -> set[int]:
    """The block with the longest warp, and a representative of each cluster of which no surveyed block is in `mixed`.

    One block may take as long as the launch, if it is long enough.
    """
    features, clusters = survey.features, survey.clusters
    seen = set(clusters.member[np.isin(features.blocks, list(mixed))].tolist())
    lost = [int(clusters.representative[cluster]) for cluster in range(len(clusters)) if cluster not in seen]
    return {int(features.blocks[position]) for position in (*lost, int(features.longest.argmax()))}


def _start(spread: GridSpread, block: int) -> tuple[int, int, int]:
    """When a block starts: by wave, then SM, then slot."""
    number, rest = divmod(block, spread.resident * spread.sms)
    slot, sm = divmod(rest, spread.sms)
    return number, sm, slot
