"""The validation set of the MWP models: samples on the paper's GPUs, beside the simulation."""

from __future__ import annotations

import json

import pytest

from ppt_gpu.cli import main
from ppt_gpu.models.hong_kim.tables import MACHINES
from ppt_gpu.validate.mwp.machines import MODELS


def test_a_sample_on_every_gpu_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "mwp", "--case", "vecadd", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["gpu"], row["mode"]) for row in rows] == [(gpu, model) for gpu in MACHINES for model in MODELS]
    hong_kim = [row["error"] for row in rows if row["mode"] == "hong-kim"]
    assert max(map(abs, hong_kim)) < 0.5


def test_a_sample_that_no_gpu_of_the_paper_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "mwp", "--case", "hgemm"]) == 2
    assert "no case of 'mwp' has hgemm in its name" in capsys.readouterr().err
