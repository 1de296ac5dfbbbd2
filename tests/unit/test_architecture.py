"""ARCHITECTURE.md lists every module once, and only modules that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_has_its_line() -> None:
    listed = re.findall(r"^- `([a-z_0-9/]+\.py)`: .+$", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    files = {
        str(path.relative_to(ROOT / "ppt_gpu"))
        for path in (ROOT / "ppt_gpu").rglob("*.py")
        if path.name != "__init__.py"
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == files


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their names alone."""
    reference = ROOT / "tests" / "reference"  # a package
    files = [path for path in (ROOT / "tests").rglob("*.py") if reference not in path.parents]
    names = [path.name for path in files if path.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
