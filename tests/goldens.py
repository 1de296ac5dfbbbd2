"""The worked numbers of the published models: `golden("gat.fig3")`, and which test checks which.

The records stand in tests/golden/data/goldens.json, each with its source. `python tests/goldens.py` prints the table of
ids and the tests that ask for them by `golden` or `goldens`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
FILE = TESTS / "golden" / "data" / "goldens.json"
#: kinds that a test must check; "memory" (recalled, not read again) and "claim" (results of papers) are context
GATED = ("printed", "derived", "log", "rebuilt")
RECORDS: dict[str, dict[str, Any]] = {record["id"]: record for record in json.loads(FILE.read_text())["goldens"]}


def golden(name: str) -> dict[str, Any]:
    """The record with this id: inputs, expected, tol and more. KeyError when there is none."""
    return RECORDS[name]


def goldens(pattern: str) -> list[dict[str, Any]]:
    """The records whose ids match, such as "gat.coalesce.*", in their order. KeyError when none does."""
    found = [record for name, record in RECORDS.items() if fnmatchcase(name, pattern)]
    if not found:
        raise KeyError(pattern)
    return found


def checked_by() -> dict[str, list[str]]:
    """id -> the tests that ask for it: "tests/golden/test_gatsim.py::test_figure_3", a file alone for its constants."""
    found: dict[str, list[str]] = {name: [] for name in RECORDS}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if path.name == "test_golden_index.py" or "golden" not in text:
            continue
        for function, pattern in _asked(ast.parse(text), ""):
            where = f"{path.relative_to(TESTS.parent)}{function}"
            for name, places in found.items():
                if fnmatchcase(name, pattern) and where not in places:
                    places.append(where)
    return found


def _asked(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    """("::function", id or pattern) of every call of `golden` or `goldens` with a literal."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef) and not function:
            inside = f"::{child.name}"
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in ("golden", "goldens"):
            yield from ((function, word.value) for word in child.args if isinstance(word, ast.Constant))
        yield from _asked(child, inside)


if __name__ == "__main__":
    for name, places in checked_by().items():
        print(f"{name:30} {RECORDS[name]['kind']:8} {', '.join(places)}")
