"""The README shows what the program prints today."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from readme_blocks import ROOT, blocks, output


@pytest.mark.parametrize("command", [name for name in blocks() if not name.startswith("bench")])
def test_pasted_output_is_current(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert blocks()[command] == output(command)


def test_there_are_blocks() -> None:
    assert {name.split()[0] for name in blocks()} == {"predict", "validate", "bench"}
