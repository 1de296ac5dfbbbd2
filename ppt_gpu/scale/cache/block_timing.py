"""What simulating some blocks on one SM yields, all that predictions and reports read of it, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.work import Work
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.cache.launch_store import Codec
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_sm
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu

MAGIC = b"PPTTIMED"


def _no_blocks() -> BlockFeatures:
    return BlockFeatures(*(np.zeros(0, np.int64) for _ in fields(BlockFeatures)))


@dataclass(frozen=True)
class Feed:
    """What the simulation was fed with. Of a task list, only `warnings` and `notes`."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # how, for the report
    printed: str = ""  # by printf
    pc_threads: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # [I] of all blocks
    features: BlockFeatures = field(default_factory=_no_blocks)  # [B] in the order simulated


@dataclass(frozen=True)
class BlockTiming:
    """One simulation. `result.wall` is 0 where it was taken from the store."""

    result: SmResult
    work: Work
    feed: Feed


def write_timing(timing: BlockTiming) -> bytes:
    """The bytes that `read_timing` reads; the same for the same timing."""
    return pack(MAGIC, named(timing) | {"result.wall": 0.0})  # of this process, no part of what was found


def read_timing(data: bytes, path: str) -> BlockTiming:
    """ValueError, which names `path`, when the data are not those of `write_timing`."""
    values = unpack(MAGIC, data, path)
    try:
        return BlockTiming(
            made(SmResult, values, "result."), made(Work, values, "work."), read_feed(values, "feed.")
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_feed(values: Mapping[str, Any], owner: str) -> Feed:
    """The Feed among values that were named with `owner`. KeyError where a part of it lacks."""
    return made(Feed, values, owner, features=made(BlockFeatures, values, f"{owner}features."))


TIMING = Codec(".timing", write_timing, read_timing)


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

    Equal are those of the same blocks on the SM and on those around it, where the SM is the same to all that lowering
    and simulation read.

    `finds`: where it finds its instructions and constants, what in the L2, and how much of L2 and DRAM is for it.

    `spread` decides what the other SMs run meanwhile; a grid of a block an SM does not know how many SMs stay empty.
    """
    around = (spread.grid_blocks, spread.active_sms, spread.sms if spread.grid_blocks > spread.sms else 0)
    sm = (digest_of(seen_by_sm, gpu), policy, l1_bytes, resident, around, finds)
    return digest(sources_digest(*SIMULATING), sm, tuple(blocks))[:32]
