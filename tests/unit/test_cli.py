"""The command line as a user types it: exit codes, one clear error each, JSON documents."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ppt_gpu.cli import main

ROOT = Path(__file__).parents[2]

BAD = {
    "unknown command": (["predct", "sgemm"], "did you mean 'predict'?"),
    "unknown option": (["predict", "sgemm", "--gpu", "k40", "--levle", "steady"], "--levle"),
    "blocks to look at": (
        ["predict", "sgemm", "--gpu", "k40", "--blocks", "some"],
        "expected sample, all or a positive",
    ),
    "no blocks to look at": (
        ["predict", "sgemm", "--gpu", "k40", "--blocks", "0"],
        "expected sample, all or a positive",
    ),
    "unknown level": (["predict", "sgemm", "--gpu", "k40", "--level", "stedy"], "did you mean 'steady'?"),
    "no gpu": (["predict", "sgemm"], "--gpu"),
    "unknown gpu": (["predict", "sgemm", "--gpu", "k41"], "did you mean 'k40'?"),
    "unknown sample": (["predict", "sgem", "--gpu", "k40"], "did you mean 'sgemm'?"),
    "no such file": (["predict", "nothing.ptx", "--gpu", "k40", "--grid", "1", "--block", "32"], "no such file"),
    "ptx without grid": (["predict", str(ROOT / "tasklists" / "saxpy.ptx"), "--gpu", "k40"], "--grid and --block"),
    "grid of a sample": (["predict", "sgemm", "--gpu", "k40", "--grid", "4"], "--grid"),
    "bad grid": (["predict", "x.ptx", "--gpu", "k40", "--grid", "4,0", "--block", "32"], "positive integers"),
    "unknown key": (["predict", "sgemm", "--gpu", "k40", "--set", "sm.cont=3"], "did you mean 'count'?"),
    "wrong unit": (["predict", "sgemm", "--gpu", "k40", "--set", "dram.bandwidth=3 GHz"], "bytes/s"),
    "unknown metric": (["explain", "kernel.tim"], "did you mean 'kernel.time'?"),
    "unknown set": (["validate", "gpgpusm"], "did you mean 'gpgpusim'?"),
    "misspelt option": (["predict", "sgemm", "--gpu", "k40", "--jsn"], "did you mean '--json'?"),
    "part of an option": (["predict", "x.ptx", "--gpu", "k40", "--shared", "2048"], "did you mean '--dynamic-shared'?"),
    "nothing like an option": (["gpus", "k40", "--zzz"], "see: ppt-gpu gpus --help"),
    "too many words": (["gpus", "k40", "v100"], "unrecognized arguments: v100"),
    "cannot check": (["check", "README.md"], ".ptx, .cu, .tl, .toml, .trace, .traceg, .g, .sass or .cubin"),
}


@pytest.mark.parametrize("arguments, expected", BAD.values(), ids=BAD)
def test_bad_command_lines(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert expected in err


@pytest.mark.parametrize(
    "command, arguments",
    [
        ("predict", ["--json"]),
        ("predict", ["--advise"]),
        ("sweep", ["--set", "sm.count=8,15", "-o", "rows.csv"]),
        ("what-if", ["--parameter", "sm.count"]),
        ("tune", ["--set", "block=64,128"]),
        ("design", ["--set", "sm.count=8,15", "--cost", "sm.count", "--target", "5 ms", "-o", "gpu.toml"]),
    ],
)
def test_level_grid_does_not_approximate(
    command: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Said once, not for each configuration; no journal is left."""
    monkeypatch.chdir(tmp_path)
    assert main([command, "vecadd", "--gpu", "k40", *arguments, "--level", "grid", "--approximate"]) == 2
    hint = "  hint: approximate skipping is of one SM: level steady or workload\n"
    assert capsys.readouterr() == ("", f"error: level grid skips nothing\n{hint}")
    assert list(tmp_path.iterdir()) == []


def test_block_too_big_for_the_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx = ROOT / "tasklists" / "vecadd.ptx"
    pointers = [part for _ in range(3) for part in ("--arg", "f32[4096]")]
    command = [
        "predict",
        str(ptx),
        "--gpu",
        "8800gtx",
        "--grid",
        "4",
        "--block",
        "1024",
        *pointers,
        "--arg",
        "i32=4096",
    ]
    assert main(command) == 2
    assert "512" in capsys.readouterr().err


def test_out_of_bounds_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    ptx = ROOT / "tasklists" / "vecadd.ptx"
    pointers = [part for _ in range(3) for part in ("--arg", "f32[100]")]
    command = ["predict", str(ptx), "--gpu", "k40", "--grid", "4", "--block", "64", *pointers, "--arg", "i32=4096"]
    assert main(command) == 2
    err = capsys.readouterr().err
    for part in ("vecadd.ptx:", "ld.global", "block", "thread", "0x"):
        assert part in err


def test_explain_lists_all_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json"]) == 0
    tags = [item["tag"] for item in json.loads(capsys.readouterr().out)["metrics"]]
    assert "kernel.time" in tags and len(tags) == len(set(tags))


def test_gpus_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "k40", "--json", "--set", "sm.count=30"]) == 0
    numbers = {item["key"]: item["value"] for item in json.loads(capsys.readouterr().out)["numbers"]}
    assert numbers["sm.count"] == "30"


def test_the_three_front_doors_agree() -> None:
    doors = [[str(ROOT / "run_sim.py")], ["-m", "ppt_gpu"], ["-c", "from ppt_gpu.cli import main; main()"]]
    outputs = {
        subprocess.run([sys.executable, *door, "gpus"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for door in doors
    }
    assert len(outputs) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_message() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "ppt_gpu", "gpus"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "error: cannot write the output: No space left on device\n")


def test_requirements_that_are_not_installed_are_one_message() -> None:
    """Of a checkout: Python is told to look at no installed package."""
    command = [sys.executable, "-E", "-s", "-S", str(ROOT / "run_sim.py"), "predict", "vecadd", "--gpu", "k40"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: the Python package 'numpy' is not installed for ")
    assert "hint: in the folder of ppt_gpu: python -m pip install ." in ended.stderr
