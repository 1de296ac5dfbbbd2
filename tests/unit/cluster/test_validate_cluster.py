"""`validate cluster`: the errors that are aimed for, every group, and the command's two forms."""

import json

import pytest

from ppt_gpu.cli import main
from ppt_gpu.validate.cluster.sets import LARGE, LIMITS, MIDDLE, OSU, OTHERS, SINGLE, groups, rows
from ppt_gpu.validate.tables.rows import Row


def test_errors_are_within_the_limits() -> None:
    found = {(each.group, each.machine): each for each in groups(rows(), LIMITS)}
    for group, limit in LIMITS.items():
        assert found[group, "all"].error <= limit
    assert [found[group, "all"].cases for group in (MIDDLE, LARGE, OSU, SINGLE, OTHERS)] == [106, 57, 314, 10, 26]
    assert found[OTHERS, "all"].error < 0.06, "machines that nothing was fitted to"


def test_every_row_names_a_measurement_above_zero() -> None:
    for row in rows():
        assert row.reference > 0 and row.predicted > 0, row


def test_geometric_means_worked_by_hand() -> None:
    """Twice and half: both are off by a factor of two, and there is no bias."""
    found = groups([Row("a", "m", "g", "", 1.0, 2.0, "us"), Row("b", "m", "g", "", 2.0, 1.0, "us")], {"g": 0.5})
    assert [(each.machine, each.cases, each.limit) for each in found] == [("m", 2, None), ("all", 2, 0.5)]
    assert found[1].error == pytest.approx(1.0) and found[1].bias == pytest.approx(0.0)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "cluster", "--case", "dgx_h200", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["gpu"] for row in document["rows"]} == {"dgx_h200"}
    assert main(["validate", "cluster", "--case", "oci_h100"]) == 0
    out = capsys.readouterr().out
    assert "geometric mean errors" in out and "NCCL, over 64 MiB" in out
    assert main(["validate", "cluster", "--case", "no such machine"]) == 2
    assert "no case of 'cluster' has no such machine in its name" in capsys.readouterr().err
