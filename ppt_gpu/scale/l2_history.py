"""What earlier launches of a workload, and the host copies before them, left in the L2 when a launch begins.

Lines are kept in the order of their last use, as many as fit (but for written ones, `left_lines`); of one launch,
blocks count as run in their order. Of a grid that is too large to be traced whole its last blocks are, as far as they
fill the L2. Where not even these run alone, nothing is known, and the next launch is taken to find what the host copied
last, as the first one does.

What launches leave in the L2, kept between predictions beside their traces.

Two launches leave the same when they find the same (the group of the traces), their transactions are the same to
lowering, and the L2 has as many lines of the same size and held the same before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.emulator.trace.identity import SIMULATING, digest, sources_digest
from ppt_gpu.scale.cache.launch_store import Codec
from ppt_gpu.scale.cache.packed_values import pack, unpack
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.l2_sharing.l2_sets import L2Sets, known_sets
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


#: blocks whose trace says which space generic accesses go to
SOME = 8


class L2History:
    """`lines`: what is in the L2; None: unknown."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.capacity = gpu.l2.size // gpu.l2.line  # lines
        each = max(1, self.capacity // (gpu.l2.ways * gpu.l2.slices))
        self.sets = None if gpu.l2.dirty_share else known_sets(gpu, gpu.l2.line, each)
        self.lines: LeftLines | None = None

    def launched(self, sm: TraceSm, features: BlockFeatures) -> None:
        """The launch of `sm` has run. `features`: of the blocks that were looked at."""
        before, self.lines = self.lines, None
        codec = lines_codec(self.gpu.l2.line, self.sets)
        name = lines_name(self.gpu, before, features.blocks.tolist()) if sm.kept is not None else ""
        self.lines = sm.kept.get(codec, name) if sm.kept is not None else None
        if self.lines is None:
            self.lines = self._left(sm, features, before)
            if sm.kept is not None and self.lines is not None:
                sm.kept.put(codec, name, self.lines)

    def _left(self, sm: TraceSm, features: BlockFeatures, before: LeftLines | None) -> LeftLines | None:
        from ppt_gpu.sm.lowering.global_memory import touched_lines

        accesses = sm.traces.whole_grid(features)
        if accesses is None:
            filled = self.capacity * self.gpu.l2.line // self.gpu.l2.sector
            last = 2 if self.gpu.l2.dirty_share else 1  # times the L2: dirty lines outlive others
            accesses = sm.traces.last_blocks(features, last * filled)
        if accesses is None:
            return None
        trace = sm.traces.run(features.blocks[:: -(-len(features) // SOME)].tolist())
        heap = Heap.of(trace.ranges, sm.gpu)
        trace = heap.trace(trace)
        if before is None:
            dirty_capacity = int(self.capacity * self.gpu.l2.dirty_share)
            before = LeftLines.copied(trace.ranges, self.capacity, self.gpu.l2.line, dirty_capacity, self.sets)
        size = np.uint64(self.gpu.l2.line)
        address, written = touched_lines(sm.kernel, trace, self.gpu, heap.accesses(accesses))
        blocks_before = int(accesses.blocks[0]) / len(accesses.blocks) if len(accesses.blocks) else 0.0
        return before.used(address // size * size, written, blocks_before)
