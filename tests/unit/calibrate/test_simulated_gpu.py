"""The calibrated numbers of the reference simulator's GPUs, found again from its micro-kernels."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ppt_gpu.calibrate.simulator import RESTS, calibrate, configuration_of, launch_file, read_launches
from ppt_gpu.cli import main
from ppt_gpu.spec.load import load_gpu
from ppt_gpu.validate.gpgpusim.launches import GPUS, case_name, reference_path

#: cycles: of a chain of dependent operations; of a memory latency, which chains of other loads contribute to
EXACT, NEAR = 0.5, 3.5


def launches(path: Path, bench: str, *modes: str) -> Path:
    """The launches of a program in a file, those of some modes."""
    with reference_path().open(newline="") as file:
        rows = list(csv.reader(file))
    kept = [rows[0], *(row for row in rows if row[2] == bench and row[1] in modes)]
    path.write_text("".join(",".join(row) + "\n" for row in kept))
    return path


@pytest.mark.parametrize("name", RESTS)
def test_chains_give_the_latencies_of_the_file(name: str, tmp_path: Path) -> None:
    found = calibrate(name, launches(tmp_path / "some.csv", "alulat", "perfect"))
    assert {one.path for one in found} == {f'op."{op}".latency' for op in
        ("fp32.fma", "fp32.add", "int32.mad", "int32.add", "sfu", "fp64.fma")}  # fmt: skip
    for one in found:
        assert abs(one.value - one.before) <= EXACT, one
        assert one.low <= one.value <= one.high and one.residual < 0.02 and one.determined


def memory_numbers(folder: Path, capsys: pytest.CaptureFixture[str], *modes: str) -> set[str]:
    """The numbers that the chains of loads of some modes give: those of the file, nearly."""
    path = launches(folder / "launches.csv", "pchase", *modes)
    assert main(["calibrate", "gpgpusim_sm7_qv100", "--with", str(path), "--json"]) == 0
    numbers = {one["path"]: one for one in json.loads(capsys.readouterr().out)["numbers"]}
    for one in numbers.values():
        assert abs(one["value"] - one["before"]) <= NEAR, one
        assert one["rests_on"]
    return set(numbers)


def test_chains_of_loads_give_the_latencies_of_the_sm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_numbers(tmp_path, capsys, "perfect") == {"shared.latency", "l1.latency", "memory.miss_latency"}


@pytest.mark.slow
def test_chains_of_loads_give_the_latencies_of_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_numbers(tmp_path, capsys, "default", "default+coldL2") == {"l2.latency", "dram.latency"}


def test_every_launch_that_a_number_rests_on_is_there() -> None:
    rows = read_launches(reference_path())
    for name, rests in RESTS.items():
        there = {(row["mem"], case_name(row)) for row in rows if GPUS.get(row["config"]) == name}
        for one in rests:
            assert {(one.mode, case) for case in one.cases} <= there, one.number.path


def test_every_number_can_be_moved_alone() -> None:
    """Nothing else in the file fixes it: a search over its range would end in an error."""
    for name, rests in RESTS.items():
        for number in (one.number for one in rests):
            load_gpu(name, [f"{number.path}={number.least}"])
            load_gpu(name, [f"{number.path}={number.most}"])


def test_the_shipped_file_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert launch_file("launches.csv") == launch_file(None) == reference_path()
    launches(tmp_path / "launches.csv", "alulat", "perfect")
    assert launch_file("launches.csv") == Path("launches.csv")


def test_names() -> None:
    assert configuration_of("gpgpusim_sm7_qv100") == configuration_of("gpgpusim_qv100") == "gpgpusim_qv100"
    assert configuration_of("gpgpusim_sm2_gtx480") == "gpgpusim_gtx480"
    assert configuration_of("h100") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", RESTS)
def test_all_numbers(name: str) -> None:
    for one in calibrate(name):
        assert one.value == pytest.approx(one.before, rel=0.15, abs=NEAR), one
