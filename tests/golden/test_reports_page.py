"""docs/reports.md: its commands and programs run."""

import re
import shlex
from pathlib import Path

import pytest

from ppt_gpu.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
COMMANDS = [line[2:] for line in PAGE.splitlines() if line.startswith("$ ppt-gpu ")]
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
WRITTEN = {"sgemm.html", "sgemm.json.gz", "spmv.svg", "stacks.svg"}


def test_commands_and_programs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert (len(COMMANDS), len(PROGRAMS)) == (6, 2)
    for command in COMMANDS:
        words = shlex.split(command.replace("20000:3000", "100:100"))[1:]
        short = ["--window", "0:100"] if {"--html", "--warps"} & set(words) else []
        assert main([*words, *short]) == 0, command
        assert capsys.readouterr().out, command
    for program in PROGRAMS:
        exec(compile(program, "docs/reports.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN
