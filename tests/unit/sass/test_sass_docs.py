"""The commands of docs/sass.md that need no CUDA tools run as they stand, on the files of examples/sass."""

import shlex
import shutil
from pathlib import Path

import pytest

from ppt_gpu.cli import main

ROOT = Path(__file__).parents[3]


def commands() -> list[str]:
    text = (ROOT / "docs" / "sass.md").read_text()
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ppt-gpu ")]
    return [line.removeprefix("ppt-gpu ") for line in lines if not line.startswith("ppt-gpu check-isa")]


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples" / "sass", tmp_path / "examples" / "sass")
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert {line.split()[0] for line in found} == {"predict", "compare", "translate", "check", "validate"}
    for line in found:
        assert main(shlex.split(line)) == 0, line
    assert capsys.readouterr().err == ""
