"""The goldens of the analytical models: id, inputs, expected, tol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parent / "data" / "model_goldens.json"
GOLDENS: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in json.loads(FILE.read_text())["goldens"]}
#: kinds that a release is held to; "memory" and "claim" are context
GATED = ("printed", "derived", "log", "rebuilt")


def gated(prefix: str) -> list[str]:
    """Ids that begin with `prefix`, of the kinds that must pass."""
    return [name for name, entry in GOLDENS.items() if name.startswith(prefix) and entry["kind"] in GATED]


def holds(name: str, found: Mapping[str, Any]) -> None:
    """Assert that `found` has every expected value of golden `name`, within its tolerance."""
    case = GOLDENS[name]
    tolerance = case["tol"]
    absolute = tolerance.get("abs", {})  # by key; "*": the others
    for key, expected in case["expected"].items():
        assert key in found, f"{name}: nothing found for {key}"
        margin = absolute.get(key, absolute.get("*"))
        assert found[key] == _approx(expected, tolerance.get("rel"), margin), f"{name}: {key}"


def _approx(expected: Any, relative: float | None, margin: float | None) -> Any:
    """Numbers within the tolerance, also in lists; anything else as it is."""
    if isinstance(expected, list):
        return [_approx(item, relative, margin) for item in expected]
    if isinstance(expected, bool) or not isinstance(expected, int | float):
        return expected
    return pytest.approx(expected, rel=relative, abs=margin)
