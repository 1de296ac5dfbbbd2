"""docs/reference is what docs/tools/make_reference.py makes of the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tools"))

from make_reference import PAGES, TARGET


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    kept = (TARGET / f"{name}.md").read_text(encoding="utf-8")
    assert kept == PAGES[name](), "run: python docs/tools/make_reference.py"
