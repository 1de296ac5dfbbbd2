"""`--seed`: other data of the same kind."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ppt_gpu.cli import main
from ppt_gpu.inputs import open_workload


def test_random_contents_get_other_seeds() -> None:
    plain, other = open_workload("vecadd"), open_workload("vecadd", seed=5)
    assert [buffer.seed for buffer in plain.buffers] == [1, 2, 0]
    assert [buffer.seed for buffer in other.buffers] == [6, 7, 0]  # the last is no random one
    assert replace(other, buffers=plain.buffers) == plain


def test_whole_numbers_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "vecadd", "--gpu", "k40", "--seed", "0"]) == 0
    capsys.readouterr()
    assert main(["predict", "vecadd", "--gpu", "k40", "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "error: --seed: '-1' is not a whole number of 0 or more\n"


def test_a_kernel_that_depends_on_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for seed in ((), ("--seed", "3"), ("--seed", "3")):
        assert main(["predict", "histogram", "--gpu", "k40", "--json", *seed]) == 0
        found.append(json.loads(capsys.readouterr().out)["launches"][0]["metrics"])
    cycles = [next(metric["value"] for metric in one if metric["tag"] == "kernel.cycles") for one in found]
    assert cycles[0] != cycles[1] == cycles[2]
