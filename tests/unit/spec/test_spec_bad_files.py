"""Every bad GPU file gives exactly the text beside it: all errors at once, with file, line and hint."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec import load_gpu

FOLDER = Path(__file__).resolve().parents[2] / "errors" / "spec"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_expected_text(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    with pytest.raises(PptError) as caught:
        load_gpu(path.name)
    assert str(caught.value) + "\n" == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_the_folder_is_not_empty() -> None:
    assert len(FILES) > 15
