"""What tests of several stages need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ppt_gpu.exec import kept


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No traces or timings kept on disk or in memory."""
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "cache"))
    kept.forget()
    yield
    kept.forget()
