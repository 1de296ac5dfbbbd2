"""The search for the fastest chip: every pair of cores of the frontier, by benchmark, node, organisation, topology.

The cores of a study for one suite: S-cores along the frontier (algorithm 3.1) and the M-core, at any node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.device_scaling import DeviceScaling, Node
from ppt_gpu.multicore.base.suite import Suite
from ppt_gpu.multicore.base.upper_bound import access_time, bandwidth_bound, core_performance
from ppt_gpu.multicore.base.values import Values
from ppt_gpu.multicore.core_models.exe_cpi import clock_at, cpi_closed, goal
from ppt_gpu.multicore.dark_silicon.amdahl import relative_speedup, speedup
from ppt_gpu.multicore.dark_silicon.chip import Cores, cores_within
from ppt_gpu.multicore.dark_silicon.study import Study
from ppt_gpu.multicore.dark_silicon.topology import ORGANISATIONS, TOPOLOGIES, performance

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


@dataclass(frozen=True)
class Chips:
    """The fastest chip of one node, organisation and topology for each benchmark; arrays over the benchmarks.

    `speedup` is not a number where not one core fits. `heavy` is not a number in symmetric chips.
    """

    node: str
    organisation: str
    topology: str
    speedup: Array  # over the study's baseline
    cores: Array  # light cores
    dark: Array  # share of the area
    light: Array  # score of the light cores (of the S-core with the M-core's area and power)
    heavy: Array
    power_limited: NDArray[np.bool_]
    bandwidth_limited: NDArray[np.bool_]  # the parallel part runs at P_B


def search(
    study: Study,
    suite: Suite,
    scaling: DeviceScaling,
    *,
    organisations: Sequence[str] = ORGANISATIONS,
    topologies: Sequence[str] = TOPOLOGIES,
    nodes: Sequence[str] = (),
    reference: Study | None = None,
) -> list[Chips]:
    """The fastest chips of every node, organisation and topology, in this order. Deterministic: first of equals.

    `nodes` are the names of the wanted ones, none means all. `reference` is the study of the baseline and of
    algorithm 3.1 where `study` is a change of it (`sweeps`).
    Raises PptError where no chip at all fits the budget of a node, and where algorithm 3.1 has no positive CPI_exe.
    """
    model = CoreModel(study, suite, reference)
    base = baseline(CoreModel(model.reference, suite), scaling.nodes[0])
    found = []
    for age, node in enumerate(scaling.nodes):
        if nodes and node.name not in nodes:
            continue
        chips = [_best(model, base, node, age, each, topology) for each in organisations for topology in topologies]
        if all(np.isnan(chip.speedup).all() for chip in chips):
            raise _too_small(study, node)
        found += chips
    return found


def baseline(model: CoreModel, node: Node) -> tuple[Array, Array]:
    """(P_1, P_inf) of the study's baseline chip at `node` for each benchmark, shape [benchmark, 1, 1]."""
    study = model.study
    cores = model.s_cores(np.array([study.baseline_score]))
    clock, cpi = cores.clock[None, :], cores.cpi[:, None, :]
    alone, bound_alone = model.s_rate(node, 0, clock, cpi, 1, 1.0)
    shared, bound = model.s_rate(node, 0, clock, cpi, 1, float(study.baseline_cores))
    return np.minimum(alone, bound_alone), np.minimum(study.baseline_cores * shared, bound)


