"""GPUMech, its baselines, GCoM and MDM against the goldens: the paper's toys and the equations, intermediates too."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from goldens import RECORDS, gated, holds
from reference.loops import intervals_reference

from ppt_gpu.models.base.operation_latency import amat, level_latencies
from ppt_gpu.models.gpumech.gcom import sub_core
from ppt_gpu.models.gpumech.gpumech import markov_ipc
from ppt_gpu.models.gpumech.gpumech_core import (
    bandwidth_delay,
    cpi_stack,
    mshr_delay,
    multithreading,
    naive_ipc,
    warp_stack,
)
from ppt_gpu.models.gpumech.interval import Profile
from ppt_gpu.models.gpumech.mdm import mdm_delay
from ppt_gpu.models.gpumech.representative import representative
from ppt_gpu.spec import load_gpu

POLICY = {"rr": "lrr", "gto": "gto"}


def profile(intervals: list[list[float]]) -> Profile:
    insts, stall = np.array(intervals, np.float64).T
    none = np.full(len(insts), -1)
    return Profile(insts, stall, none, none)


def given(name: str) -> dict[str, Any]:
    return RECORDS[name]["inputs"]


def exact_schedule(warps: int, insts: int, stall: int, policy: str) -> dict[str, int]:
    """One interval of `warps` warps, an instruction a cycle, as Fig. 8 shows it; warp 0 is the one looked at."""
    turns = [warp for _ in range(insts) for warp in range(warps)]
    issued = turns if policy == "rr" else sorted(turns)
    after = issued[issued.index(0) :]
    last = max(cycle for cycle, warp in enumerate(after) if warp == 0)
    hidden = sum(warp > 0 for warp in after[last + 1 : last + 1 + stall])
    others = sum(warp > 0 for warp in issued)
    return {"overlapped": hidden, "nonoverlapped": others - hidden, "remaining_stall": stall - hidden}


@pytest.mark.parametrize("policy", ["rr", "gto"])
def test_fig8_schedules(policy: str) -> None:
    name = f"gm.fig8.{policy}.deterministic"
    case = given(name)
    found = exact_schedule(case["warps"], case["insts"], case["stall"], policy)
    alone = case["insts"] + case["stall"]
    holds(name, {**found, "cycles": alone + found["nonoverlapped"]})


def test_fig2_interval_one() -> None:
    case = given("gm.fig2.interval1")
    holds("gm.fig2.interval1", {"IPC": naive_ipc(profile([[case["insts"], case["stall"]]]), case["warps"])})


def test_naive_is_capped() -> None:
    case = given("gm.fig8.naive")
    one = profile([[case["insts"], case["stall"]]])
    free = naive_ipc(one, case["warps"], rate=1.0)
    uncapped = case["warps"] * one.issue_probability()
    others = (case["warps"] - 1) * case["insts"]
    holds("gm.fig8.naive", {"IPC_uncapped": uncapped, "remaining_stall": max(case["stall"] - others, 0)})
    assert free == 1.0


@pytest.mark.parametrize(
    "name", [*gated("gm.fig2.model"), "gm.fig8.rr.model", "gm.fig8.gto.model", "gm.fig8.gto.literal_typo"]
)
def test_multithreading(name: str) -> None:
    case = given(name)
    literal = case.get("literal", False)
    found = multithreading(profile(case["intervals"]), case["warps"], POLICY[case["policy"]], literal=literal)
    holds(
        name,
        {
            "issue_prob": found.issue_probability,
            "total_cycles": found.alone,
            "nonoverlapped": float(found.nonoverlapped.sum()),
            "cycles": found.cycles,
            "CPI": found.cpi,
            "IPC": 1 / found.cpi,
        },
    )
    assert found.clamped() >= 1.0


@pytest.mark.parametrize("name", gated("gm.eq4"))
def test_interval_algorithm(name: str) -> None:
    case = given(name)
    issue, intervals = intervals_reference([(latency, sources) for latency, sources in case["trace"]], case["gap"])
    holds(name, {"issue": issue, "intervals": [[insts, stall] for insts, stall, _ in intervals]})


@pytest.mark.parametrize("name", gated("gm.mshr"))
def test_mshr(name: str) -> None:
    case = given(name)
    latency, insts = case["avg_miss_latency"], np.array([case["warp_mem_insts"]])
    found = mshr_delay(np.array([case["core_reqs"]]), case["MSHR"], latency, insts)
    holds(
        name,
        {
            "avg_ceil": found.batches[0],
            "exp_queuing_delay": found.queueing[0],
            "MSHR_delay": found.delay[0],
        },
    )


@pytest.mark.parametrize("name", gated("gm.bw"))
def test_bandwidth(name: str) -> None:
    case = given(name)
    service = case["freq_ghz"] * case["line"] / case["bw_gbs"]
    cycles = np.array([case["interval_insts"] + case["stall"]])
    found = bandwidth_delay(np.array([case["core_reqs"]]), case["cores"], cycles, service)
    terms = {"lam": found.arrivals[0], "rho": found.utilisation[0], "cap": found.cap[0], "delay": found.delay[0]}
    holds(name, {"s": found.service, **terms})


def test_amat_of_the_machine_of_table_1() -> None:
    case, levels = given("gm.amat"), level_latencies(load_gpu("gpumech_table1"))
    assert (levels[2], levels[3]) == (case["l2_hit"], case["l2_miss"])
    holds("gm.amat", {"latency": amat(levels, np.array([0, 0, case["p_hit"], 1 - case["p_hit"]]))})


def test_stack_splits_stalls_by_level() -> None:
    case = given("gm.cpistack.split")
    warp = Profile(np.array([1.0]), np.array([float(case["stall"])]), np.array([0]), np.array([0]))
    stack = warp_stack(warp, np.array([[0.0, 0.0, case["l2_hit"], case["l2_miss"]]]), 1.0)
    holds("gm.cpistack.split", stack)
    whole = cpi_stack(stack, 5.0, 0.25, 0.5)
    assert sum(value for _, value in whole) == pytest.approx(5.75)


def test_table_1() -> None:
    gpu = load_gpu("gpumech_table1")
    found = {
        "cores": gpu.sm.count,
        "freq_ghz": gpu.sm.clock / 1e9,
        "simt": gpu.pipes["fp32"].lanes,
        "warp": gpu.sm.warp_size,
        "max_threads": gpu.sm.max_warps * gpu.sm.warp_size,
        "issue": gpu.sm.issue_width * gpu.sm.schedulers,
        "fp_latency": gpu.isa.op("fp32.fma").latency,
        "smem_kb": gpu.shared.size / 1024,
        "l1_kb": gpu.l1.size / 1024,
        "l1_lat": gpu.l1.latency,
        "l1_ways": gpu.l1.ways,
        "mshr": gpu.l1.mshrs,
        "line": gpu.l1.line,
        "l2_kb": gpu.l2.size / 1024,
        "l2_lat": gpu.l2.latency,
        "l2_ways": gpu.l2.ways,
        "dram_gbs": gpu.dram.bandwidth / 1e9,
        "dram_lat": gpu.dram.latency - gpu.l2.latency,
    }
    # The front end (fetch width, instruction cache) is perfect here: the paper models none of its stalls (section V-B).
    holds("gm.table1", found, without=("fetch", "icache_kb"))
    assert gpu.code.size == 0


def test_representative_warp() -> None:
    case = given("gm.repwarp")
    perf, insts = np.array(case["warp_perf"]), np.array(case["warp_insts"], np.float64)
    found = representative(perf, insts, centres=tuple(case["init"]))
    as_golden = {"majority": found.majority, "representative": found.index, "features": found.features.tolist()}
    holds("gm.repwarp", {"labels": found.labels.tolist(), **as_golden})
    assert representative(perf, insts).index == found.index


@pytest.mark.parametrize("name", gated("gm.markov"))
def test_markov_chain(name: str) -> None:
    case = given(name)
    holds(name, {"IPC": markov_ipc(case["N"], case["p"], case["M"])})
    if case["N"] == 1:
        assert markov_ipc(1, case["p"], case["M"]) == pytest.approx(1 / (1 + case["p"] * case["M"]))


def test_end_to_end() -> None:
    case = given("gm.e2e")
    one, warps = profile(case["intervals"]), case["warps"]
    requests = np.array(case["warp_mem_reqs"], np.float64) * warps
    mt = multithreading(one, warps, POLICY[case["policy"]])
    mshr = mshr_delay(requests, case["MSHR"], case["avg_miss_latency"], np.array(case["warp_mem_insts"])).delay
    service = case["freq_ghz"] * case["line"] / case["bw_gbs"]
    queue = bandwidth_delay(requests, case["cores"], one.insts + one.stall, service).delay
    delays = float((mshr + queue).sum())
    core = delays / (warps * one.instructions)
    found = {
        "CPI_multithreading": mt.cpi,
        "MSHR_delay": mshr.tolist(),
        "Bandwidth_delay": queue.tolist(),
        "CPI_rc_literal_eq17": delays / one.instructions,
        "CPI_rc_core": core,
        "CPI_final_core": mt.cpi + core,
    }
    holds("gm.e2e", found)


def toy_machine(warps: int, requests: int, mshrs: int, latency: int, compute: int, iterations: int) -> float:
    """CPI of loops of `compute` instructions and a load of `requests` requests: round robin, MSHRs first come first."""
    free = [0] * mshrs
    ready, step, left = [0] * warps, [0] * warps, [iterations] * warps
    cycle = issued = following = 0
    while any(left):
        able = [warp for warp in range(warps) if left[warp] and ready[warp] <= cycle]
        if not able:
            cycle = min(ready[warp] for warp in range(warps) if left[warp])
            continue
        warp = min(able, key=lambda candidate: (candidate - following) % warps)
        following, issued = warp + 1, issued + 1
        step[warp] = (step[warp] + 1) % (compute + 1)
        ready[warp] = cycle + 1
        if not step[warp]:
            left[warp] -= 1
            for _ in range(requests):
                done = max(heapq.heappop(free), cycle) + latency
                heapq.heappush(free, done)
                ready[warp] = max(ready[warp], done + 1)
        cycle += 1
    return max(ready) / issued


@pytest.mark.parametrize("name", gated("gm.contention"))
def test_contention_against_the_toy_machine(name: str) -> None:
    case = given(name)
    warps, requests, mshrs, latency = case["warps"], case["reqs_per_load"], case["MSHR"], case["latency"]
    one = profile([[case["compute_per_interval"] + 1, latency]])
    mt = multithreading(one, warps).cpi
    all_of_them = np.array([float(requests * warps)])
    delay = float(mshr_delay(all_of_them, mshrs, latency, np.array([1.0])).delay[0])
    free = {"warps": warps, "sms": 1, "mshrs": mshrs, "noc_service": 0.0, "dram_service": 0.0}
    batches = mdm_delay(np.array([requests]), np.zeros(1), np.zeros(1), l2_latency=latency, dram_latency=0, **free)
    insts = one.instructions
    found = {
        "CPI_exact": toy_machine(warps, requests, mshrs, latency, case["compute_per_interval"], case["iterations"]),
        "CPI_MT_only": mt,
        "CPI_eq17_core": mt + delay / (warps * insts),
        "CPI_eq17_literal": mt + delay / insts,
        "CPI_mdm_batch": mt + float(batches.mshr[0]) / (warps * insts),
    }
    holds(name, found)


@pytest.mark.parametrize("name", gated("mdm."))
def test_mdm(name: str) -> None:
    case = given(name)
    found = mdm_delay(
        np.array([case["l1_read_miss_per_warp"]]),
        np.array([case["l1_write_miss_per_warp"]]),
        np.array([case["l2_miss_rate"]]),
        warps=case["warps"],
        sms=case["SMs"],
        mshrs=case["MSHR"],
        noc_service=case["freq_ghz"] * case["sector_B"] / case["noc_gbs"],
        dram_service=case["freq_ghz"] * case["sector_B"] / case["dram_gbs"],
        l2_latency=case["l2_lat"],
        dram_latency=case["dram_lat"],
    )
    holds(
        name,
        {
            "md": bool(found.divergent[0]),
            "noc_saturated": bool(found.saturated[0]),
            "queue_noc": found.queue_noc[0],
            "queue_dram": found.queue_dram[0],
            "mshr": found.mshr[0],
        },
    )


@pytest.mark.parametrize("policy", ["rr", "gto"])
def test_gcom_on_fig8(policy: str) -> None:
    case = given(f"gcom.fig8.{policy}")
    found = sub_core(profile([[case["insts"], case["stall"]]]), case["warps"], POLICY[policy])
    base, stall = float(found.base.sum()), float(found.data_stall.sum())
    holds(f"gcom.fig8.{policy}", {"base": base, "data_stall": stall, "cycles": found.cycles})


def test_gcom_log_adds_up() -> None:
    """The published run: its parts are the CPI, and the CPI is cycles by thread instructions."""
    log = RECORDS["gcom.log"]["expected"]
    parts = sum(log[name] for name in ("base", "comData", "comStruct", "memData", "memStruct", "idle"))
    assert parts == pytest.approx(log["cpi"], rel=1e-4)
    assert log["numCycle"] / log["numThreadInst"] == pytest.approx(log["cpi"], rel=1e-4)
