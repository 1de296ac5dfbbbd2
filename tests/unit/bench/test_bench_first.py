"""The bench of first predictions prints what it says it measures."""

import pytest

from benchmarks.first import ALL, ALONE, bench_first
from ppt_gpu.emulator.run import run as functional


@pytest.mark.usefixtures("ticking_clock")
def test_both_ways_are_measured_in_turns():
    known = functional.run
    found = {figure["name"]: figure["value"] for figure in bench_first(1, ("stencil7",))}
    assert functional.run is known
    label = "first stencil7 on v100"
    for part in ("whole", "functional"):
        whole, alone = (found[f"{label}, {part}, {what}"] for what in (ALL, ALONE))
        assert alone > 0 and whole > 0
        assert found[f"{label}, {part}, {ALONE} faster by"] == whole / alone
    assert len(found) == 6
