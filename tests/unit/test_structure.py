"""The package gets no harder to find one's way in: figures of its structure may only fall."""

from __future__ import annotations

from pathlib import Path

import pytest
from structure import Package, read_package

import ppt_gpu
from benchmarks.entered import bench_entered

#: What each figure may be at most. Lower it where a change makes the figure fall. It rises only with a reason in the
#: message of the same commit. `python tests/structure.py` prints the figures.
AT_MOST = {
    "files": 750,
    "lines": 98_710,
    "files of the largest folder": 23,
    "files over 500 lines": 1,
    "import circles": 0,
    "files in import circles": 0,
    "late imports": 52,
    "lines of the longest function": 130,
    "functions over 80 lines": 5,
    "functions over 12 parameters": 23,
    "annotations with Any": 645,
}
#: and what a prediction of vecadd on k40 enters. `python -m benchmarks entered` prints it.
ENTERED = {"files": 173, "functions": 967}


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return read_package(Path(ppt_gpu.__file__).parent).figures()


@pytest.mark.parametrize("name", AT_MOST)
def test_figures_only_fall(figures: dict[str, int], name: str) -> None:
    assert set(figures) == set(AT_MOST)
    assert figures[name] <= AT_MOST[name]


def test_a_prediction_enters_no_more_code() -> None:
    found = {figure["unit"]: figure["value"] for figure in bench_entered("vecadd", "k40")}
    assert {name for name in ENTERED if found[name] > ENTERED[name]} == set(), found


def package(folder: Path, **texts: str) -> Package:
    """A package `p` of modules with these texts; `face` is its face, `inner_face` that of `p.inner`."""
    for name, text in texts.items():
        parts = ["p", *name.split("__")]
        path = folder.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("__init__.py").touch()
        (path.with_name("__init__.py") if parts[-1] == "face" else path).write_text(text)
    return Package(folder / "p")


@pytest.mark.parametrize(
    "text",
    [
        "from p import b",
        "import p.b",
        "from p.b import B",
        "from . import b",
        "from .b import B",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import B",
        "def f():\n    from p.b import B",
        "class A:\n    def f(self):\n        if self:\n            from p.b import B",
        "try:\n    from p.b import B\nexcept ImportError:\n    pass",
    ],
)
def test_every_kind_of_import_makes_a_circle(tmp_path: Path, text: str) -> None:
    found = package(tmp_path, face="", a=text, b="from p.a import A\nclass B: ...")
    assert found.circles() == [["p.a", "p.b"]]
    assert found.late_imports() == text.count("def f")


@pytest.mark.parametrize("face", ["from p.inner.b import B", "from .b import B", "PLACES = {'B': 'b'}"])
def test_a_face_only_hands_on(tmp_path: Path, face: str) -> None:
    """Who imports a name from a face depends on the module that defines it, and on no other of that face."""
    texts = {"a": "from p.inner import B", "inner__face": face, "inner__b": "class B: ...", "inner__c": "import p.a"}
    assert package(tmp_path, face="", **texts).circles() == []
    texts["inner__b"] = "from p.a import A"
    assert package(tmp_path, face="", **texts).circles() == [["p.a", "p.inner.b"]]


def test_a_module_that_imports_itself_is_a_circle(tmp_path: Path) -> None:
    assert package(tmp_path, face="", a="from p.a import A\nclass A: ...", b="import p.a").circles() == [["p.a"]]


def test_sizes(tmp_path: Path) -> None:
    inner = "    def inner():\n        x: Any = 1\n        return 1\n"
    long = f"def outer(a: Any, b: list[Any], c: int) -> Any:\n{inner}    return 2\n"
    figures = package(tmp_path, face="", a=long, b="import_module('p.a')\nimport_module('os')").figures()
    assert figures["files"] == 3
    assert figures["lines"] == 6
    assert figures["lines of the longest function"] == 3
    assert figures["annotations with Any"] == 4
    assert figures["late imports"] == 1
