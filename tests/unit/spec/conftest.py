"""What tests of the experiments behind hardware files need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[3] / "hardware" / "tools"


@pytest.fixture
def hardware_tool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a script of hardware/tools by its name; it and those that it imports are gone after the test."""
    monkeypatch.syspath_prepend(str(TOOLS))
    yield import_module
    for name in {path.stem for path in TOOLS.glob("*.py")} & set(sys.modules):
        del sys.modules[name]
