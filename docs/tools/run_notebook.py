"""Runs docs/tour.ipynb and keeps what its cells show: `python docs/tools/run_notebook.py`. A test holds it to that.

Needs nbclient and ipykernel (extra `test`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def executed() -> Any:
    """The notebook with the outputs of today, run from the top of the checkout, the same whenever and wherever."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=600, startup_timeout=600, kernel_name="python3", resources=where).execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
    return notebook


def shown(notebook: Any) -> list[str]:
    """Of each code cell, the text of its outputs, in however many pieces it came; of pictures, that there is one."""
    return [
        "".join(_text(output) for output in cell.outputs if output.get("name") != "stderr")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    kinds = output.data
    return "a picture" if "image/png" in kinds else str(kinds.get("text/html") or kinds["text/plain"])


def main() -> int:
    nbformat.write(executed(), NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
