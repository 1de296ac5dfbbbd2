"""docs/tour.ipynb runs, and shows what it is kept with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tools"))

pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")


def test_the_notebook_is_current() -> None:
    import nbformat
    from run_notebook import NOTEBOOK, executed, shown

    assert shown(nbformat.read(NOTEBOOK, as_version=4)) == shown(executed())
