"""docs/exploration.md shows what its commands print."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from readme_blocks import ROOT, blocks, output

PAGE = ROOT / "docs" / "exploration.md"


@pytest.mark.parametrize("command", blocks(PAGE))
def test_pasted_output_is_current(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert blocks(PAGE)[command] == output(command)
