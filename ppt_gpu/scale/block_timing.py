"""What simulating some blocks on one SM yields, all that predictions and reports read of it, and its kept form."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.analytic.work import Work
from ppt_gpu.exec.block_features import BlockFeatures
from ppt_gpu.sm.result import SmResult

MAGIC = b"PPTTIMED"
_PREFIX = struct.Struct("<8sI")  # magic, CRC-32 of the rest: zlib of JSON
LARGEST = 1 << 28  # B of the JSON


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
    document = {name: _plain(getattr(timing, name)) for name in ("result", "work", "feed")}
    document["result"]["wall"] = 0.0  # of this process, no part of what was found
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)
    return _PREFIX.pack(MAGIC, zlib.crc32(packed)) + packed


def read_timing(data: bytes, path: str) -> BlockTiming:
    """ValueError, which names `path`, when the data are not those of `write_timing`."""
    packed = data[_PREFIX.size :]
    if len(data) < _PREFIX.size or _PREFIX.unpack_from(data) != (MAGIC, zlib.crc32(packed)):
        raise ValueError(f"{path}: not the bytes that were written")
    try:
        document = json.loads(zlib.decompressobj().decompress(packed, LARGEST))
        return BlockTiming(
            result=_made(SmResult, document["result"]),
            work=_made(Work, document["work"]),
            feed=_made(Feed, document["feed"]),
        )
    except (zlib.error, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON values; floats keep all their digits."""
    found: dict[str, Any] = {}
    for part in fields(value):
        held = getattr(value, part.name)
        if isinstance(held, np.ndarray):
            found[part.name] = held.tolist()
        else:
            found[part.name] = _plain(held) if isinstance(held, BlockFeatures) else held
    return found


def _made(kind: type[Any], found: Mapping[str, Any]) -> Any:
    """A `kind` of JSON values. Every array is of 64-bit integers."""
    values = {}
    for name, hint in _hints(kind).items():
        held = found[name]
        if hint is BlockFeatures:
            values[name] = _made(BlockFeatures, held)
        elif hint in (int, float, str):
            if type(held) is not hint:
                raise TypeError(f"'{name}' is a {type(held).__name__}")
            values[name] = held
        else:
            values[name] = tuple(held) if hint == tuple[str, ...] else np.array(held, np.int64)
    return kind(**values)


def _hints(kind: type[Any]) -> dict[str, Any]:
    if kind not in _known_hints:
        _known_hints[kind] = get_type_hints(kind)
    return _known_hints[kind]


_known_hints: dict[type[Any], dict[str, Any]] = {}
