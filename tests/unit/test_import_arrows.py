"""Stages import only leftwards: spec, ptx <- tasklist <- exec <- sm, analytic <- scale <- report <- front doors."""

import ast
from pathlib import Path

import pytest

import ppt_gpu

PACKAGE = Path(ppt_gpu.__file__).parent

#: stage -> the stages it may import; every module may import these
COMMON = {
    *("errors", "units", "policies", "paths", "files", "outputs", "compiled", "compiled_cache", "interrupt"),
    *("progress", "threads"),
}
BASE = {"spec": set(), "ptx": set()}
BASE["tasklist"] = {"spec", "ptx"}
BASE["exec"] = BASE["tasklist"] | {"tasklist"}
BASE["machine"] = BASE["exec"] | {"exec"}
BASE["sm"] = BASE["machine"] | {"machine"}
BASE["analytic"] = BASE["sm"] | {"sm"}
BASE["scale"] = BASE["analytic"] | {"analytic"}
BASE["multicore"] = BASE["analytic"] | {"analytic"}
BASE["cluster"] = BASE["scale"] | {"scale"}
BASE["report"] = BASE["cluster"] | {"cluster", "multicore"}
BASE["sass"] = BASE["exec"] | {"exec"}
BASE["frontends"] = BASE["sass"] | {"sass"}
BASE["inputs"] = BASE["frontends"] | {"frontends", "machine"}
BASE["pipeline"] = BASE["report"] | {"report", "sass", "frontends", "inputs"}
BASE["cluster_kernels"] = BASE["pipeline"] | {"pipeline"}
BASE["comparison"] = BASE["pipeline"] | {"pipeline"}
BASE["representations"] = BASE["pipeline"]
BASE["programs"] = BASE["representations"] | {"representations"}
BASE["explore"] = BASE["comparison"] | {"comparison"}
BASE["validate"] = BASE["explore"] | {"explore", "cluster_kernels", "representations", "programs"}
BASE["calibrate"] = BASE["validate"] | {"validate"}
BASE["commands"] = BASE["calibrate"] | {"calibrate"}
BASE["cli"] = BASE["commands"] | {"commands"}
BASE["__main__"] = BASE["cli"] | {"cli"}
BASE["__init__"] = BASE["cli"]
ALLOWED = BASE | {name: set() for name in COMMON}


def imported(path: Path) -> set[str]:
    """The stages of ppt_gpu that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "ppt_gpu" else [node.module]
            )
        found |= {name.split(".")[1] for name in names if name.startswith("ppt_gpu.")}
    return found - COMMON - {"__version__"}


def stage(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_stage_is_known() -> None:
    assert {stage(path) for path in FILES} <= set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_left(path: Path) -> None:
    here = stage(path)
    wrong = imported(path) - ALLOWED[here] - {here}
    assert not wrong, f"{here} must not import {sorted(wrong)}"


def test_no_relative_imports() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative import"
