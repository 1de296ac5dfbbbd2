"""The description of an S-core, a single-threaded CPU core as Blem's model sees it (Table 4.1, core level inputs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ppt_gpu.multicore.base.operations import lane_bytes
from ppt_gpu.spec.gpu import Source


@dataclass(frozen=True)
class CoreOperation:
    """How a core executes one class of operation."""

    latency: float  # l_i, cycles until a dependent operation may start
    uops: tuple[tuple[int, ...], ...]  # M(i, mu): the ports that may run each micro-op
    blocking: float = 0.0  # cycles for which nothing else can start on its unit, 0: pipelined


@dataclass(frozen=True)
class CacheLevel:
    size: int  # B that one core may fill
    latency: float  # t, cycles from the load to its use


@dataclass(frozen=True)
class SCore:
    """One core and its share of the chip. Cycles are core cycles."""

    name: str
    title: str
    out_of_order: bool
    clock: float  # nu, Hz
    instruction_width: int  # instructions decoded a cycle
    issue_width: int  # D, micro-ops a cycle to the execution units
    window: int  # W, instructions; D for in-order cores
    ports: int
    vector_bytes: int  # of a SIMD register as float code uses it; 4: scalar code only
    outstanding_misses: int  # of the last cache, in flight at once
    vector_memory_cycles: float  # that a SIMD load or store takes beyond a scalar one
    drain: float  # L_dr, cycles
    front_end: float  # L_fe, cycles
    l1: CacheLevel
    l2: CacheLevel
    l3: CacheLevel | None
    line: int  # b, B
    memory_latency: float  # s from a miss of the last cache to the data
    bandwidth: float  # BW_max of the chip, B/s
    page_bytes: int
    dtlb_entries: int
    itlb_latency: float  # t_ITLB, cycles a miss
    dtlb_latency: float  # t_DTLB, cycles a miss
    operations: Mapping[str, CoreOperation]
    cores: int  # on the chip
    power: float  # W a core at 45 nm
    area: float  # mm2 a core at 45 nm
    specmark: float
    notes: str
    sources: Mapping[str, Source]

    @property
    def memory_cycles(self) -> float:
        """t_mem, cycles."""
        return self.memory_latency * self.clock

    @property
    def levels(self) -> tuple[CacheLevel, ...]:
        """The caches, nearest first."""
        return (self.l1, self.l2) if self.l3 is None else (self.l1, self.l2, self.l3)

    def lanes(self, operation: str) -> int:
        """Lanes of a SIMD instruction of this class; 1 without SIMD."""
        return max(1, self.vector_bytes // lane_bytes(operation))
