"""docs/exploration.md: its commands run, and it shows what they print."""

import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from readme_blocks import ROOT, blocks, output

from ppt_gpu.cli import main

PAGE = ROOT / "docs" / "exploration.md"
COMMANDS = [line[2:] for line in PAGE.read_text().splitlines() if line.startswith("$ ppt-gpu ")]


def test_commands_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 11
    for command in COMMANDS:
        words, _, target = command.partition(" > ")
        assert main(shlex.split(words)[1:]) == 0, command
        out = capsys.readouterr().out
        assert out, command
        if target:
            Path(target).write_text(out)


@pytest.mark.parametrize("command", blocks(PAGE))
def test_pasted_output_is_current(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert blocks(PAGE)[command] == output(command)
