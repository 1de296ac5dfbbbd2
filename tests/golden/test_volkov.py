"""Volkov's model of latency hiding against the numbers of his thesis."""

from __future__ import annotations

import pytest
from goldens import RECORDS, holds

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.classics.volkov import NEVER, LatencyHiding, cusp, guide_warps


def test_figure_4_7() -> None:
    case = RECORDS["vk.fig47"]["inputs"]
    hiding = LatencyHiding(case["alpha"], case["alu_lat"], case["mem_lat"], case["alu_thru"], NEVER, NEVER)
    rate = min(hiding.limits.values())
    found = {
        "warps_needed": hiding.warps_needed,
        "concurrent_alu": case["alpha"] * case["alu_lat"] * rate,
        "concurrent_mem": case["mem_lat"] * rate,
        "mem_thru": hiding.throughput(hiding.warps_needed),
    }
    holds("vk.fig47", found)


def test_maxwell() -> None:
    case = RECORDS["vk.maxwell"]["inputs"]
    hiding = LatencyHiding(0.0, case["alu_lat"], case["mem_lat"], case["alu_thru"], case["mem_thru"], NEVER)
    alpha, warps = cusp(hiding)
    arithmetic = case["alu_lat"] * case["alu_thru"]
    found = {"warps_alu": arithmetic, "warps_mem": hiding.warps_needed, "cusp_alpha": alpha, "cusp_warps": warps}
    holds("vk.maxwell", found)
    at_cusp = LatencyHiding(alpha, case["alu_lat"], case["mem_lat"], case["alu_thru"], case["mem_thru"], NEVER)
    assert at_cusp.warps_needed == pytest.approx(warps)


def test_the_minimum() -> None:
    case = RECORDS["vk.model"]["inputs"]
    names = ("alpha", "alu_lat", "mem_lat", "alu_thru", "mem_thru", "issue_thru")
    holds("vk.model", {"mem_throughput": LatencyHiding(*(case[name] for name in names)).throughput(case["n"])})


def test_the_rule_of_the_guide() -> None:
    case = RECORDS["vk.cudaguide"]["inputs"]
    guide, refined = guide_warps(case["mem_lat"], case["cpi"], case["alpha"])
    holds("vk.cudaguide", {"guide": guide, "refined": refined})
    with pytest.raises(PptError, match="arithmetic"):
        guide_warps(600, 4, 0)
