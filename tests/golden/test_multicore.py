"""Chips beyond one SM against the goldens: Blem chapters 2 and 3, dark silicon, Hill and Marty, Guz et al."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from goldens import golden, goldens
from guz import Machine, outcome

from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import load_suite, miss_rate
from ppt_gpu.multicore.base.upper_bound import (
    CorePerformance,
    access_time,
    bandwidth_bound,
    core_performance,
    latency_limit,
)
from ppt_gpu.multicore.core_models.exe_cpi import clock_at, cpi_closed, cpi_search, goal
from ppt_gpu.multicore.dark_silicon.amdahl import HillMarty, best_size, speedup
from ppt_gpu.multicore.dark_silicon.chip import Budget, cores_within
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.multicore.dark_silicon.topology import performance
from ppt_gpu.validate.tables.rows import Row, summaries


def close(case: dict[str, Any], expected: Any) -> Any:
    """`expected` within the golden's tolerance; ten digits are given, so tighter ones cannot be met."""
    return pytest.approx(expected, rel=max(case["tol"]["rel"], 1e-11))


def test_table_b1() -> None:
    case, suite = golden("bl.tableB1"), load_suite("parsec")
    keys = {"f_inf": "parallel", "r_ls": "loads", "aL1": "l1_alpha", "bL1": "l1_beta"}
    keys |= {"aL2": "l2_alpha", "bL2": "l2_beta"}
    found = {name: {old: getattr(suite, new)[row] for old, new in keys.items()} for row, name in enumerate(suite.names)}
    assert found == case["expected"]


def test_miss_rates() -> None:
    case, suite = golden("bl.missrate"), load_suite("parsec")
    found = zip(suite.l1_misses(case["inputs"]["L1"]), suite.l2_misses(case["inputs"]["L2"]), strict=True)
    for name, rates in zip(suite.names, found, strict=True):
        assert rates == close(case, case["expected"][name])


def core(given: dict[str, float]) -> CorePerformance:
    t = access_time(given["m1"], given["m2"], given["t1"], given["t2"], given["tm"])
    return core_performance(given["nu"], given["cpi"], given["T"], given["rls"], t)


@pytest.mark.parametrize("case", [golden("bl.upper.cpu"), golden("bl.upper.gpu_saturated")], ids=["cpu", "gpu"])
def test_upper_bound(case: dict[str, Any]) -> None:
    given, expected = case["inputs"], case["expected"]
    found = core(given)
    assert found.access_time == close(case, expected["t"])
    assert found.utilisation == close(case, expected["eta"])
    assert found.performance == close(case, expected["P_C"])
    bound = bandwidth_bound(given["BW"], given["b"], given["rls"], given["m1"], given["m2"])
    assert bound == close(case, expected["P_B"])


def test_limit_of_vanishing_cpi() -> None:
    case = golden("bl.upper.limit")
    given, found = case["inputs"], core(case["inputs"])
    assert found.performance == close(case, case["expected"]["P_C_limit"])
    limit = latency_limit(given["nu"], given["T"], given["rls"], found.access_time)
    assert limit == close(case, case["expected"]["P_C_limit"])


def test_algorithm_31() -> None:
    case = golden("bl.alg31")
    given, expected = case["inputs"], case["expected"]

    def wait(clock: float) -> float:
        memory = given["tmem_at_max"] * clock / given["nu_max"]
        return float(access_time(given["m1"], given["m2"], given["t1"], given["t2"], memory))

    best = float(core_performance(given["nu_max"], given["ell"], 1, given["rls"], wait(given["nu_max"])).performance)
    assert best == close(case, expected["P_max"])
    assert given["SPEC_k"] / given["SPEC_max"] == close(case, expected["speedup_goal"])
    clock = float(clock_at(given["SPEC_k"], (6, given["SPEC_max"]), (given["nu_k"], given["nu_max"])))
    assert clock == given["nu_k"]
    assert wait(clock) == close(case, expected["t_k"])
    wanted = float(goal(given["SPEC_k"], given["SPEC_max"], best))
    assert cpi_closed(clock, wanted, given["rls"], wait(clock)) == close(case, expected["CPI_exe_k"])
    assert cpi_search(clock, wanted, given["rls"], wait(clock)) == close(case, expected["CPI_exe_k"])


def test_equation_21() -> None:
    case = golden("bl.eq21")
    given = case["inputs"]
    assert speedup(given["f"], given["S1"], given["Sinf"]) == close(case, case["expected"]["speedup"])


@pytest.mark.parametrize("organisation", ["cpu", "gpu"])
@pytest.mark.parametrize("topology", ["symmetric", "asymmetric", "dynamic", "fused"])
def test_table_23(organisation: str, topology: str) -> None:
    case = golden("bl.table23")
    given = case["inputs"]
    alone, all_threads = (
        (given["PC_light"], given["PC_light"]) if organisation == "cpu" else (given["PC_M_1thread"], given["PC_M_T"])
    )
    found = performance(
        topology,
        given["N"],
        light_alone=alone,
        light=all_threads,
        heavy=given["PC_heavy"],
        light_bound=given["PB"],
        heavy_bound=given["PB"],
    )
    assert found == close(case, tuple(case["expected"][organisation][topology]))


def test_table_24_lies_on_the_frontier() -> None:
    case, curve = golden("bl.table24.frontier"), load_study().frontier
    for name, score in case["inputs"].items():
        expected = case["expected"][name]
        assert curve.area(score) == close(case, expected["area_frontier"])
        assert curve.power(score) == close(case, expected["power_frontier"])
        assert expected["power_table"] / curve.power(score) == pytest.approx(expected["power_ratio"], rel=1e-3)
        if name != "Sandybridge":
            assert curve.area(score) == pytest.approx(expected["area_table"], abs=0.051)


