"""Every snippet of docs/tasklist.md works, and the page names everything the format has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ppt_gpu.spec.gpu import TASK_CLASSES
from ppt_gpu.tasklist.flat import flatten
from ppt_gpu.tasklist.parse import HEADER
from ppt_gpu.tasklist.text import parse_tasklist, write_tasklist
from ppt_gpu.tasklist.words import TASK_KEYS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "tasklist.md").read_text()


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", snippets("tasklist"))
def test_task_lists_on_the_page(text: str) -> None:
    tasklist = parse_tasklist(text, "page.tl")
    assert parse_tasklist(write_tasklist(tasklist), "page.tl") == tasklist
    assert len(flatten(tasklist).path) > 0


@pytest.mark.parametrize("code", snippets("python"))
def test_python_on_the_page(code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(code, "docs/tasklist.md", "exec"), {})
    assert re.match(r"9 tasks, critical path \d+ cycles, ILP 1.80, MLP 1.\d\d\n", capsys.readouterr().out)


def test_the_page_is_complete() -> None:
    assert len(snippets("tasklist")) == 3 and len(snippets("python")) == 1
    for word in (*HEADER, *TASK_KEYS, *(part for name in TASK_CLASSES for part in name.split("."))):
        assert re.search(rf"`[^`]*\b{word}\b[^`]*`", PAGE), word