def _best(model: CoreModel, base: tuple[Array, Array], node: Node, age: int, organisation: str, topology: str) -> Chips:
    study = model.study
    fits = _fitting(study, node, model.frontier.score, organisation, topology)
    count = np.maximum(fits.count, 1.0)  # chips that do not fit are computed too and ruled out below
    serial, parallel, bound = _speeds(model, node, age, organisation, topology, count)
    f = model.column(model.suite.parallel, 2)
    if study.speedup == "work":
        gain = relative_speedup(f, (serial, parallel), base)
    else:
        gain = speedup(f, serial / base[0], parallel / base[1])
    gain = np.where(fits.count >= 1, gain, -np.inf)
    shape = gain.shape
    flat = gain.reshape(shape[0], -1)
    at = flat.argmax(axis=1)
    best = flat[np.arange(shape[0]), at]
    heavy, light = np.unravel_index(at, shape[1:])
    good = np.isfinite(best)

    def chosen(values: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.broadcast_to(values, shape).reshape(shape[0], -1)[np.arange(shape[0]), at]

    scores = model.frontier.score
    return Chips(
        node.name,
        organisation,
        topology,
        np.where(good, best, np.nan),
        np.where(good, chosen(fits.count), 0.0),
        np.where(good, chosen(fits.dark), 1.0),
        scores[light] if organisation == "cpu" else np.full(shape[0], study.m_core.score),
        scores[heavy] if topology != "symmetric" else np.full(shape[0], np.nan),
        np.asarray(chosen(fits.power_limited), dtype=bool),
        np.asarray(chosen(parallel >= bound), dtype=bool),
    )


def _fitting(study: Study, node: Node, scores: Array, organisation: str, topology: str) -> Cores:
    """Cores within the budget, arrays [heavy, light]; no S-core chip has a heavy core slower than its light ones."""
    light = scores[None, :] if organisation == "cpu" else np.full((1, 1), study.m_core.score)
    heavy = scores[:, None] if topology != "symmetric" else np.full((1, 1), np.nan)
    curve = study.frontier
    found = cores_within(
        study.budget,
        topology,
        area=curve.area(light) * node.area,
        power=curve.power(light) * node.power,
        heavy_area=curve.area(heavy) * node.area,
        heavy_power=curve.power(heavy) * node.power,
        rounding=study.rounding,
        fusing=study.overhead,
    )
    if organisation == "cpu" and topology != "symmetric":
        return Cores(np.where(heavy >= light, found.count, 0.0), found.power_limited, found.dark)
    return found


def _speeds(
    model: CoreModel, node: Node, age: int, organisation: str, topology: str, count: Array
) -> tuple[Array, Array, Array]:
    """(P_1, P_inf, P_B of the parallel part), each [benchmark, heavy, light]."""
    cores, study = model.frontier, model.study
    beside = 1.0 if topology == "asymmetric" else 0.0
    if organisation == "cpu":
        clock, cpi, threads = cores.clock[None, :], cores.cpi[:, None, :], study.s_core.threads
        running = count * threads + beside
        light, bound = model.s_rate(node, age, clock, cpi, threads, running)
        alone, bound_alone = model.s_rate(node, age, clock, cpi, 1, 1.0)
    else:
        running = count * study.m_core.threads * study.m_core.lanes + beside
        light, bound = model.m_rate(node, age, study.m_core.threads, running)
        alone, bound_alone = model.m_rate(node, age, 1, 1.0)
    if topology == "symmetric":
        serial = np.asarray(np.minimum(alone, bound_alone))
        return serial, performance(topology, count, light_alone=alone, light=light, light_bound=bound)[1], bound
    serial = np.asarray(np.minimum(*_heavy(model, node, age, 1.0)))
    heavy = _heavy(model, node, age, running)[0]
    parallel = performance(topology, count, light_alone=alone, light=light, heavy=heavy, light_bound=bound)[1]
    return serial, parallel, bound


def _heavy(model: CoreModel, node: Node, age: int, running: float | Array) -> tuple[Array, Array]:
    """(P_C, P_B) of each core of the frontier as the heavy one, while `running` threads run on the chip."""
    cores = model.frontier
    return model.s_rate(node, age, cores.clock[:, None], cores.cpi[:, :, None], 1, running)


def _too_small(study: Study, node: Node) -> PptError:
    curve = study.frontier
    area, power = float(curve.area(curve.low)) * node.area, float(curve.power(curve.low)) * node.power
    return PptError(
        f"not one core fits the budget of {study.budget} at {node.name}",
        hint=f"the smallest takes {power:.3g} W and {area:.3g} mm2",
    )
