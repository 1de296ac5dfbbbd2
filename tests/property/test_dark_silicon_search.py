"""The vectorised search and the closed form of algorithm 3.1 against plain loops that follow the text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.multicore.base.device_scaling import Node, load_scaling
from ppt_gpu.multicore.base.suite import Suite, load_suite
from ppt_gpu.multicore.base.upper_bound import core_performance
from ppt_gpu.multicore.core_models.exe_cpi import cpi_closed, cpi_search
from ppt_gpu.multicore.dark_silicon.search import search
from ppt_gpu.multicore.dark_silicon.study import Study, load_study


@given(
    clock=st.floats(1e8, 1e10),
    cpi=st.floats(1e-3, 100),
    loads=st.floats(0.01, 1),
    t=st.floats(0.5, 500),
)
def test_search_of_cpi_finds_the_closed_form(clock: float, cpi: float, loads: float, t: float) -> None:
    wanted = float(core_performance(clock, cpi, 1, loads, t).performance)
    tolerance = 1e-9 * (1 + t * loads / cpi)  # what cancels in clock / wanted - t r_ls
    assert float(cpi_closed(clock, wanted, loads, t)) == pytest.approx(cpi, rel=tolerance)
    assert cpi_search(clock, wanted, loads, t) == pytest.approx(cpi, rel=tolerance)


class Plain:
    """One benchmark on one chip, number by number, from the equations of chapters 2 and 3."""

    def __init__(self, study: Study, suite: Suite, node: Node, age: int) -> None:
        self.study, self.node, self.age = study, node, age
        self.f, self.r = float(suite.parallel[0]), float(suite.loads[0])
        self.a1, self.b1 = float(suite.l1_alpha[0]), float(suite.l1_beta[0])
        self.a2, self.b2 = float(suite.l2_alpha[0]), float(suite.l2_beta[0])

    def m1(self, size: float, threads: float) -> float:
        share = size / threads if self.study.sharing == "even" else size
        return (share / self.b1 + 1) ** (1 - self.a1)

    def m2(self, threads: float, age: int) -> float:
        size = self.study.memory.l2 * self.study.memory.l2_growth**age
        share = size / threads if self.study.sharing == "even" else size
        return (share / self.b2 + 1) ** (1 - self.a2)

    def t(self, first: float, m1: float, m2: float, clock: float) -> float:
        memory = self.study.memory.latency * clock / self.study.s_core.fastest
        return (1 - m1) * first + m1 * (1 - m2) * self.study.memory.l2_latency + m1 * m2 * memory

    def cpi(self, score: float) -> tuple[float, float]:
        """(clock, CPI_exe) of an S-core."""
        s, curve = self.study.s_core, self.study.frontier
        m1, m2 = self.m1(s.l1, 1), self.m2(1, 0)
        best = s.fastest / (s.cpi + self.t(s.l1_latency, m1, m2, s.fastest) * self.r)
        clock = s.slowest + (s.fastest - s.slowest) * (score - curve.low) / (curve.high - curve.low)
        return clock, clock * curve.high / (score * best) - self.t(s.l1_latency, m1, m2, clock) * self.r

    def rate(
        self, clock: float, cpi: float, first: float, m1: float, m2: float, threads: float, node: Node
    ) -> tuple[float, float]:
        """(P_C, P_B)."""
        now = clock * node.clock if self.study.clock_gain == "clock" else clock
        eta = min(1.0, threads / (1 + self.t(first, m1, m2, now) * self.r / cpi))
        gain = 1.0 if self.study.clock_gain == "clock" else node.clock
        memory = self.study.memory
        return eta * now / cpi * gain, memory.bandwidth / (memory.line * self.r * m1 * m2)

    def s(self, score: float, threads: float, running: float, node: Node, age: int) -> tuple[float, float]:
        core = self.study.s_core
        clock, cpi = self.cpi(score)
        return self.rate(clock, cpi, core.l1_latency, self.m1(core.l1, threads), self.m2(running, age), threads, node)

    def m(self, threads: int, running: float) -> tuple[float, float]:
        core = self.study.m_core
        lanes = core.lanes if threads > 1 else 1
        m1, m2 = self.m1(core.l1, threads * lanes), self.m2(running, self.age)
        one, bound = self.rate(core.clock, core.cpi, core.l1_latency, m1, m2, threads, self.node)
        return lanes * one, bound

    def time(self, serial: float, parallel: float) -> float:
        return (1 - self.f) / serial + self.f / parallel

    def best(self, organisation: str, topology: str, first: Node) -> float:
        study, curve = self.study, self.study.frontier
        scores = [float(score) for score in curve.scores(study.points)]
        alone = min(self.s(study.baseline_score, 1, 1, first, 0))
        shared, limit = self.s(study.baseline_score, 1, study.baseline_cores, first, 0)
        base = alone, min(study.baseline_cores * shared, limit)
        best = math.nan
        for low in scores if organisation == "cpu" else [study.m_core.score]:
            for high in scores if topology != "symmetric" else [math.nan]:
                if organisation == "cpu" and high < low:
                    continue
                found = self.chip(organisation, topology, low, high)
                if found is None:
                    continue
                if study.speedup == "work":
                    gain = self.time(*base) / self.time(*found)
                else:
                    gain = 1 / self.time(found[0] / base[0], found[1] / base[1])
                best = gain if math.isnan(best) else max(best, gain)
        return best

    def chip(self, organisation: str, topology: str, low: float, high: float) -> tuple[float, float] | None:
        """(P_1, P_inf), or None where it does not fit."""
        study, curve = self.study, self.study.frontier
        area, power = float(curve.area(low)) * self.node.area, float(curve.power(low)) * self.node.power
        big, hot = float(curve.area(high)) * self.node.area, float(curve.power(high)) * self.node.power
        room, watts = study.budget.area, study.budget.power
        if topology == "symmetric":
            n = min(room / area, watts / power)
        elif topology == "asymmetric":
            n = min((room - big) / area, (watts - hot) / power)
        elif topology == "dynamic":
            n = min((room - big) / area, watts / power)
        else:
            area *= 1 + study.overhead
            n = min(room / area, watts / power)
        if study.rounding != "none":
            n = math.floor(n + 1e-9) if study.rounding == "floor" else round(n)
        if n < 1 or hot > watts or (topology == "composed" and n * area < big):
            return None
        running = n * (study.s_core.threads if organisation == "cpu" else study.m_core.threads * study.m_core.lanes)
        running += topology == "asymmetric"
        if organisation == "cpu":
            light, limit = self.s(low, study.s_core.threads, running, self.node, self.age)
            single = self.s(low, 1, 1, self.node, self.age)
        else:
            light, limit = self.m(study.m_core.threads, running)
            single = self.m(1, 1)
        together = n * light
        if topology == "asymmetric":
            together += self.s(high, 1, running, self.node, self.age)[0]
        serial = min(single) if topology == "symmetric" else min(self.s(high, 1, 1, self.node, self.age))
        return serial, min(together, limit)


@settings(max_examples=12, deadline=None)
@given(
    budget=st.tuples(st.sampled_from([40, 111, 300]), st.sampled_from([30, 125])),
    gain=st.sampled_from(["clock", "performance"]),
    speedup=st.sampled_from(["work", "literal"]),
    sharing=st.sampled_from(["even", "none"]),
    rounding=st.sampled_from(["none", "floor", "round"]),
    threads=st.sampled_from([1, 2]),
    growth=st.sampled_from([1.0, 2.0]),
    benchmark=st.sampled_from(load_suite("parsec").names),
    table=st.sampled_from(["itrs", "conservative", "foundry_speed"]),
)
def test_search_against_loops(
    budget: tuple[int, int], gain: str, speedup: str, sharing: str, rounding: str, threads: int, growth: float,
    benchmark: str, table: str,
) -> None:  # fmt: skip
    changes = [f"budget.area={budget[0]} mm2", f"budget.power={budget[1]} W", "frontier.points=7"]
    changes += [f"method.clock_gain={gain}", f"method.speedup={speedup}", f"method.sharing={sharing}"]
    changes += [f"method.rounding={rounding}", f"s_core.threads={threads}", f"memory.l2_growth={growth}"]
    study, suite, scaling = load_study(overrides=changes), load_suite("parsec").only(benchmark), load_scaling(table)
    ages = {node.name: (age, node) for age, node in enumerate(scaling.nodes)}
    for chips in search(study, suite, scaling):
        age, node = ages[chips.node]
        expected = Plain(study, suite, node, age).best(chips.organisation, chips.topology, scaling.nodes[0])
        assert chips.speedup[0] == pytest.approx(expected, rel=1e-9, nan_ok=True)
