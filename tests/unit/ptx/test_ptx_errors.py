"""Bad PTX files: each stands in tests/errors/ptx beside the exact text of its error."""

from pathlib import Path

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.parsing.parser import parse_module

FOLDER = Path(__file__).parents[2] / "errors" / "ptx"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ptx")), ids=lambda path: path.stem)
def test_error_text(path: Path) -> None:
    with pytest.raises(PptError) as error:
        parse_module(path.read_text(), path.name)
    assert str(error.value) + "\n" == path.with_suffix(".txt").read_text()
    assert error.value.line and error.value.column


def test_every_text_has_its_file() -> None:
    texts = {path.stem for path in FOLDER.glob("*.txt")}
    assert texts == {path.stem for path in FOLDER.glob("*.ptx")}
    assert len(texts) > 40


def test_deep_scopes() -> None:
    text = ".version 8.0\n.target sm_80\n.entry k { " + "{" * 100_000 + "}" * 100_001
    with pytest.raises(PptError, match="more than 200 deep"):
        parse_module(text)


@pytest.mark.parametrize(
    "piece", ["add.s32 ", "{", "[%r1", "a:", "@%p ", "/* ", '"', "(", "%r1, ", ".reg .b32 x", "1+"]
)
def test_long_bad_input_is_read_in_linear_time(piece: str) -> None:
    """A quadratic regular expression would need hours here."""
    with pytest.raises(PptError):
        parse_module(".version 8.0\n.target sm_80\n.entry k {\n" + piece * 200_000)
