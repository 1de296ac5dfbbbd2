"""The cores of a study for one suite: S-cores along the frontier (algorithm 3.1) and the M-core, at any node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.device_scaling import Node
from ppt_gpu.multicore.base.suite import Suite
from ppt_gpu.multicore.base.upper_bound import access_time, bandwidth_bound, core_performance
from ppt_gpu.multicore.base.values import Values
from ppt_gpu.multicore.core_models.exe_cpi import clock_at, cpi_closed, goal
from ppt_gpu.multicore.dark_silicon.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SCoreSet:
    """S-cores: score and clock at 45 nm [core], CPI_exe [benchmark, core]."""

    score: Array
    clock: Array
    cpi: Array


class CoreModel:
    """Performance of the cores of `study` running `suite`. Arrays have the benchmarks first, then [heavy, light]."""

    def __init__(self, study: Study, suite: Suite, reference: Study | None = None) -> None:
        """`reference`: the study under which S-cores are calibrated and the baseline runs, in a sweep of `study`."""
        self.study = study
        self.suite = suite
        self.reference = reference or study

    def column(self, values: Array, axes: int) -> Array:
        """A value a benchmark, with `axes` axes of length one behind."""
        return values.reshape(-1, *(1,) * axes)

    def s_cores(self, score: Array) -> SCoreSet:
        """The cores at `score`, calibrated by algorithm 3.1 at 45 nm, each alone with the reference's whole L2.

        Raises PptError, with benchmark and value, where CPI_exe would not be positive.
        """
        study, suite = self.reference, self.suite
        curve, cores = study.frontier, study.s_core
        clock = clock_at(score, (curve.low, curve.high), (cores.slowest, cores.fastest))
        m1, m2 = suite.l1_misses(cores.l1), suite.l2_misses(study.memory.l2)
        t_best = self.wait(cores.l1_latency, m1, m2, cores.fastest)
        best = core_performance(cores.fastest, cores.cpi, 1, suite.loads, t_best).performance
        rows = [
            cpi_closed(
                clock,
                goal(score, curve.high, best[row]),
                suite.loads[row],
                self.wait(cores.l1_latency, m1[row], m2[row], clock),
                name=name,
            )
            for row, name in enumerate(suite.names)
        ]
        return SCoreSet(score, clock, np.array(rows))

    @cached_property
    def frontier(self) -> SCoreSet:
        """The cores at the points of the study's frontier."""
        return self.s_cores(self.study.frontier.scores(self.study.points))

    def wait(self, l1_latency: float, m1: Values, m2: Values, clock: Values) -> Array:
        """Equation 3.3 with a memory latency that is fixed in seconds."""
        memory = self.study.memory
        cycles = memory.latency * np.asarray(clock) / self.study.s_core.fastest
        return access_time(m1, m2, l1_latency, memory.l2_latency, cycles)

    def rate(
        self, node: Node, l1_latency: float, clock: Array, cpi: Values, threads: int, m1: Array, m2: Array
    ) -> Array:
        """P_C at `node` in instructions/s. All arrays broadcast to [benchmark, heavy, light]."""
        raises_clock = self.study.clock_gain == "clock"
        now = clock * node.clock if raises_clock else clock
        waiting = self.wait(l1_latency, m1, m2, now)
        found = core_performance(now, cpi, threads, self.column(self.suite.loads, 2), waiting).performance
        return found if raises_clock else found * node.clock

    def sharers(self, threads: Values) -> Array:
        """How many share a cache that `threads` threads use, with the axes [heavy, light]."""
        sharing = np.atleast_2d(np.asarray(threads, dtype=float))
        return sharing if self.study.sharing == "even" else np.ones_like(sharing)

    def l2_size(self, age: int) -> float:
        """Bytes of the L2 at the node that comes `age` nodes after the first."""
        return self.study.memory.l2 * self.study.memory.l2_growth**age

    def bound(self, m1: Array, m2: Array) -> Array:
        """P_B in instructions/s."""
        memory = self.study.memory
        return bandwidth_bound(memory.bandwidth, memory.line, self.column(self.suite.loads, 2), m1, m2)

    def s_rate(
        self, node: Node, age: int, clock: Array, cpi: Array, threads: int, running: Values
    ) -> tuple[Array, Array]:
        """(P_C, P_B) of an S-core with `threads` threads while `running` threads run on the whole chip.

        `clock` broadcasts to [heavy, light], `cpi` to [benchmark, heavy, light].
        """
        cores = self.study.s_core
        m1 = self.suite.l1_misses(cores.l1, self.sharers(threads))
        m2 = self.suite.l2_misses(self.l2_size(age), self.sharers(running))
        return self.rate(node, cores.l1_latency, clock, cpi, threads, m1, m2), self.bound(m1, m2)

    def m_rate(self, node: Node, age: int, threads: int, running: Values) -> tuple[Array, Array]:
        """(P_C, P_B) of the M-core: one lane with one thread if `threads` is 1, else all lanes with `threads` each."""
        core = self.study.m_core
        lanes = core.lanes if threads > 1 else 1
        m1 = self.suite.l1_misses(core.l1, self.sharers(threads * lanes))
        m2 = self.suite.l2_misses(self.l2_size(age), self.sharers(running))
        one = self.rate(node, core.l1_latency, np.full((1, 1), core.clock), core.cpi, threads, m1, m2)
        return lanes * one, self.bound(m1, m2)
