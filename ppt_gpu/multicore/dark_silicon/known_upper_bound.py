"""The upper-bound model for known cores (Blem, figure 4.17): seconds of kernels on symmetric chips of them.

S-cores: clocks of their files, CPI_exe by algorithm 3.1 from their SPECmarks, the best core having the study's CPI.
M-cores: lanes, clock and threads of the GPU's file, and the study's CPI a lane. Both: miss rates by capacity, one miss
for every line of the footprint that a cache does not hold, and equations 3.1 to 3.4. GPUs before compute capability 2.0
have no cache: every access of global memory leaves the chip, in the transactions of its warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.core import SCore
from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.device_scaling import Node
from ppt_gpu.multicore.base.upper_bound import access_time, bandwidth_bound, core_performance
from ppt_gpu.multicore.core_models.exe_cpi import cpi_closed, goal
from ppt_gpu.multicore.dark_silicon.amdahl import speedup
from ppt_gpu.multicore.dark_silicon.known_cores import KnownCore, KnownCores
from ppt_gpu.multicore.dark_silicon.study import Study
from ppt_gpu.multicore.dark_silicon.topology import performance
from ppt_gpu.spec import Gpu, load_gpu

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kernels:
    """What the upper-bound model reads of kernels: arrays over them, counts of the whole run by thread."""

    names: tuple[str, ...]
    instructions: Array
    accesses: Array  # loads and stores
    footprint: Array  # distinct bytes
    off_chip: Array  # share of the accesses that leave an SM without caches
    moved: Callable[[Gpu], Array]  # B that such an access moves by the rules of a GPU, mean

    @property
    def loads(self) -> Array:
        """r_ls."""
        return self.accesses / self.instructions

    def misses(self, size: float, line: float) -> Array:
        """Misses per access of a cache of `size` bytes; 1 without a cache."""
        missing = np.maximum(self.footprint - size, 0.0) / line
        return np.minimum(missing / np.maximum(self.accesses, 1.0), 1.0)


class UpperBoundTime:
    """Seconds on a chip, as `ppt_gpu.multicore.dark_silicon.known_projection.ChipTime`, by the upper-bound model."""

    def __init__(self, known: KnownCores, kernels: Kernels, study: Study) -> None:
        self.known = known
        self.kernels = kernels
        self.study = study
        self.s_cores = {core.name: load_core(core.file) for core in known.of("s")}
        self.gpus = {core.name: load_gpu(core.file) for core in known.of("m")}
        self.best = max(self.s_cores.values(), key=lambda core: core.specmark)

    def __call__(self, core: KnownCore, node: Node, count: int) -> Array:
        """Equation 2.1 over the serial and parallel rates of table 2.3, in seconds for each kernel."""
        if core.kind == "s":
            one, bound = self._s(self.s_cores[core.name], node)
            alone = one
        else:
            gpu = self.gpus[core.name]
            one, bound = self._m(gpu, node, self._threads(gpu))
            alone, _ = self._m(gpu, node, 1)
        serial, parallel = performance("symmetric", count, light_alone=alone, light=one, light_bound=bound)
        return np.asarray(self.kernels.instructions / speedup(self.known.parallel[core.kind], serial, parallel))

    def _wait(self, first: float, m1: Array, m2: Array, clock: float) -> Array:
        memory = self.study.memory
        return access_time(m1, m2, first, memory.l2_latency, memory.latency * clock / self.study.s_core.fastest)

    def _bound(self, line: float | Array, m1: Array, m2: Array) -> Array:
        return bandwidth_bound(self.known.bandwidth, line, self.kernels.loads, m1, m2)

    def _misses(self, core: SCore) -> tuple[Array, Array]:
        """(m_L1, m_L2): the last level, private or shared, is the L2 of the model."""
        m1 = self.kernels.misses(core.l1.size, core.line)
        last = self.kernels.misses(core.levels[-1].size, core.line)
        return m1, np.divide(last, m1, out=np.zeros_like(m1), where=m1 > 0)

    def _s(self, core: SCore, node: Node) -> tuple[Array, Array]:
        """(P_C, P_B) of an S-core."""
        first, loads = self.study.s_core.l1_latency, self.kernels.loads
        top = self._misses(self.best)
        fastest = core_performance(
            self.best.clock, self.study.s_core.cpi, 1, loads, self._wait(first, *top, self.best.clock)
        ).performance
        # calibrated with the caches of the best core: the scores differ by the cores, their caches come on top
        cpi = cpi_closed(
            core.clock,
            goal(core.specmark, self.best.specmark, fastest),
            loads,
            self._wait(first, *top, core.clock),
            name=core.name,
        )
        own, clock = self._misses(core), core.clock * node.clock
        rate = core_performance(clock, cpi, 1, loads, self._wait(first, *own, clock)).performance
        return rate, self._bound(core.line, *own)

    def _threads(self, gpu: Gpu) -> float:
        """Threads that a lane has to choose from."""
        return gpu.sm.max_warps * gpu.sm.warp_size / gpu.pipes["fp32"].lanes

    def _m(self, gpu: Gpu, node: Node, threads: float) -> tuple[Array, Array]:
        """(P_C, P_B) of an SM, all lanes with `threads` each, or of one lane with one thread."""
        core = self.study.m_core
        line: float | Array = self.study.memory.line
        if gpu.compute_capability >= (2, 0):
            m1 = self.kernels.misses(0.0, self.study.memory.line)
            last = self.kernels.misses(float(gpu.l2.size), self.study.memory.line)
            m2 = np.divide(last, m1, out=np.zeros_like(m1), where=m1 > 0)
        else:
            m1, m2, line = self.kernels.off_chip, np.ones_like(self.kernels.off_chip), self.kernels.moved(gpu)
        clock = gpu.sm.clock * node.clock
        waiting = self._wait(core.l1_latency, m1, m2, clock)
        one = core_performance(clock, core.cpi, threads, self.kernels.loads, waiting).performance
        lanes = gpu.pipes["fp32"].lanes if threads > 1 else 1
        return lanes * one, self._bound(line, m1, m2)
