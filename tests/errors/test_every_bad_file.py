"""Every bad file under tests/errors, as a user sees it: one clear error, exit code 2, nothing on standard output."""

from pathlib import Path

import pytest

from ppt_gpu.cli import main

HERE = Path(__file__).parent
#: a bad file stands beside a .txt of the same name with the text that it must give
BAD = sorted(
    path
    for path in HERE.rglob("*")
    if path.suffix in (".ptx", ".toml", ".tl")
    and path.with_suffix(".txt").is_file()
    and not path.with_suffix(".args").is_file()  # wrong only when run: test_run_errors.py
)


@pytest.mark.parametrize("path", BAD, ids=lambda path: str(path.relative_to(HERE)))
def test_bad_file(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    before = sorted(path.parent.iterdir())
    code = main(["check", path.name])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert sorted(path.parent.iterdir()) == before, "a failed command must write nothing"


def test_there_are_bad_files_of_every_kind() -> None:
    assert {path.suffix for path in BAD} == {".ptx", ".toml", ".tl"}
