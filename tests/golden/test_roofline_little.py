"""Roofline and Little's law against the goldens, and peaks of the shipped GPUs against the vendors' numbers."""

from __future__ import annotations

from typing import Any

import pytest
from goldens import golden

from ppt_gpu.bounds.little import little, sustained_throughput
from ppt_gpu.bounds.roofline import hierarchical_roofline, peak_flops, roofline
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec import load_gpu


def test_little() -> None:
    case = golden("little")
    found = little(**case["inputs"])
    assert found.concurrency == pytest.approx(case["expected"]["concurrency"], rel=case["tol"]["rel"])
    assert found.lines() == ["concurrency = latency x throughput = 368 x 0.082 = 30.176"]
    assert sustained_throughput(found.concurrency, 368) == pytest.approx(0.082)


def test_roofline() -> None:
    case = golden("roofline")
    given, tolerance = case["inputs"], case["tol"]["rel"]
    found = [roofline(given["peak"], given["bw"], intensity) for intensity in given["AI"]]
    assert [roof.attainable for roof in found] == pytest.approx(case["expected"]["perf"], rel=tolerance)
    assert found[0].ridge == pytest.approx(case["expected"]["ridge"], rel=tolerance)
    assert [roof.limiter for roof in found] == ["memory", "memory", "compute", "compute"]
    assert found[1].lines() == [
        "ridge = peak / bandwidth = 15.7 TFLOP/s / 900 GB/s = 17.4444 FLOP/B",
        "attainable = min(peak, bandwidth x intensity) = min(15.7 TFLOP/s, 900 GB/s x 10 FLOP/B)"
        " = 9 TFLOP/s (memory bound)",
    ]


def test_hierarchical_roofline() -> None:
    case = golden("roofline.hier")
    given, expected, tolerance = case["inputs"], case["expected"], case["tol"]["rel"]
    found = hierarchical_roofline(given["peak"], given["bw"], given["flops"], given["bytes"])
    assert found.bound_per_level == pytest.approx(expected["bound_per_level"], rel=tolerance)
    assert found.attainable == pytest.approx(expected["attainable"], rel=tolerance)
    assert found.limiter == expected["limiter"]
    assert found.time == pytest.approx(given["flops"] / expected["attainable"], rel=tolerance)
    assert (
        found.lines()[-1]
        == "P = min over levels = min(15.7 TFLOP/s, 7.5 TFLOP/s, 4.5 TFLOP/s) = 4.5 TFLOP/s, limited by HBM"
    )


def test_a_level_without_traffic_does_not_limit() -> None:
    found = hierarchical_roofline(10.0, {"L1": 1.0, "DRAM": 1.0}, 5.0, {"L1": 0, "DRAM": 0})
    assert (found.attainable, found.limiter, found.time) == (10.0, "compute", 0.5)
    assert found.lines() == ["P = peak = 10 FLOP/s: no memory level has traffic"]


#: TFLOP/s at the clock of the shipped file: cores x 2 x clock, as the vendor's data sheets count
CORES = {("k40", "fp32"): 2880, ("k40", "fp64"): 960, ("v100", "fp32"): 5120, ("v100", "fp64"): 2560}
CORES |= {("v100", "tensor"): 640 * 64, ("a100", "fp32"): 6912, ("h100", "fp32"): 128 * 132}


@pytest.mark.parametrize(("name", "task_class"), CORES)
def test_peaks(name: str, task_class: str) -> None:
    gpu = load_gpu(name)
    assert peak_flops(gpu, task_class) == pytest.approx(CORES[name, task_class] * 2 * gpu.sm.clock, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: little(-1, 2), "0 or more"),
        (lambda: little(float("nan"), 2), "0 or more"),
        (lambda: sustained_throughput(1, 0), "no throughput"),
        (lambda: roofline(0, 1, 1), "positive"),
        (lambda: roofline(1, 1, -1), "positive"),
        (lambda: hierarchical_roofline(1, {"L1": 1}, 1, {"l1": 1}), "no bandwidth for level 'l1'"),
        (lambda: hierarchical_roofline(1, {"L1": 1, "L2": 1}, 1, {"L1": 1}), "no traffic for level 'L2'"),
        (lambda: hierarchical_roofline(1, {"L1": 1}, 0, {"L1": 1}), "operations and a peak above 0"),
        (lambda: peak_flops(load_gpu("k40"), "int32"), "no floating-point class"),
        (lambda: peak_flops(load_gpu("k40"), "tensor"), "no tensor pipe"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(PptError, match=message):
        call()
