"""Lowered blocks kept between predictions: their form on disk, and their names.

Lowering reads little of a GPU (`ppt_gpu.sm.lowering.gpu_cache_key.seen_by_lowering`), so one program serves many: GPUs
of one generation, and every point of a sweep that leaves alone what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.cache.block_timing import Feed, read_feed
from ppt_gpu.scale.cache.launch_store import Codec
from ppt_gpu.scale.cache.packed_values import made, named, pack, unpack
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_lowering
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import Gpu

MAGIC = b"PPTLOWER"
#: fields whose values rise slowly: their differences are kept, which fit few bits
_RISING = ("access_start", "path_start", "warp_access", "block_warp")

Lowered = tuple[Program, Feed]


def program_name(gpu: Gpu, spread: GridSpread, blocks: Sequence[int], registers: int, left: str, *more: float) -> str:
    """The name of `blocks` lowered for a GPU; equal names in one group, equal programs.

    `left`: the digest of what earlier launches left in the L2. `more`: what decides how many of the other SMs are
    sampled, and the clock of kernels that tell times.
    """
    return digest(
        sources_digest(*SIMULATING), digest_of(seen_by_lowering, gpu), astuple(spread), registers, left,
        more, tuple(blocks),
    )[:32]  # fmt: skip


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


LOWERED = Codec(".program", write_lowered, read_lowered, _bytes)
