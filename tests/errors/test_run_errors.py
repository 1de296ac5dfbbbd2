"""Bad command lines that need more than one file: each NAME.args gives NAME.txt on standard error, exit code 2."""

import shlex
from pathlib import Path

import pytest

from ppt_gpu.cli import main

FOLDERS = {name: Path(__file__).parent / name for name in ("run", "port", "sass", "calibrate")}
CASES = [(name, path.stem) for name, folder in FOLDERS.items() for path in sorted(folder.glob("*.args"))]


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_text(folder: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here = FOLDERS[folder]
    monkeypatch.chdir(here)
    before = sorted(here.iterdir())
    code = main(shlex.split((here / f"{name}.args").read_text()))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == (here / f"{name}.txt").read_text()
    assert sorted(here.iterdir()) == before, "a failed command must write nothing"


@pytest.mark.parametrize("folder", FOLDERS)
def test_there_are_cases(folder: str) -> None:
    assert sum(where == folder for where, _ in CASES) >= 12
