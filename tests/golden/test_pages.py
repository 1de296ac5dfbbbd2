"""Every command, file and snippet of docs/ works as it stands there (how pages are read: docs_pages.py)."""

from __future__ import annotations

import io
import os
import re
import runpy
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from docs_pages import ROOT, Step, pages, steps

from ppt_gpu.cli import main

PAGES = pages()
SLOW_PAGES = [page for page in PAGES if any("slow" in step.note for step in steps(page))]
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs"))


def run_command(words: list[str], expected: int, where: str) -> str:
    """What a command prints. `ppt-gpu`, `python run_sim.py` and `python FILE` run in this process."""
    printed = io.StringIO()
    if words[0] == "ppt-gpu" or words[:2] == ["python", "run_sim.py"]:
        with redirect_stdout(printed):
            found = main(words[1:] if words[0] == "ppt-gpu" else words[2:])
    elif words[0] == "python" and words[1].endswith(".py"):
        with redirect_stdout(printed):
            runpy.run_path(words[1], run_name="__main__")
        found = 0
    else:
        program = sys.executable if words[0] == "python" else words[0]
        more = {"PATH": PATH, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        run = subprocess.run(
            [program, *words[1:]], env=os.environ | more, stdout=subprocess.PIPE, text=True, check=False
        )
        found = run.returncode
        printed.write(run.stdout)
    assert found == expected, f"{where}: {' '.join(words)} ends with {found}"
    return printed.getvalue()


def run_step(step: Step, where: str, names: dict[str, Any], slow: bool) -> None:
    needs = step.noted("needs")
    if step.kind == "file":
        Path(step.file).parent.mkdir(parents=True, exist_ok=True)
        Path(step.file).write_text(step.text, encoding="utf-8")
    elif (
        "not run" in step.note
        or ("slow" in step.note and not slow)
        or (needs and shutil.which(needs, path=PATH) is None)
    ):
        return
    elif step.kind == "python":
        exec(compile("\n" * step.line + step.text, where, "exec"), names)
    else:
        assert step.kind == "console", f"{where}: a block of '{step.kind}' is neither shown nor run"
        for words, shown in step.commands:
            if words[-2:-1] == [">"]:
                Path(words[-1]).write_text(run_command(words[:-2], 0, where), encoding="utf-8")
                continue
            printed = iter(run_command(words, int(step.noted("exit") or 0), where).splitlines())
            for line in shown:
                assert line in printed, f"{where}: {' '.join(words)} does not print (in this order)\n{line}"


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    for name in ("examples", "tasklists", "validation"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    names: dict[str, Any] = {"__name__": "page"}
    for step in steps(page):
        run_step(step, f"{page.name}:{step.line}", names, slow)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW_PAGES, ids=name_of)
def test_page_runs_with_its_slow_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch, slow=True)


def test_links_lead_somewhere() -> None:
    for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *ROOT.glob("*/README.md")):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_page_is_listed() -> None:
    """docs/README.md leads to all others."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = name_of(page)
        assert name == "README.md" or f"({name}" in index, name
