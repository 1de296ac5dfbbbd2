"""The PPT GPU module's published numbers: the logged extrapolation, its memory latency, Table 1."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from goldens import golden, goldens

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.ppt.extrapolation import extrapolate_workload, ppt_blocks_per_sm
from ppt_gpu.models.ppt.memory import ppt_memory_cycles
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.levels.workload import workload_prediction
from ppt_gpu.scale.occupancy.occupancy import Occupancy

#: name in Table 1 -> shipped GPU
SHIPPED = {"M2090": "m2090", "K40": "k40", "K6000": "k6000"}


def test_the_logged_run() -> None:
    record = golden("ppt.extrapolation.log")
    given, expected, tol = record["inputs"], record["expected"], record["tol"]
    clock = given["clock_hz"]
    for literal in (True, False):
        found = extrapolate_workload(
            given["workload_cycles"],
            given["block_average_cycles"],
            given["work_loads"],
            given["num_SM"],
            given["mem_write_delay_cycles"],
            literal=literal,
        )
        # the log prints 12 digits: a relative 5e-12 is its own rounding
        assert found.workload / clock == pytest.approx(expected["workload_s"], rel=tol["rel"])
        assert found.block_average / clock == pytest.approx(expected["block_average_s"], rel=tol["rel"])
        assert found.overlap == pytest.approx(expected["overlap"], rel=tol["rel"])
        assert found.mean_workload / clock == pytest.approx(expected["actual_workload_s"], rel=tol["rel"])
        total = given["launch_overhead_s"] + found.cycles / clock
        assert total == pytest.approx(expected["total_s"], rel=tol["total_s_rel"])
    assert given["instructions"] / given["workload_cycles"] == pytest.approx(expected["IPC"], rel=tol["rel"])


@pytest.mark.parametrize("record", goldens("ppt.memtime.*"), ids=lambda record: record["id"])
def test_memory_latency_under_load(record: dict) -> None:
    given, expected = record["inputs"], record["expected"]
    accepted, cycles = ppt_memory_cycles(given["pending"], tuple(given["ram"]), tuple(given["cap"]))
    assert accepted == expected["accept"]
    assert cycles == pytest.approx(expected["cycles"], rel=record["tol"]["rel"])


def test_a_launch_never_ends_before_its_only_workload() -> None:
    assert extrapolate_workload(1000, 600, 1, 16, literal=True).cycles == 600
    assert extrapolate_workload(1000, 600, 1, 16).cycles == 1000
    assert extrapolate_workload(1000, 600, 16, 16).cycles == 1000
    assert extrapolate_workload(1000, 1000, 48, 16, 5).cycles == 3005


def test_level_workload_on_a_result() -> None:
    chip = SimpleNamespace(sm=SimpleNamespace(count=4))
    holding = Occupancy(2, 1, 2, 1.0, ("blocks",), {"blocks": 2}, 0, 0, 0, 0)
    ends = np.array([60, 100])
    made = plan(4 * 2 * 10, holding, chip, "workload")
    found = workload_prediction(SimpleNamespace(block_end=ends, cycles=120), made)
    # 40 workloads on 4 SMs: 10 rounds of the mean workload, (4 * 100 + 36 * 80) / 40 = 82; stores trail by 20
    assert found.ppt.mean_workload == pytest.approx(82)
    assert found.cycles == pytest.approx(840)
    assert "overlap 20.0%" in found.assumptions[0]
    single = workload_prediction(SimpleNamespace(block_end=ends, cycles=120), plan(8, holding, chip, "workload"))
    assert single.cycles == 120 and single.exact


def test_bad_workloads_are_named() -> None:
    with pytest.raises(PptError, match="mean block end 1100"):
        extrapolate_workload(1000, 1100, 4, 16)
    with pytest.raises(PptError, match="0 workloads"):
        extrapolate_workload(1000, 900, 0, 16)


def test_the_module_s_own_occupancy_rule() -> None:
    """K40: 40 registers, 256 threads: 65536 // 10240 = 6 as NVIDIA's rule; 37: 6 too, here 65536 // 9472 = 6."""
    sm = SimpleNamespace(max_blocks=16, max_warps=64, warp_size=32, registers=65536, count=15)
    gpu = SimpleNamespace(sm=sm)
    assert ppt_blocks_per_sm(gpu, 256, 40, 10**6) == 6
    assert ppt_blocks_per_sm(gpu, 256, 33, 10**6) == 7  # NVIDIA's allocation unit makes this 6
    assert ppt_blocks_per_sm(gpu, 256, 16, 20) == 2


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_gpus_match_table_1(name: str) -> None:
    from ppt_gpu.spec import load_gpu

    printed = golden("ppt.table1")["expected"][name]
    gpu = load_gpu(SHIPPED[name])
    assert gpu.sm.count == printed["SMX"]
    assert gpu.sm.schedulers == printed["sched"]
    assert gpu.sm.max_blocks == printed["max_blocks"]
    assert gpu.sm.max_warps * gpu.sm.warp_size == printed["max_threads"]
    assert gpu.sm.issue_width == (2 if printed["dual"] else 1)
    assert gpu.dram.bandwidth == pytest.approx(printed["gbs"] * 1e9, rel=0.01)


def test_the_stencil_footprint_does_not_fit_a_6_gb_card() -> None:
    record = golden("ppt.footprint")
    given = record["inputs"]
    needed = given["arrays"] * given["n"] ** 3 * given["bytes"]
    assert needed == record["expected"]["bytes"]
    from ppt_gpu.spec import load_gpu

    assert needed > load_gpu("m2090").dram.size
    assert needed < load_gpu("k40").dram.size


@pytest.mark.parametrize("name", ["K40", "K6000", "Pascal_hyp"])
def test_shipped_gpus_keep_the_released_constants_of_units(name: str) -> None:
    """Latencies of memory come from better measurements where there are any; the projection keeps the module's own."""
    from ppt_gpu.spec import load_gpu

    released = golden("ppt.hw.lanl")["expected"]
    printed, gpu = released[name], load_gpu({**SHIPPED, "Pascal_hyp": "pascal_ppt"}[name])
    assert gpu.host.launch_overhead == released["launch_overhead_s"]
    assert (gpu.isa.op("fp32").latency, gpu.isa.op("sfu").latency) == (printed["alu"], printed["sfu"])
    assert (gpu.pipes["fp64"].lanes, gpu.pipes["lsu"].lanes) == (printed["dp"], printed["ldst"])
    if name == "Pascal_hyp":
        assert (gpu.l1.latency, gpu.l2.latency, gpu.dram.latency) == (printed["l1"], printed["l2"], printed["ram"][0])
        assert (gpu.pipes["sfu"].lanes, gpu.sm.max_blocks) == (printed["sf"], printed["max_blocks"])
