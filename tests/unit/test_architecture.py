"""ARCHITECTURE.md and the READMEs of folders list every module once, and only modules that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ppt_gpu"
#: files of a folder from which on it has a README with its list, and lines that this may have
MANY, SCREEN = 9, 40
LINE = r"^- `([a-z_0-9/]+\.py)`: (.+)$"


def modules(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}


#: folders whose README lists their files
LISTING = sorted(page.parent for page in PACKAGE.rglob("README.md") if re.search(LINE, page.read_text(), re.M))


def listed(page: Path, folder: Path) -> list[str]:
    """The files of `folder` that a page lists, each with the words with which its docstring begins."""
    lines = re.findall(LINE, page.read_text(), re.M)
    for name, text in lines:
        docstring = ast.get_docstring(ast.parse((folder / name).read_text())) or ""
        assert " ".join(docstring.split()).startswith(text), name
    names = [name for name, _ in lines]
    assert len(names) == len(set(names))
    return names


@pytest.mark.parametrize("folder", LISTING, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_readme_lists_its_folder_on_one_screen(folder: Path) -> None:
    page = folder / "README.md"
    assert len(page.read_text().splitlines()) <= SCREEN
    assert set(listed(page, folder)) == modules(folder)
    assert f"({folder.relative_to(ROOT)}/README.md)" in (ROOT / "ARCHITECTURE.md").read_text()


def test_a_large_folder_has_a_readme() -> None:
    folders = [folder for folder in (PACKAGE, *PACKAGE.rglob("*")) if folder.is_dir()]
    assert {folder for folder in folders if len(modules(folder)) >= MANY} <= set(LISTING)


def test_every_other_module_has_its_line() -> None:
    files = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py" and path.parent not in LISTING
    }
    assert set(listed(ROOT / "ARCHITECTURE.md", PACKAGE)) == files


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their names alone."""
    reference = ROOT / "tests" / "reference"  # a package
    files = [path for path in (ROOT / "tests").rglob("*.py") if reference not in path.parents]
    names = [path.name for path in files if path.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
