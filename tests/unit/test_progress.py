"""Progress: what the line says, that only a terminal gets one, and that it goes away."""

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from hanging import HANGING

from ppt_gpu.cli import main
from ppt_gpu.common import progress
from ppt_gpu.common.progress import Progress, clock, line, parts


class Terminal(io.StringIO):
    """What a person sees of it: the last line, overwritten by each carriage return."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stands for standard error, from now on: not in a fixture, because pytest sets it after those."""
        super().__init__()
        self.rows = threading.Event()
        monkeypatch.setattr(sys, "stderr", self)
        monkeypatch.delenv("TERM", raising=False)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "rows" in text:
            self.rows.set()
        return super().write(text)

    @property
    def seen(self) -> str:
        text: list[str] = []
        for piece in self.getvalue().split("\r"):
            text[: len(piece)] = piece
        return "".join(text)


def test_clock() -> None:
    assert [clock(seconds) for seconds in (0.4, 5, 65, 3725)] == ["0:00", "0:05", "1:05", "1:02:05"]


def test_time_left_is_by_what_was_finished_here() -> None:
    found = Progress("rows", 100, finished=20)
    assert found.text(found.began) == "20 of 100 rows"
    found.done(20)
    assert found.text(found.began + 30) == "40 of 100 rows, 1:30 left"
    found.to(100)
    assert found.text(found.began + 80) == "100 of 100 rows, 0:00 left"


def test_what_compiled_code_has_finished_is_asked_for() -> None:
    ended = [0, 0, 0, 0]
    found = Progress("blocks simulated", 4, counted=lambda: sum(ended))
    assert found.text(found.began + 10) == "0 of 4 blocks simulated"
    ended[2] = 1
    assert found.text(found.began + 10) == "1 of 4 blocks simulated, 0:30 left"


def test_line_tells_all_that_is_open() -> None:
    assert line("predict", 3, 0.0, 80) == "predict 0:03"
    with Progress("launches", 4) as outer, Progress("one", 1), Progress("simulating") as inner:
        assert line("predict", 3, 0.0, 80) == "predict 0:03 | 0 of 4 launches | simulating"
        assert line("predict", 3, 0.0, 20) == "predict 0:03 | 0 of"
        outer.done()
        inner.done()
        assert "1 of 4 launches, 1:00 left" in line("predict", 3, outer.began + 20, 80)
    assert line("predict", 3, 0.0, 80) == "predict 0:03"


def test_parts_count_themselves() -> None:
    seen = [(item, line("x", 0, time.monotonic(), 80).split(" | ")[1]) for item in parts("abc", "letters")]
    assert [(item, text.split(",")[0]) for item, text in seen] == [
        ("a", "0 of 3 letters"),
        ("b", "1 of 3 letters"),
        ("c", "2 of 3 letters"),
    ]


def test_terminal_sees_it_and_then_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT", 0.0)
    monkeypatch.setattr(progress, "AGAIN", 0.001)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))  # however long the first line takes
    terminal = Terminal(monkeypatch)
    with progress.shown("sweep"), Progress("rows", 3):
        assert terminal.rows.wait(HANGING)
    assert "sweep 0:00 | 0 of 3 rows" in terminal.getvalue()
    assert terminal.seen.strip() == ""


def test_short_commands_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT", 1e6)
    terminal = Terminal(monkeypatch)
    assert main(["gpus"]) == 0
    assert terminal.getvalue() == ""


def test_files_and_pipes_get_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SILENT", 0.0)
    assert main(["predict", "vecadd", "--gpu", "k40"]) == 0
    assert capsys.readouterr().err == ""


def test_errors_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT", 0.0)
    terminal = Terminal(monkeypatch)
    assert main(["predict", "vecadd", "--gpu", "k04"]) == 2
    assert terminal.seen.lstrip().startswith("error: ")
