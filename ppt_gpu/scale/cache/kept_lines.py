"""What launches leave in the L2, kept between predictions beside their traces.

Two launches leave the same when they find the same (the group of the traces), their transactions are the same to
lowering, and the L2 has as many lines of the same size and held the same before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.cache.launch_store import Codec
from ppt_gpu.scale.cache.packed_values import pack, unpack
from ppt_gpu.sm.l2_sharing.l2_sets import L2Sets
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.sm.lowering.gpu_cache_key import digest_of, seen_by_lowering
from ppt_gpu.spec.gpu import Gpu

MAGIC = b"PPTLINES"


def lines_codec(size: int, sets: L2Sets | None) -> Codec[LeftLines]:
    """How the lines of an L2 are kept that has lines of `size` bytes, and these sets."""
    return Codec(
        ".lines", partial(write_lines, size=size), lambda data, path: replace(read_lines(data, path), sets=sets)
    )


def lines_name(gpu: Gpu, before: LeftLines | None, blocks: Sequence[int]) -> str:
    """The name of what is left after a launch on `gpu`; equal names in one group, equal lines.

    before: what was there (None: what the host copied). blocks: those that were looked at, which say what may be run.
    """
    l2 = gpu.l2.size, gpu.l2.line, gpu.l2.sector, gpu.l2.dirty_share
    held = "" if before is None else before.digest
    return digest(sources_digest(*SIMULATING), digest_of(seen_by_lowering, gpu), l2, held, tuple(blocks))[:32]


def write_lines(lines: LeftLines, size: int) -> bytes:
    """The bytes that `read_lines` reads; the same for the same lines, of `size` bytes."""
    number = (lines.address // np.uint64(size)).astype(np.int64)
    values = {
        "line": number, "written": lines.written, "unread": lines.unread, "capacity": lines.capacity,
        "dirty_capacity": lines.dirty_capacity, "round": lines.round, "size": size,
    }  # fmt: skip
    return pack(MAGIC, values, rising=("line",))


def read_lines(data: bytes, path: str) -> LeftLines:
    """ValueError, which names `path`, when the data are not those of `write_lines`."""
    values = unpack(MAGIC, data, path)
    try:
        address = values["line"].astype(np.uint64) * np.uint64(values["size"])
        written = values["written"].astype(np.uint8)
        capacities = values["capacity"], values["dirty_capacity"]
        return LeftLines(address, written, values["unread"], *capacities, values["round"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from None
