"""What simulating some blocks on one SM yields, all that predictions and reports read of it, and its kept form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.work import Work
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.program.result import SmResult

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
