"""The journal: what was added is there again, whatever a crash left at its end; one writer at a time."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.journal import Journal


def fill(path: Path, rows: dict[int, list[float]]) -> None:
    with Journal(path, "study") as journal:
        for number, row in rows.items():
            journal.add(number, row)


def rows_of(path: Path) -> dict[int, list[float]]:
    with Journal(path, "study") as journal:
        return dict(journal.rows)


ROWS = {0: [0.1, 1 / 3], 7: [1e-300, 5], 3: [2.5e-6]}


def test_rows_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "a journal"
    fill(path, ROWS)
    assert rows_of(path) == ROWS
    fill(path, {9: [1.0]})
    assert rows_of(path) == {**ROWS, 9: [1.0]}


@settings(max_examples=60)
@given(data=st.data())
def test_whatever_is_cut_off_rows_before_it_stay(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    fill(path, ROWS)
    whole = path.read_bytes()
    size = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:size])
    complete = max(whole[:size].count(b"\n") - 1, 0)
    assert rows_of(path) == dict(list(ROWS.items())[:complete])
    fill(path, {8: [4.0]})  # and what is added then stands behind them
    assert rows_of(path) == {**dict(list(ROWS.items())[:complete]), 8: [4.0]}


@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_row_is_no_row(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    fill(path, ROWS)
    lines = path.read_bytes().split(b"\n")
    number = data.draw(st.integers(1, len(ROWS)))
    place = data.draw(st.integers(0, len(lines[number]) - 1))
    lines[number] = lines[number][:place] + bytes([lines[number][place] ^ 1]) + lines[number][place + 1 :]
    path.write_bytes(b"\n".join(lines))
    assert rows_of(path) == {key: row for at, (key, row) in enumerate(ROWS.items(), 1) if at != number}


def test_of_another_study(tmp_path: Path) -> None:
    fill(tmp_path / "j", ROWS)
    with pytest.raises(PptError, match="the journal is of another run"):
        Journal(tmp_path / "j", "another")
    assert rows_of(tmp_path / "j") == ROWS


@pytest.mark.parametrize("text", ["notes", "notes\n", "a\nb\nc", "0123456789abcdef {}\n", "\n", "5"])
def test_a_file_of_somebody_elses_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "j").write_text(text)
    with pytest.raises(PptError, match="this file is no journal"):
        Journal(tmp_path / "j", "study")
    assert (tmp_path / "j").read_text() == text


def test_what_another_study_was_cut_in_stays(tmp_path: Path) -> None:
    fill(tmp_path / "j", ROWS)
    cut = (tmp_path / "j").read_bytes()[:-5]
    (tmp_path / "j").write_bytes(cut)
    with pytest.raises(PptError, match="the journal is of another run"):
        Journal(tmp_path / "j", "another")
    assert (tmp_path / "j").read_bytes() == cut


def test_only_in_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(PptError, match="cannot write: this is no regular file"):
            Journal(tmp_path / name, "study")


def test_a_disk_that_takes_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: whole(handle, bytes(data)[:7]))
    fill(tmp_path / "j", ROWS)
    assert rows_of(tmp_path / "j") == ROWS


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", "study"), pytest.raises(PptError, match="another run is writing this journal"):
        Journal(tmp_path / "j", "study")


def test_where_none_can_be(tmp_path: Path) -> None:
    with pytest.raises(PptError, match="cannot write"):
        Journal(tmp_path / "missing" / "j", "study")
