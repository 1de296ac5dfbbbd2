"""Hong and Kim's model against the worked numbers of the paper and of the specification, intermediates too."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from goldens import golden, goldens, holds
from hong_kim_cases import few_warps, many_memory_warps, much_computation, timeline

from ppt_gpu.models.hong_kim.counts import TABLE_7, TABLE_7_MANUAL, algorithm_2, comp_cycles
from ppt_gpu.models.hong_kim.hong_kim import HongKim, hong_kim, parallel_warps
from ppt_gpu.models.hong_kim.inputs import HongKimInputs
from ppt_gpu.models.hong_kim.tables import BENCHMARKS, MACHINES, MICRO_BENCHMARKS, TABLE_6
from ppt_gpu.spec import load_gpu


def table_1(given: dict[str, Any]) -> HongKimInputs:
    return HongKimInputs(
        mem_ld=given["Mem_LD"],
        dep_uncoal=given["dep_un"],
        dep_coal=given["dep_co"],
        freq=given["freq_ghz"],
        mem_bandwidth=given["bw_gbs"],
        threads_per_block=given["tpb"],
        blocks=given["blocks"],
        active_sms=given["act_sm"],
        active_blocks_per_sm=given["act_blk"],
        comp_insts=given["comp"],
        uncoal_mem_insts=given["un"],
        coal_mem_insts=given["co"],
        synch_insts=given["sync"],
        uncoal_per_mw=given["un_per"],
        load_bytes_per_warp=given["load_bytes"],
    )


def example() -> HongKimInputs:
    return table_1(golden("hk.table2.exact")["inputs"])


def terms(found: HongKim) -> dict[str, Any]:
    """Every term, under the names that the goldens use too."""
    values: dict[str, Any] = {step.symbol: step.value for step in found.steps}
    names = {"MWP_Without_BW_full": "MWP_Without_BW_full", "Rep": "#Rep", "CPI_app": "CPI_app"}
    return values | {name: values[symbol] for name, symbol in names.items()} | {"case": found.case}


@pytest.mark.parametrize("name", [record["id"] for record in goldens("hk.table2.*")])
def test_table_2(name: str) -> None:
    given = golden(name)["inputs"]
    holds(name, terms(hong_kim(table_1(given), mwp_digits=given.get("round_mwp"))))


def test_table_2_in_the_literal_form() -> None:
    exact = hong_kim(example())
    assert hong_kim(example(), literal=True).steps == exact.steps
    assert (exact["Exec_cycles_app"], exact["Synch_cost"]) == pytest.approx((38428.1875, 12300.0))


CASES = {
    "hk.case1": (many_memory_warps, (8, 2)),
    "hk.case2": (many_memory_warps, (4, 2)),
    "hk.case3": (much_computation, (8,)),
    "hk.case4": (much_computation, (4,)),
    "hk.case6": (few_warps, (1,)),
    "hk.case7": (few_warps, (2,)),
}


@pytest.mark.parametrize("name", [record["id"] for record in goldens("hk.case[1-7]")])
def test_cases_of_figures_5_to_8(name: str) -> None:
    case = golden(name)
    given = case["inputs"]
    equation, sizes = CASES[name]
    total = equation(*sizes, given["comp_p"], given["mem_p"], given["periods_per_warp"])
    by_events = timeline(given["N"], given["MWP"], given["comp_p"], given["mem_p"], given["periods_per_warp"])
    assert total == by_events == case["expected"]["total"]
    if "comp_periods" in case["expected"]:
        expected = case["expected"]
        periods = expected["comp_periods"] * given["comp_p"] + expected["mem_periods"] * given["mem_p"]
        assert periods == total


def test_case_5_contradicts_the_printed_guard() -> None:
    case = golden("hk.case5_conflict")
    given, expected = case["inputs"], case["expected"]
    # 8 blocks of one warp on one SM; the memory serves all of them; 100 instructions of 10 cycles
    inputs = HongKimInputs(
        mem_ld=given["Mem_L"], dep_uncoal=1, dep_coal=1, freq=1, mem_bandwidth=1e9, threads_per_block=32,
        blocks=given["N"], active_sms=1, active_blocks_per_sm=given["N"], comp_insts=90, uncoal_mem_insts=0,
        coal_mem_insts=given["mem_insts"], issue_cycles=10,
    )  # fmt: skip
    found, literal = hong_kim(inputs), hong_kim(inputs, literal=True)
    for result in (found, literal):
        assert (result["Comp_cycles"], result["Mem_cycles"], result["MWP"]) == (1000, 100, given["MWP"])
    assert found["Exec_cycles_app"] == expected["eq24"] and found.case == "eq24"
    assert literal["Exec_cycles_app"] == pytest.approx(expected["eq23_literal"]) and literal.case == "eq23"
    alone = hong_kim(replace(inputs, blocks=1, active_blocks_per_sm=1))
    assert alone["Exec_cycles_app"] == expected["single_warp_alone"] > literal["Exec_cycles_app"]


def test_rep() -> None:
    case = golden("hk.rep")
    given = case["inputs"]
    inputs = replace(
        example(),
        blocks=given["blocks"],
        active_sms=given["active_SMs"],
        active_blocks_per_sm=given["active_blocks"],
    )
    assert hong_kim(inputs)["#Rep"] == case["expected"]["Rep"]


def test_parallelism_of_the_machines() -> None:
    coalesced = replace(example(), uncoal_mem_insts=0, coal_mem_insts=6)
    for case in (golden("hk.fig22_peak"), golden("hk.gtx280_coal")):
        given = case["inputs"]
        found = hong_kim(
            replace(
                coalesced,
                mem_bandwidth=given["bw"],
                freq=given["freq"],
                load_bytes_per_warp=given["bytes"],
                mem_ld=given["Mem_LD"],
                active_sms=given["SMs"],
                dep_coal=given.get("dep_co", 4),
            )
        )
        holds(case["id"], terms(found))
    case = golden("hk.fig23_nobw")
    given = case["inputs"]
    found = hong_kim(replace(example(), dep_uncoal=given["dep_un"], uncoal_per_mw=given["un_per"]))
    holds("hk.fig23_nobw", terms(found))


def test_independent_requests() -> None:
    case = golden("hk.npw")
    given, expected = case["inputs"], case["expected"]
    asked = given["N"], given["mem_req"], given["ind_mem_req"]
    assert parallel_warps(*asked) == expected["Npw_corrected"]
    assert parallel_warps(*asked, literal=True) == expected["Npw_literal"]
    assert parallel_warps(4, 6, 0) == 4 and parallel_warps(4, 6, 0, literal=True) == 0
    assert math.isfinite(parallel_warps(4, 6, 6))


def test_independent_requests_shorten_the_time_of_few_warps_only() -> None:
    """Figure 26: INDEP is faster than DEP until N is above what the memory serves at once."""
    few = replace(example(), dep_uncoal=1, uncoal_per_mw=1, active_blocks_per_sm=1, synch_insts=0)
    many = replace(few, dep_uncoal=10, uncoal_per_mw=32, active_blocks_per_sm=5)
    assert hong_kim(replace(few, ind_mem_req=4)).cycles < 0.6 * hong_kim(few).cycles
    assert hong_kim(replace(many, ind_mem_req=4)).cycles == hong_kim(many).cycles
    # As printed, Eq 17 has cut MWP off at N before Eq 30 could raise it.
    assert hong_kim(replace(few, ind_mem_req=4), literal=True).cycles >= hong_kim(few).cycles


def test_long_latency_instructions() -> None:
    case = golden("hk.eq31")
    given = case["inputs"]
    found = comp_cycles(given["issue"], given["counts"], given["m"])
    assert found == pytest.approx(case["expected"]["Comp_cycles"])
    total = sum(given["counts"].values())
    mean = sum(count * given["m"][kind] for kind, count in given["counts"].items()) / total
    inputs = replace(example(), comp_insts=total - 6, m_factor=mean, issue_cycles=given["issue"])
    assert hong_kim(inputs)["Comp_cycles"] == pytest.approx(case["expected"]["Comp_cycles"])


@pytest.mark.parametrize("name", [record["id"] for record in goldens("hk.alg2.*")])
def test_algorithm_2(name: str) -> None:
    given, expected = golden(name)["inputs"], golden(name)["expected"]
    found = algorithm_2(given["sizeof"], Fraction(given["increment"]), not given["misaligned"])
    assert (found.count, found.size) == (expected["transactions"], expected["size"])


def test_table_3_and_the_shipped_gpus() -> None:
    for expected, (name, machine) in zip(golden("hk.table3")["expected"].values(), MACHINES.items(), strict=True):
        assert (machine.sms, machine.cores, machine.graphics_clock) == tuple(
            expected[k] for k in ("SM", "cores", "core_mhz")
        )
        assert (machine.processor_clock, machine.memory) == (expected["proc_ghz"], expected["mem_mb"])
        assert (machine.bandwidth, machine.gflops, machine.uncoal_per_mw) == tuple(
            expected[k] for k in ("gbs", "gflops", "uncoal")
        )
        assert machine.capability[0] + machine.capability[1] / 10 == pytest.approx(expected["cc"])
        gpu = load_gpu(name)
        assert gpu.sm.count == machine.sms and gpu.compute_capability == machine.capability
        assert gpu.sm.clock / 1e9 == pytest.approx(machine.processor_clock, rel=0.005)
        assert gpu.dram.bandwidth / 1e9 == pytest.approx(machine.bandwidth)
        assert gpu.sm.count * gpu.pipes["fp32"].lanes == machine.cores


def test_tables_4_to_7() -> None:
    expected = golden("hk.table4")["expected"]
    assert [b.memory for b in MICRO_BENCHMARKS.values()] == expected["memory"]
    assert [b.comp for b in MICRO_BENCHMARKS.values()] == expected["comp"]
    assert [b.fp for b in MICRO_BENCHMARKS.values()] == expected["fp"]
    rows = golden("hk.table5")["expected"].values()
    for row, found in zip(rows, BENCHMARKS.values(), strict=True):
        for key, pair in (("comp", found.comp), ("mem", found.memory)):
            assert pair == tuple(row[key]) if isinstance(row[key], list) else pair == (row[key],) * 2
        assert (found.coalesced, found.registers, found.shared) == (row["coal"], row["regs"], row["smem"])
    for name, row in golden("hk.table6")["expected"].items():
        assert (TABLE_6[name].mem_ld, TABLE_6[name].dep_uncoal, TABLE_6[name].dep_coal) == tuple(row.values())
    row = golden("hk.table7")["expected"]
    assert {TABLE_7[name] for name in ("FPadd", "FPmul", "FPmad")} == {row["fp"]} and TABLE_7["Intadd"] == row["intadd"]
    assert [TABLE_7_MANUAL["FPdiv"], TABLE_7["FPdiv"]] == row["fpdiv"]
    assert [TABLE_7_MANUAL["Intmul"], TABLE_7["Intmul"]] == row["intmul"]
    assert [TABLE_7["Intdiv"], TABLE_7["Modulo"]] == row["intdiv_mod"]


def test_printed_numbers_evaluate_to_the_results() -> None:
    """Every equation with its numbers, as printed, yields its result: the text says what the code does."""
    inputs = replace(example(), coal_mem_insts=2, ind_mem_req=3, m_factor=1.5)
    for variant in (inputs, replace(inputs, ind_mem_req=0), replace(inputs, active_blocks_per_sm=1, dep_uncoal=0.5)):
        for step in hong_kim(variant).steps:
            if step.numbers:
                assert evaluated(step.numbers) == pytest.approx(step.value, rel=1e-4), step.line()


def evaluated(numbers: str) -> float:
    text = re.sub(r" x ", " * ", numbers)
    assert re.fullmatch(r"[\d.e+\-*/(), minaxceilrou]*", text), text
    names = {"min": min, "max": max, "ceil": math.ceil, "round": round}
    return float(eval(text, {"__builtins__": {}}, names))
