"""Each bad task list beside the text that it must give."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.tasklist.flat import flatten
from ppt_gpu.tasklist.text import parse_tasklist, read_tasklist

HERE = Path(__file__).parent
BAD = sorted(HERE.glob("*.tl"))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_tasklist(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    with pytest.raises(PptError) as caught:
        read_tasklist(path.name)
    assert str(caught.value) + "\n" == path.with_suffix(".txt").read_text()


def test_every_error_says_where() -> None:
    for path in BAD:
        for line in path.with_suffix(".txt").read_text().splitlines():
            if path.stem not in ("not_utf8",) and not line.startswith("  hint:"):
                assert line.split(":")[1].isdigit(), f"{path.name}: {line}"


def test_missing_file() -> None:
    with pytest.raises(PptError, match="cannot read"):
        read_tasklist(HERE / "there_is_no_such_file.tl")


def test_loops_beyond_the_budget() -> None:
    text = "tasklist 1\nblock 32\nregisters 8\nrepeat 1000000 {\n repeat 1000000 {\n 1 fp32\n }\n}\nend\n"
    with pytest.raises(BudgetError, match="1,000,000,000,000 tasks a warp; the budget is 67,108,864") as caught:
        flatten(parse_tasklist(text, "x.tl"))
    assert caught.value.hint


def test_a_file_cut_off_anywhere_is_an_error() -> None:
    """Except where only the last line end is lost."""
    text = (Path(__file__).parents[3] / "tasklists" / "triad.tl").read_text().rstrip()
    for size in range(len(text)):
        with pytest.raises(PptError):
            parse_tasklist(text[:size], "x.tl")
    assert parse_tasklist(text, "x.tl").name == "triad"
