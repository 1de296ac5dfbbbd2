"""Nugteren's model on a launch (HPCA 2014): the misses of one SM's L1, and what they come from.

Four runs in fake time differ by one thing each, and so do their misses: compulsory (first uses), capacity (one set of
all lines), associativity (the sets), latency (lines on their way count as misses), MSHRs. Loads alone: the stores of a
Fermi pass the L1 by. Times are of the published configuration: they are not cycles, but accesses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.models.base.access_stream import caches_of
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.caches.nugteren_loop import UNLIMITED, FakeCache, WarpLines, fake_time_distances
from ppt_gpu.sm.program.machine import Machine, fermi_place, uses_l1
from ppt_gpu.sm.program.program import KIND_LOAD, Program

#: of the released configuration: mean and deviation of the memory's latency in fake time
LATENCY, DEVIATION = 100, 5.0
_SEED = 2014
MAPPINGS = ("modulo", "xor", "fermi")
#: by `l1.index`
MAPPING_OF = {"linear": "modulo", "hash": "xor", "fermi": "fermi"}


def set_of(lines: NDArray[np.int64], sets: int, mapping: str) -> NDArray[np.int64]:
    """The set of each line number in a cache of `sets` sets. PptError for an unknown mapping."""
    number = np.asarray(lines, np.int64)
    if mapping == "modulo":
        return number % sets
    if mapping == "xor":
        return (number % sets ^ number // sets % sets) % sets
    if mapping == "fermi":
        return fermi_place(number.view(np.uint64)).view(np.int64) % sets
    raise PptError(f"unknown mapping of lines to sets '{mapping}'", hint=did_you_mean(mapping, MAPPINGS))


@dataclass(frozen=True)
class MissClasses:
    """Lines that loads asked for, and misses by cause; a cause that saves misses counts below 0."""

    accesses: int
    compulsory: int
    capacity: int
    associativity: int
    latency: int
    mshr: int

    @property
    def misses(self) -> int:
        return sum(self.by_cause().values())

    def by_cause(self) -> dict[str, int]:
        """cause -> misses, in the order in which they are told apart."""
        return {name: count for name, count in vars(self).items() if name != "accesses"}


def miss_classes(
    lines: WarpLines, sets: NDArray[np.int64], ways: int, mshrs: int, resident: int
) -> tuple[MissClasses, NDArray[np.int64]]:
    """Of a cache whose lines belong to `sets` [L] of `ways` lines each; and the reuse distances [T] with everything."""
    extra = latency_noise(len(lines.line))
    total = (int(sets.max(initial=0)) + 1) * ways
    none = np.zeros_like(extra)
    whole = FakeCache(np.zeros_like(sets), total, UNLIMITED, 0, none)
    runs = (
        whole,
        FakeCache(sets, ways, UNLIMITED, 0, none),
        FakeCache(sets, ways, UNLIMITED, LATENCY, extra),
        FakeCache(sets, ways, mshrs, LATENCY, extra),
    )
    distances = [fake_time_distances(lines, run, resident) for run in runs]
    misses = [_misses(found, run.ways) for found, run in zip(distances, runs, strict=True)]
    compulsory = len(np.unique(lines.line))
    classes = MissClasses(
        accesses=len(lines.line),
        compulsory=compulsory,
        capacity=misses[0] - compulsory,
        associativity=misses[1] - misses[0],
        latency=misses[2] - misses[1],
        mshr=misses[3] - misses[2],
    )
    return classes, distances[-1]


def launch_misses(inputs: ModelInputs) -> tuple[MissClasses, NDArray[np.bool_]]:
    """The misses of the L1 of one SM, and which transactions of the program hit. DoesNotApply when no load looks in."""
    program, machine = inputs.program, caches_of(inputs)
    lines, chosen, used = _loaded(program, machine)
    mapping = MAPPING_OF[inputs.gpu.l1.index]
    number = (program.line_address[used] // np.uint64(program.line_bytes)).astype(np.int64)
    sets = set_of(number, machine.l1_sets, mapping)
    found, distance = miss_classes(lines, sets, machine.l1_ways, machine.mshrs, inputs.resident_blocks)
    hit = np.zeros(len(program.tx_line), np.bool_)
    hit[chosen] = (distance >= 0) & (distance < machine.l1_ways)
    return found, hit


def _loaded(program: Program, machine: Machine) -> tuple[WarpLines, NDArray[np.bool_], NDArray[np.int32]]:
    """What the warps load through the L1, which transactions of the program that is, and the lines' ids."""
    ops = entry_ops(program)
    kept = uses_l1(program, machine)[ops] & (program.op_kind[ops] == KIND_LOAD)
    count = np.diff(program.access_start)
    chosen = np.repeat(kept, count) & (program.tx_line >= 0)
    if not chosen.any():
        raise DoesNotApply("no load looks into the L1")
    used, line = np.unique(program.tx_line[chosen], return_inverse=True)
    per_access = np.add.reduceat(np.append(chosen, False).astype(np.int64), program.access_start[:-1])
    per_access[count == 0] = 0
    before = np.concatenate(([0], np.cumsum(kept)))
    lines = WarpLines(
        block_warp=program.block_warp,
        warp_access=before[program.warp_access],
        access_start=np.concatenate(([0], np.cumsum(per_access[kept]))).astype(np.int64),
        line=line.astype(np.int64),
    )
    return lines, chosen, used


def latency_noise(count: int) -> NDArray[np.int64]:
    """[count] |N(0, DEVIATION)|, rounded; always the same."""
    return np.abs(np.rint(np.random.default_rng(_SEED).normal(0.0, DEVIATION, count))).astype(np.int64)


def _misses(distance: NDArray[np.int64], ways: int) -> int:
    return int(((distance < 0) | (distance >= ways)).sum())
