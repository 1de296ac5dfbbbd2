"""Bad input to `port`: each NAME.args under tests/errors/port gives NAME.txt on standard error, exit code 2."""

import shlex
from pathlib import Path

import pytest

from ppt_gpu.cli import main

HERE = Path(__file__).parent / "port"
CASES = sorted(path.stem for path in HERE.glob("*.args"))


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    before = sorted(HERE.iterdir())
    code = main(shlex.split((HERE / f"{name}.args").read_text()))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == (HERE / f"{name}.txt").read_text()
    assert sorted(HERE.iterdir()) == before, "a failed command must write nothing"


def test_there_are_cases() -> None:
    assert len(CASES) >= 12