def test_error_metric() -> None:
    case = golden("bl.error_metric")
    given = zip(case["inputs"]["meas"], case["inputs"]["pred"], strict=True)
    rows = [Row("case", "chip", "mode", "level", measured, predicted, "times") for measured, predicted in given]
    assert [row.error for row in rows] == case["expected"]["errors"]
    assert summaries(rows)[0].mean == case["expected"]["avg_abs"]


@pytest.mark.parametrize(("name", "short"), [("itrs", "itrs"), ("conservative", "cons")])
def test_device_scaling(name: str, short: str) -> None:
    case, table = golden("ds.scaling"), load_scaling(name)
    expected = case["expected"][short]
    for node in table.nodes:
        short_name = node.name.removesuffix("nm")
        found = {"freq": node.clock, "power": node.power, "vdd": node.voltage, "cap": node.capacitance}
        assert found == {key: close(case, expected[key][short_name]) for key in found}
    assert [node.name for node in table.nodes] == [f"{name}nm" for name in expected["freq"]]


def test_frontier() -> None:
    case, curve = golden("ds.frontier"), load_study().frontier
    scores = np.array(case["inputs"]["q"])
    assert list(curve.area(scores)) == close(case, case["expected"]["A"])
    assert list(curve.power(scores)) == close(case, case["expected"]["P"])


@pytest.mark.parametrize(
    ("case", "table"),
    [(golden("ds.sym.q36.itrs"), "itrs"), (golden("ds.sym.q36.cons"), "conservative")],
    ids=["itrs", "conservative"],
)
def test_symmetric_chips_of_one_core(case: dict[str, Any], table: str) -> None:
    curve = load_study().frontier
    given = case["inputs"]
    for node in load_scaling(table).nodes:
        expected = case["expected"][node.name.removesuffix("nm")]
        area, power = curve.area(given["q"]) * node.area, curve.power(given["q"]) * node.power
        budget = Budget(given["area"], given["tdp"])
        found = cores_within(budget, "symmetric", area=area, power=power, rounding="floor")
        assert found.count == expected["N"]
        assert bool(found.power_limited) == (expected["limit"] == "power")
        assert found.dark == close(case, expected["dark"])
        each = given["q"] * node.clock
        assert speedup(given["f"], each, found.count * each) == close(case, expected["raw"])


def test_cores_of_each_topology() -> None:
    case, curve = golden("ds.topologies"), load_study().frontier
    given = case["inputs"]
    node = load_scaling(given["scaling"]).node(str(given["node"]))
    for topology, expected in case["expected"].items():
        found = cores_within(
            Budget(given["area"], given["tdp"]),
            topology,
            area=curve.area(given["qL"]) * node.area,
            power=curve.power(given["qL"]) * node.power,
            heavy_area=curve.area(given["qH"]) * node.area,
            heavy_power=curve.power(given["qH"]) * node.power,
            fusing=given["tau"],
        )
        assert found.count == close(case, expected)


@pytest.mark.parametrize("parallel", ["0.5", "0.9", "0.975", "0.99", "0.999"])
@pytest.mark.parametrize("topology", ["symmetric", "asymmetric", "dynamic"])
def test_hill_and_marty_optima(parallel: str, topology: str) -> None:
    case = golden("hm.n256")
    size, best = case["expected"][parallel][topology[: 4 if topology == "asymmetric" else 3]]
    found = best_size(topology, float(parallel), case["inputs"]["n"], case["inputs"]["r_step"])
    assert found == close(case, (size, best))


def test_hill_and_marty_point() -> None:
    case = golden("hm.point")
    given, expected = case["inputs"], case["expected"]
    found = HillMarty(given["f"], given["n"], given["r"])
    assert found.symmetric == close(case, expected["sym"])
    assert found.asymmetric == close(case, expected["asym"])
    assert found.dynamic == close(case, expected["dyn"])


@pytest.mark.parametrize("case", goldens("guz.n*"), ids=lambda case: case["id"])
def test_guz(case: dict[str, Any]) -> None:
    given, expected = case["inputs"], case["expected"]
    machine = Machine(
        given["NPE"], given["f"], given["cpi"], given["rm"], given["S_KB"] * 1024, given["alpha"],
        given["beta_KB"] * 1024, given["tc"], given["tm"], given["BW"], given["breg"],
    )  # fmt: skip
    found = outcome(machine, given["threads"])
    assert found.hit_rate == close(case, expected["P_hit"])
    assert found.access_time == close(case, expected["t_avg"])
    assert found.utilisation == close(case, expected["eta"])
    assert found.unlimited == close(case, expected["perf"])
    assert found.performance == close(case, expected["perf_bw"])


def test_guz_valley() -> None:
    case = golden("guz.valley")
    found = outcome(Machine(), np.array(case["inputs"]["threads"], dtype=float)).utilisation
    assert list(found) == close(case, case["expected"]["eta"])
    assert found[0] > found[1] > found[2] < found[3]


def test_the_printed_sign_of_the_miss_rate() -> None:
    assert miss_rate(50.0, 1.5, 100.0, literal=True) == pytest.approx(1 / math.sqrt(0.5))
    assert miss_rate(50.0, 1.5, 100.0) == pytest.approx(1 / math.sqrt(1.5))
