"""The validation set of the levels: one SM held against all of them."""

from __future__ import annotations

import json

import pytest

from ppt_gpu.cli import main
from ppt_gpu.validate.silicon.levels import CASES, GPUS


def test_a_stream_is_the_same_at_both_levels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "levels", "--case", "vecadd", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["gpu"], row["mode"], row["level"]) for row in rows] == [(gpu, "grid", "steady") for gpu in GPUS]
    assert all(0.0 < abs(row["error"]) < 0.1 for row in rows)  # near, and not one prediction twice


def test_cases_have_names_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert main(["validate", "levels", "--case", "no such"]) == 2
    assert "no case of 'levels' has no such in its name" in capsys.readouterr().err
