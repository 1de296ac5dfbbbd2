"""What tests of several stages need."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from ppt_gpu.emulator.cache import trace_cache as kept


@pytest.fixture(scope="module")
def ticking_clock() -> Iterator[None]:
    """CPU time passes by looking at it, a second each time: what is measured does not depend on the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "process_time", count(0.0).__next__)
        yield


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No traces or timings kept on disk or in memory."""
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "cache"))
    kept.forget()
    yield
    kept.forget()
