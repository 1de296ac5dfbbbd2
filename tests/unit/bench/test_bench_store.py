"""The bench of the store: what it measures adds up, and it leaves everything as it found it."""

import os

import pytest

from benchmarks.store import PARTS, SECONDS, bench_store


@pytest.mark.slow
@pytest.mark.usefixtures("ticking_clock")
def test_parts_add_up_and_nothing_stays_changed(monkeypatch, tmp_path):
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path))
    before = [getattr(owner, name) for part in PARTS.values() for owner, names in part for name in names]
    found = {figure["name"]: figure["value"] for figure in bench_store(1, ("vecadd",))}
    assert [getattr(owner, name) for part in PARTS.values() for owner, names in part for name in names] == before
    assert os.environ["PPT_GPU_CACHE"] == str(tmp_path) and not list(tmp_path.iterdir())
    labels = ["first, k40", *(f"second, {gpu} ({label})" for label, gpu in SECONDS.items())]
    for label in labels:
        parts = {part: found[f"store vecadd: {label}, {part}"] for part in (*PARTS, "rest")}
        assert sum(parts.values()) == pytest.approx(found[f"store vecadd: {label}, whole"])
        assert parts["rest"] > 0
    again = {part: found[f"store vecadd: second, k40 (again), {part}"] for part in PARTS}
    assert again["lowering"] == again["simulating"] == again["writing"] == 0 < again["reading"]
