"""sweep: the same rows and bytes in any number of processes, under mpirun, and after being killed."""

import csv
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hanging import HANGING

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run import run
from ppt_gpu.explore.journal import Journal

ROOT = Path(__file__).parents[3]
MPIRUN = shutil.which("mpirun", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
AS_ROOT = {f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}
needs_mpi = pytest.mark.skipif(
    MPIRUN is None or importlib.util.find_spec("mpi4py") is None, reason="mpi4py or mpirun is missing"
)

#: 64 blocks of vecadd
SMALL = [str(ROOT / "tasklists" / "vecadd.ptx"), "--gpu", "k40", "--grid", "64", "--block", "128", "--registers", "12"]
SMALL += [part for _ in range(3) for part in ("--arg", "f32[8192]=random")] + ["--arg", "i32=8192"]
GRID = ["--set", "sm.count=2:8:2", "--set", "dram.bandwidth=100 GB/s,200 GB/s"]


def swept(*more: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["sweep", *SMALL, *more]) == 0
    out, err = capsys.readouterr()
    assert err == "", "quiet where nobody looks"
    return out


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_rows_are_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(
        swept(*GRID, "--where", "sm.count < 8", "--metric", "kernel.time", "--metric", "limiter", capsys=capsys)
    )
    assert len(rows) == 6
    workload = ppt_gpu.open_workload(
        SMALL[0], grid="64", block="128", registers=12, args=["f32[8192]=random"] * 3 + ["i32=8192"]
    )
    for row in rows:
        changes = [f"{key}={row[key]}" for key in ("sm.count", "dram.bandwidth")]
        expected = ppt_gpu.predict(workload, "k40", overrides=changes).main
        assert float(row["kernel.time"]) == expected.value("kernel.time")
        assert row["limiter"] == expected.value("limiter")


def test_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [part for metric in ("time", "stall.long_scoreboard", "1:grid.blocks") for part in ("--metric", metric)]
    document = json.loads(swept("--json", *GRID, *columns, capsys=capsys))
    assert document["parameters"] == {"sm.count": ["2", "4", "6", "8"], "dram.bandwidth": ["100 GB/s", "200 GB/s"]}
    assert [metric["unit"] for metric in document["metrics"]] == ["s", "ratio", "blocks"]
    assert len(document["rows"]) == 8
    row = document["rows"][2]
    assert row["parameters"] == {"sm.count": "4", "dram.bandwidth": "100 GB/s"}
    assert row["metrics"]["1:grid.blocks"] == 64 and 0 < row["metrics"]["stall.long_scoreboard"] < 1


def test_the_same_bytes_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = [*GRID, "--set", "block=64,128"]
    for name, more in (("one.csv", []), ("two.csv", ["--processes", "2"])):
        out = swept(*grid, *more, "-o", str(tmp_path / name), capsys=capsys)
        assert out == f"{tmp_path / name}: 16 rows\n"
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["one.csv", "two.csv"], "no journal is left"


@needs_mpi
def test_the_same_bytes_under_mpirun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swept(*GRID, "-o", str(tmp_path / "one.csv"), capsys=capsys)
    command = [str(MPIRUN), "--oversubscribe", "-n", "3", sys.executable, "-m", "ppt_gpu", "sweep", *SMALL, *GRID]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "mpi.csv")],
        capture_output=True,
        env=os.environ | AS_ROOT,
        timeout=HANGING,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().count("8 rows") == 1
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "mpi.csv").read_bytes()


@pytest.mark.usefixtures("empty_cache")
def test_hardware_needs_one_functional_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[int] = []
    real = run.run

    def counted(kernel, module, launch, memory, blocks, **options):  # type: ignore[no-untyped-def]
        ran.extend(blocks)
        return real(kernel, module, launch, memory, blocks, **options)

    monkeypatch.setattr(run, "run", counted)
    swept("--set", "sm.clock=400 MHz:800 MHz:100 MHz", "--set", "l2.size=384 KiB,768 KiB", capsys=capsys)
    assert len(ran) == len(set(ran)) <= 64


def test_what_cannot_be_predicted_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(swept("--set", "block=64,128", "--set", "sm.max_threads_per_block=64", capsys=capsys))
    assert [bool(row["time"]) for row in rows] == [True, False]
    assert rows[0]["error"] == ""
    assert "128 threads per block exceed the limit of k40" in rows[1]["error"]


