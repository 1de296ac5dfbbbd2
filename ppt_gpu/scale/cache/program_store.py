"""Lowered blocks kept between predictions: in memory for the process, and on disk beside their traces.

Lowering reads little of a GPU (`ppt_gpu.sm.lowering.gpu_cache_key.seen_by_lowering`), so one program serves many: GPUs
of one generation, and every point of a sweep that leaves alone what it reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from threading import Lock

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.cache.block_timing import Feed, read_feed
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_lowering
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu

SUFFIX = ".program"
MAGIC = b"PPTLOWER"
IN_MEMORY = 256 << 20  # B of all programs that stay in memory
ON_DISK = 64 << 20  # B of one program that is worth a file
#: fields whose values rise slowly: their differences are kept, which fit few bits
_RISING = ("access_start", "path_start", "warp_access", "block_warp")

Lowered = tuple[Program, Feed]


class ProgramStore:
    """The lowered blocks of one launch. `group`: the digest of all that its traces depend on."""

    def __init__(self, store: Store, group: str) -> None:
        self.store, self.group = store, group

    def get(self, name: str) -> Lowered | None:
        """What is kept under this name."""
        place = self._place(name)
        found = _recent.get(place) or self.store.read(self.group, name + SUFFIX, read_lowered)
        if found is not None:
            _remember(place, found)
        return found

    def put(self, name: str, lowered: Lowered) -> None:
        """Keep it: in memory, and where it is not too large and the folder can be written on disk."""
        _remember(self._place(name), lowered)
        if _bytes(lowered) <= ON_DISK:
            self.store.write(self.group, name + SUFFIX, write_lowered(lowered))

    def _place(self, name: str) -> tuple[Path | None, str, str]:
        return self.store.folder, self.group, name


def program_name(gpu: Gpu, spread: GridSpread, blocks: Sequence[int], registers: int, left: str, *more: float) -> str:
    """The name of `blocks` lowered for a GPU; equal names in one group, equal programs.

    `left`: the digest of what earlier launches left in the L2. `more`: what decides how many of the other SMs are
    sampled, and the clock of kernels that tell times.
    """
    return digest(
        sources_digest(*SIMULATING), digest_of(seen_by_lowering, gpu), astuple(spread), registers, left,
        more, tuple(blocks),
    )[:32]  # fmt: skip


#: by folder of the store, group and name
_recent: OrderedDict[tuple[Path | None, str, str], Lowered] = OrderedDict()
_changing = Lock()


def _remember(place: tuple[Path | None, str, str], lowered: Lowered) -> None:
    """The programs used longest ago leave memory when it is full."""
    with _changing:
        _recent[place] = lowered
        _recent.move_to_end(place)
        total = sum(map(_bytes, _recent.values()))
        while total > IN_MEMORY and _recent:
            total -= _bytes(_recent.popitem(last=False)[1])


def forget() -> None:
    """Let go of what this process keeps in memory."""
    _recent.clear()


def _bytes(lowered: Lowered) -> int:
    # its fields, not its __dict__, to which another thread may add what is computed once
    return sum(int(getattr(getattr(lowered[0], field.name), "nbytes", 0)) for field in fields(Program))


def write_lowered(lowered: Lowered) -> bytes:
    """The bytes that `read_lowered` reads; the same for the same program."""
    program, feed = lowered
    return pack(MAGIC, named(program) | named(feed, "feed."), _RISING)


def read_lowered(data: bytes, path: str) -> Lowered:
    """ValueError, which names `path`, when the data are not those of `write_lowered`."""
    values = unpack(MAGIC, data, path)
    try:
        return made(Program, values), read_feed(values, "feed.")
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
