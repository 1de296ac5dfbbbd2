"""Every bad workload under tests/errors/workload gives the text beside it, whole and in order."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx import load_module
from ppt_gpu.workload.reader import bind_workload, load_workload

ROOT = Path(__file__).resolve().parents[3]
CASES = sorted(path.name for path in (ROOT / "tests/errors/workload").glob("*.toml"))


def errors_of(path):
    workload = load_workload(path)
    bind_workload(workload, load_module(workload.ptx_path))


@pytest.mark.parametrize("name", CASES)
def test_error_text(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = Path("tests/errors/workload") / name
    with pytest.raises(PptError) as caught:
        errors_of(path)
    assert str(caught.value) + "\n" == path.with_suffix(".txt").read_text()


def test_there_are_cases():
    assert len(CASES) >= 16
