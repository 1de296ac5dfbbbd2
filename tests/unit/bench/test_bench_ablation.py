"""What a mechanism moves is found by turning it off where a GPU turns it on."""

from __future__ import annotations

import pytest

from benchmarks.ablation import ablated, main, mechanisms
from ppt_gpu.validate.silicon.measured_cases import cases


def test_mechanisms_are_keys_of_tables_that_have_a_default() -> None:
    found = dict(mechanisms())
    assert found["dram.turnaround"] == 0.0
    assert "sm.count" not in found and "title" not in found


def test_launches_on_gpus_that_set_the_key() -> None:
    """Stores between loads turn the DRAM's bus around."""
    wanted = cases(["stream v100"])[::64]
    found = ablated("dram.turnaround", 0.0, wanted)
    assert found is not None
    assert 0 < found.moved <= found.launches == len(wanted)
    assert found.error != found.without


def test_a_key_that_no_gpu_sets_moves_nothing() -> None:
    assert ablated("l1.reserves", False, cases(["stream v100"])[:1]) is None


def test_one_of_none_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["ablation", "--every", "0"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "at least 1" in capsys.readouterr().err
