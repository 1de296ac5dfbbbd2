"""hardware/tools/collectors.py: what collector units do to shared-memory loads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def collectors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "hardware" / "tools"))
    import collectors

    yield collectors
    sys.modules.pop("collectors")


def test_two_collectors_keep_the_load_store_unit_busy(collectors) -> None:
    assert collectors.loads_a_cycle(collectors.Front()) > 0.95


def test_too_few_warps_do_not(collectors) -> None:
    """One warp a scheduler: two loads, their latency, then the multiply-add's, each step."""
    step = 2 + collectors.LOAD_LATENCY + 2
    found = collectors.loads_a_cycle(collectors.Front(warps=1))
    assert found == pytest.approx(2 * collectors.SCHEDULERS / step, rel=0.15)
