"""The page in a real browser engine: it renders, runs its script without a complaint, and asks for nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hanging import HANGING

from ppt_gpu.pipeline import predict
from ppt_gpu.report.html.page import to_html
from ppt_gpu.report.html.palette import THEME
from ppt_gpu.sm.reference.recording import Window

#: a Python that has PySide6 may be another one than this
PYTHON = os.environ.get("PPT_GPU_BROWSER_PYTHON", sys.executable)


@pytest.fixture(scope="module")
def browser() -> str:
    found = subprocess.run([PYTHON, "-c", "import PySide6.QtWebEngineWidgets"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("needs the package PySide6 (PPT_GPU_BROWSER_PYTHON names a Python that has it) and its libraries")
    return PYTHON


@pytest.mark.parametrize("name, gpu", [("vecadd", "a100"), ("spmv", "k40")])
@pytest.mark.parametrize("width, theme", [(1200, "light"), (390, "dark")])
def test_page_in_a_browser(browser: str, name: str, gpu: str, width: int, theme: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(to_html(predict(name, gpu, window=Window(0, 300))), encoding="utf-8")
    command = [browser, str(Path(__file__).with_name("browser.py")), str(file), str(width), theme]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGING)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["loaded"]
    assert (found["messages"], found["requests"]) == ([], [])
    assert found["overflow"] == 0, "the page is wider than the window"
    assert (found["names"], found["broken"]) == (0, 0), "nameless controls, or links to nowhere"
    assert found["toggled"]
    assert found["background"] == rgb(THEME["page"][theme == "dark"])
    assert 0 < found["dimmed"] < found["paths"]


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"
