"""Results of an SM as simulations of blocks, for what extrapolates them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ppt_gpu.scale.cache.block_timing import BlockTiming, Feed


def timed(run: Callable[[list[int]], Any]) -> Callable[[list[int]], BlockTiming]:
    """`run` gives results of blocks; of their work nothing is known."""
    nothing: Any = None
    return lambda blocks: BlockTiming(run(blocks), nothing, Feed())