def test_finished_rows_are_not_computed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal whose rows say what no prediction would: they are taken, the others are computed."""
    target, more = tmp_path / "out.csv", ["--metric", "time", *GRID]
    swept(*more, "-o", str(target), capsys=capsys)
    whole = target.read_bytes()
    stopped_after(3, target, more)
    study = json.loads((tmp_path / "out.csv.journal").read_text().splitlines()[0].partition(" ")[2])["study"]
    with Journal(tmp_path / "out.csv.journal", study) as journal:
        assert len(journal.rows) == 3
        kept = dict(journal.rows)
        missing = next(number for number in range(8) if number not in kept)
        journal.add(missing, {"values": [4.25]})
    swept(*more, "-o", str(target), capsys=capsys)
    lines = target.read_text().splitlines()
    assert lines[1 + missing].endswith(",4.25")
    expected = whole.decode().splitlines()
    assert [line for n, line in enumerate(lines) if n != 1 + missing] == [
        line for n, line in enumerate(expected) if n != 1 + missing
    ]


#: the command `sweep` in a process that ends without a word when its journal has so many rows
STOPPING = """
import os, sys
from ppt_gpu.cli import main
from ppt_gpu.explore.journal import Journal
add, rows = Journal.add, int(sys.argv[1])
def add_or_end(journal, number, row):
    add(journal, number, row)
    if len(journal.rows) == rows:
        os._exit(9)
Journal.add = add_or_end
main(sys.argv[2:])
"""


def stopped_after(rows: int, target: Path, more: list[str]) -> None:
    command = [sys.executable, "-c", STOPPING, str(rows), "sweep", *SMALL, *more, "-o", str(target)]
    assert subprocess.run(command, check=False).returncode == 9


def test_other_inputs_are_another_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.csv"
    stopped_after(1, target, GRID)
    assert main(["sweep", *SMALL, "--set", "sm.count=3,5", "-o", str(target)]) == 2
    assert "the journal is of another run" in capsys.readouterr().err


def test_figures_show_what_was_found() -> None:
    pytest.importorskip("matplotlib")
    from ppt_gpu.commands.sweep import sweep_figure

    values = {"sm.count": ("2", "4"), "block": ("64", "128"), "sm.policy": ("gto",)}
    rows = [
        ({"sm.count": a, "block": b, "sm.policy": "gto"}, (int(a) * int(b),), "")
        for a in ("2", "4")
        for b in ("64", "128")
    ]
    (axis,) = sweep_figure("title", values, "time", rows).axes
    lines = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines}
    assert lines == {"block=64": ([0, 1], [128, 256]), "block=128": ([0, 1], [256, 512])}
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("sm.count", "time in s")
    many = {"sm.count": ("2", "4"), "block": tuple(str(n) for n in range(20))}
    rows = [({"sm.count": a, "block": b}, (int(a) * int(b),), "") for a in many["sm.count"] for b in many["block"]]
    axis = sweep_figure("title", many, "time", rows[:-1]).axes[0]
    found = axis.images[0].get_array().filled(-1)
    assert found.shape == (20, 2) and found[3, 1] == 12 and found[19, 1] == -1
    with pytest.raises(PptError, match="is no number"):
        sweep_figure("title", many, "limiter", [({"sm.count": "2", "block": "0"}, ("dram",), "")])


@pytest.mark.parametrize("settings", [["sm.count=1:9:1"], ["sm.count=2,4", "block=32,64", "l1.latency=30,40"]])
def test_figures(settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    more = [part for text in settings for part in ("--set", text)]
    for name in ("a.svg", "b.svg"):
        swept(*more, "--plot", str(tmp_path / name), capsys=capsys)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_killed_twenty_times(processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at random, with everything it started: the same final bytes; no row is noted twice, none is lost."""
    grid = ["--set", "sm.count=1:20:1", "--set", "dram.bandwidth=100:500:100 GB/s", "--set", "block=64,128"]
    command = [sys.executable, "-m", "ppt_gpu", "sweep", *SMALL, *grid, "--processes", str(processes), "-o"]
    subprocess.run([*command, str(tmp_path / "whole.csv")], check=True, capture_output=True)
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "cache"))
    target, journal = tmp_path / "killed.csv", tmp_path / "killed.csv.journal"
    chance, kills, longest = random.Random(processes), 0, 0
    noted: list[bytes] = []
    while kills < 20:
        process = subprocess.Popen([*command, str(target)], start_new_session=True, stdout=subprocess.PIPE)
        more, grown = chance.randrange(4), 0
        while process.poll() is None and grown < more:
            grown = (journal.read_bytes().count(b"\n") if journal.is_file() else 0) - len(noted)
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.05 if more else 1))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:  # it was finished before: another one is killed the remaining times
            assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
            target.unlink()
            noted = []
            continue
        kills += 1
        lines = journal.read_bytes().split(b"\n")[:-1] if journal.is_file() else []
        assert lines[: len(noted)] == noted, "a row was lost"
        rows = [json.loads(line.partition(b" ")[2]).get("row") for line in lines]
        assert len(set(rows)) == len(rows), "a row was noted twice"
        noted = lines
        longest = max(longest, len(noted))
    assert 1 < longest < 201
    subprocess.run([*command, str(target)], check=True, capture_output=True)
    assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not journal.exists()
