"""What the bench of level grid prints."""

from __future__ import annotations

from benchmarks.chip import FEW, bench_chip
from ppt_gpu.common.threads import allowed
from ppt_gpu.spec import load_gpu


def test_figures() -> None:
    before = allowed()
    figures = bench_chip(entries=14, runs=1)
    assert [figure["unit"] for figure in figures] == ["M warp instructions/s", "x"] * 3 + ["ns"] * 5
    assert all(figure["value"] > 0 for figure in figures)
    sms = load_gpu("v100").sm.count
    assert [figure["inputs"]["sms"] for figure in figures[6:]] == [1, sms, sms, FEW, FEW]
    assert [figure["inputs"].get("threads", 1) for figure in figures[6:]] == [1, 1, 1, 1, 2]
    assert allowed() == before
