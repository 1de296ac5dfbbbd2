"""Property tests draw the same examples whenever and wherever they run (tests/conftest.py)."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    found: list[int] = []

    @settings(max_examples=300)
    @given(st.integers(0, 1 << 60))
    def note(value: int) -> None:
        found.append(value)

    note()
    return found


def test_the_same_examples_again() -> None:
    assert drawn() == drawn()


def test_examples_do_not_depend_on_the_constants_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    (tmp_path / "full_of_constants.py").write_text(f"NUMBERS = {[7**20 + number for number in range(1000)]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("full_of_constants")
    assert drawn() == before
