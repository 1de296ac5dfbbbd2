"""Warnings about the use of shared memory that a recorded trace shows: uninitialised reads, and races between warps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.launch.layout import Layout
from ppt_gpu.emulator.races.accesses import PathAccesses, Race, may_name_other_blocks, some_blocks
from ppt_gpu.emulator.races.asynchronous import EarlyRead, early_reads
from ppt_gpu.emulator.races.races import READ_AFTER_WRITE, races
from ppt_gpu.emulator.races.reads import unwritten_reads
from ppt_gpu.emulator.trace.recorded_trace import RecordedTrace
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.module import Instruction, Kernel


def with_shared_warnings(
    trace: Trace, kernel: Kernel, path: str, places: Layout, copies: NDArray[np.int64], grid: Sequence[int]
) -> Trace:
    """`trace` with its warnings, each with the places in the PTX: one for each instruction that reads what nobody
    wrote, one for each that races with others in one way, and one for each that reads what a copy may not have written
    yet. `copies`: notes of the asynchronous ones, of a launch of this grid."""
    user, room = places.shared_bytes, places.shared_room
    if room == 0:
        return trace
    few, accesses = _few_blocks(kernel, trace)
    texts = []
    for index, _, byte in unwritten_reads(kernel, few, accesses, user, room - user):
        i = kernel.instructions[index]
        texts.append(
            f"{path}:{i.line}: '{i.opcode}' reads shared memory that no thread of its block ever "
            f"wrote (byte {byte}): its value is undefined"
        )
    texts += race_texts(races(kernel, few, accesses, room), kernel, path)
    if len(copies):
        block, (x, y, _) = int(few.blocks[0]), grid
        ctaid = (block % x, block // x % y, block // (x * y))
        early = early_reads(kernel, few, accesses, copies, ctaid, room)
        texts += [early_text(each, kernel, path) for each in early]
    return replace(trace, warnings=(*trace.warnings, *texts)) if texts else trace


def _few_blocks(kernel: Kernel, trace: Trace) -> tuple[Trace, PathAccesses]:
    """A trace of those blocks that are looked at, where that spares making the accesses of all, and its accesses."""
    if isinstance(trace, RecordedTrace) and not may_name_other_blocks(kernel):
        few, patterns = trace.stored(some_blocks(trace))
        return few, PathAccesses.of(kernel, few, patterns, list(range(len(few.blocks))))
    return trace, PathAccesses.of(kernel, trace)


def early_text(found: EarlyRead, kernel: Kernel, path: str) -> str:
    """Of a read before the copy of what it reads was waited for."""
    read, copy = kernel.instructions[found.read], kernel.instructions[found.copy]
    both = found.read_warp == found.copy_warp
    missing = "no wait for the copy" if both else "no wait for the copy and barrier behind it"
    who = "the same warp" if both else f"warp {found.copy_warp}"
    return (
        f"{path}:{read.line}: {_named(read)} of warp {found.read_warp} reads byte {found.byte} of shared memory, which "
        f"{_named(copy)} on line {copy.line} of {who} writes asynchronously, with {missing} between them"
    )


def race_texts(found: list[Race], kernel: Kernel, path: str) -> Iterator[str]:
    """One text for each store and kind of hazard: with the first access that it races with, and how many more do."""
    groups: dict[tuple[str, int], list[Race]] = {}
    for race in found:
        store = race.first if race.kind == READ_AFTER_WRITE else race.second
        groups.setdefault((race.kind, store), []).append(race)
    for (kind, _), group in groups.items():
        race = group[0]
        first, second = kernel.instructions[race.first], kernel.instructions[race.second]
        others = f"; {len(group) - 1} more instructions race with it" if len(group) > 2 else ""
        others = "; one more instruction races with it" if len(group) == 2 else others
        does, did = ("reads" if kind.startswith("read") else "writes"), ("reads" if kind.endswith("read") else "writes")
        yield (
            f"{path}:{second.line}: a race on shared memory ({kind}): {_named(second)} of warp {race.second_warp} "
            f"{does} byte {race.byte}, which {_named(first)} on line {first.line} of warp {race.first_warp} {did}, "
            f"with no barrier between them (block {race.block}){others}"
        )


def _named(i: Instruction) -> str:
    return f"'{i.opcode}' (source line {i.source_line})" if i.source_line else f"'{i.opcode}'"
