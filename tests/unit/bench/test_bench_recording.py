"""The bench of recording: its parts add up, and it leaves everything as it found it."""

import pytest

from benchmarks.recording import PARTS, bench_recording
from benchmarks.stopwatch import REST


def watched_functions():
    return [getattr(owner, name) for part in PARTS.values() for owner, names in part for name in names]


@pytest.mark.usefixtures("ticking_clock")
def test_parts_add_up_and_nothing_stays_changed():
    before = watched_functions()
    figures = bench_recording(1, ("mandelbrot",))
    assert watched_functions() == before
    found = {figure["name"].removeprefix("recording mandelbrot"): figure["value"] for figure in figures}
    more = sum(found[f": {part}"] for part in (*PARTS, REST))
    assert found[", speed of a run without trace"] == pytest.approx(100 / (1 + more / 100))
    assert found[", speed with no more than that"] == pytest.approx(
        100 / (1 + found[": writing the trace's bytes once"] / 100)
    )
    assert found[": without results, as predictions record"] > -100
    inputs = figures[0]["inputs"]
    assert inputs["bytes"] > 13 * inputs["accesses"] + 260 * inputs["patterns"] > 13 * 4096
