"""The README shows what the program prints today."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from readme_blocks import ROOT, blocks, output


def commands() -> list[Any]:
    """All but benches, whose figures are another machine's; what runs for a minute is slow."""
    slow = {"validate gpgpusim": pytest.mark.slow}
    return [pytest.param(name, marks=slow.get(name, ())) for name in blocks() if not name.startswith("bench")]


@pytest.mark.parametrize("command", commands())
def test_pasted_output_is_current(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert blocks()[command] == output(command)


def test_there_are_blocks() -> None:
    assert {name.split()[0] for name in blocks()} == {"predict", "validate", "bench"}
