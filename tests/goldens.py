"""The worked numbers of the published models: `golden("gat.fig3")`, and which test checks which.

The records stand in tests/golden/data/goldens.json, each with its source. `python tests/goldens.py` prints the table of
ids and the tests that ask for them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
FILE = TESTS / "golden" / "data" / "goldens.json"
#: where the records come from, where that lies beside the checkout
ORIGINAL = TESTS.parent.parent / "shared" / "models" / "goldens.json"
#: functions of tests whose first argument says which records they check
ASKING = ("golden", "goldens", "gated", "holds", "given")
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


def gated(prefix: str) -> list[str]:
    """Ids that begin with `prefix`, of the kinds that must pass."""
    return [name for name, entry in RECORDS.items() if name.startswith(prefix) and entry["kind"] in GATED]


def holds(name: str, found: Mapping[str, Any], without: Sequence[str] = ()) -> None:
    """Assert that `found` has every expected value of golden `name` but those of `without`, within its tolerance."""
    case = RECORDS[name]
    tolerance = case["tol"]
    absolute = tolerance.get("abs", {})  # by key; "*": the others
    for key, expected in case["expected"].items():
        if key in without:
            continue
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


def checked_by() -> dict[str, list[str]]:
    """id -> the tests that ask for it: "tests/golden/test_gpumech.py::test_mshr", a file alone for its constants."""
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
    """("::function", id or pattern) of every record that the code asks for by its id, or a test by its parameters."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef) and not function:
            inside = f"::{child.name}"
            parameters = (word for decorator in child.decorator_list for word in ast.walk(decorator))
            yield from ((inside, word.value) for word in parameters if _is_id(word))
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in ASKING:
            end = "*" if child.func.id == "gated" else ""
            yield from ((function, pattern + end) for word in child.args if (pattern := _pattern(word)))
        elif isinstance(child, ast.Assign):
            yield function, _pattern(child.value)
        if isinstance(child, ast.Subscript) and isinstance(child.value, ast.Name) and child.value.id == "RECORDS":
            yield function, _pattern(child.slice)
        yield from _asked(child, inside)


def _is_id(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in RECORDS


def _pattern(node: ast.AST) -> str:
    """The text of a literal, with * for what an f-string fills in behind the model's name; nothing for other code."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
        return text if "." in text.partition("*")[0] else ""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


if __name__ == "__main__":
    for name, places in checked_by().items():
        print(f"{name:30} {RECORDS[name]['kind']:8} {', '.join(places)}")
