"""The pages of docs/ as programs: files that they show are written, their commands and Python are run, in order.

- ```` ```console ````: lines that begin with `$ ` are commands (`\\` continues them); the others, if there are any, are
  among what they print, in this order
- ```` ```toml my_gpu.toml ````: a second word is a file with this content
- ```` ```python ````: run in one namespace a page, unless it is a file
- a comment before a block: `<!-- needs: mpirun -->` only where that program is, `<!-- slow -->` only with the slow
  tests, `<!-- exit: 2 -->` the code a command ends with, `<!-- not run: WHY -->` never
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^>\n]*) -->\n)?^```(?P<language>\w+)(?: (?P<file>[\w./-]+))?\n(?P<text>.*?)^```$", re.M | re.S
)
#: languages whose blocks are shown, never run: outputs and equations
SHOWN = ("text", "json", "tasklist", "toml", "csv", "cuda", "ptx", "c", "sh")


@dataclass(frozen=True)
class Step:
    """One block of a page. `kind`: "file", "python" or "console"."""

    kind: str
    text: str
    file: str
    note: str
    line: int

    @property
    def commands(self) -> list[tuple[list[str], list[str]]]:
        """The words of each command of a console block, comments dropped, and the lines shown below it."""
        found: list[tuple[list[str], list[str]]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line[2:], comments=True), []))
            elif line.strip() not in ("", "..."):
                found[-1][1].append(line)
        return found

    def noted(self, name: str) -> str:
        """What the block's note says under `name:`; "" without."""
        found = re.search(rf"\b{name}: ([^;]+)", self.note)
        return found[1].strip() if found else ""


def pages() -> list[Path]:
    """All pages with something to run."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if any(steps(page))]


def steps(page: Path) -> Iterator[Step]:
    """The blocks of a page that are written or run, in order."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        language, file = match["language"], match["file"] or ""
        kind = "file" if file else language
        if kind in SHOWN:
            continue
        line = text.count("\n", 0, match.start("language")) + 1
        yield Step(kind, match["text"], file, match["note"] or "", line)
