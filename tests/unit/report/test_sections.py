"""Sections of the terminal report, what `explain` knows, and tables in narrow terminals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.pipeline import predict
from ppt_gpu.report.result.detail import pressures
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.result.stall_reasons import LETTERS, MEANINGS
from ppt_gpu.report.text import sections
from ppt_gpu.report.text.listing import listing
from ppt_gpu.report.text.text import render
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference.recording import Recording, Window

GIVEN = [sections.pressure, sections.warps, sections.explained("sm.ipc")]


@pytest.fixture(scope="module")
def result() -> Result:
    return predict("sgemm", "k40", window=Window(0, 300))


@pytest.fixture(scope="module")
def two_launches() -> Result:
    return predict("spmv", "k40", window=Window(0, 100))


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_too_long_and_no_word_is_cut(width: int, result: Result, two_launches: Result) -> None:
    for one in (result, two_launches):
        text = render(one, width=width, more=GIVEN)
        assert max(len(line) for line in text.splitlines()) <= width
        for launch in one.launches:
            cycles = float(launch.value("kernel.cycles"))
            words = [bound.resource for bound in launch.bounds if bound.cycles >= 0.005 * cycles]
            words += [reason for reason, share in launch.stalls if share >= 0.001]
            assert [word for word in words if word not in text] == []


def test_bars_shrink_before_they_go(result: Result) -> None:
    def bars(width: int) -> list[int]:
        lines = render(result, width=width).split("Bounds and speed of light")[1].split("Roofline")[0].splitlines()
        return [sum(line.count(mark) for mark in "█·") for line in lines if "pipe" in line]

    assert set(bars(120)) == {20}
    assert 6 <= min(bars(80)) < 20
    assert set(bars(60)) == {0}


def test_report_is_as_wide_as_columns_say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    longest = {}
    for columns in ("60", "80", "x"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["predict", "sgemm", "--gpu", "k40"]) == 0
        longest[columns] = max(len(line) for line in capsys.readouterr().out.splitlines())
    assert longest["60"] <= 60 < longest["80"] <= 80 < longest["x"] <= 120


def recording(spans: list[tuple[int, int, int, int, int, int]], first: int, end: int) -> Recording:
    nothing = np.zeros((0, 6), np.int64)
    return Recording(
        first, end, True, 1, np.array(spans, np.int64), nothing, nothing, nothing, (), (), (), (), (), (), (3,)
    )


def test_letters_are_the_reasons_of_most_cycles() -> None:
    selected, long, barrier = (STALL_REASONS.index(r) for r in ("selected", "long_scoreboard", "barrier"))
    spans = [(0, 0, 0, 10, 2, selected), (0, 0, 0, 12, 5, long), (0, 0, 0, 20, 4, barrier), (1, 0, 1, 10, 1, long)]
    found = recording(spans, 10, 26)
    assert sections.letters(found, 0, 1) == "##LLLLL   BBBB"
    assert sections.letters(found, 0, 4) == "#LBB"
    assert sections.letters(found, 0, 16) == "L"
    assert sections.letters(found, 1, 4) == "L"


def test_letters_differ() -> None:
    assert tuple(LETTERS) == STALL_REASONS
    assert len(set(LETTERS.values())) == len(STALL_REASONS)


def test_pressure_adds_up_to_the_use_of_the_pipes(result: Result) -> None:
    detail = result.main.detail
    assert detail is not None
    found = pressures(detail)
    for index, pipe in enumerate(detail.pipes):
        assert sum(row.shares[index] for row in found) == pytest.approx(pipe.share(detail.sm_cycles))
    assert sum(row.issued for row in found) == result.main.value("sim.warp_instructions")
    loads = [row for row in found if row.text.strip().startswith("ld.shared")]
    names = [pipe.name for pipe in detail.pipes]
    assert loads and all(row.shares[names.index("lsu")] > 0 == row.shares[names.index("fp32")] for row in loads)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_pressure_shows_every_number_whole(width: int, result: Result) -> None:
    """What does not fit beside one another stands in several tables, each with all lines."""
    detail = result.main.detail
    assert detail is not None
    far = replace(detail, source=tuple(replace(line, line=line.line + 10_000) for line in detail.source))
    launch = replace(result.main, detail=far)
    text = render(replace(result, launches=(launch,)), width=width, more=[sections.pressure])
    text = text.split("Pressure on pipes")[1].split("How this number")[0]
    assert max(len(line) for line in text.splitlines()) <= width
    tables = text.split("  line  ")[1:]
    shown = [name for one in tables for name in one.split("source")[0].split()[1:]]
    assert shown == [pipe.name for pipe in far.pipes if pipe.busy]
    for one in tables:
        for row in pressures(far):
            assert f"  {row.line}  " in one and f" {row.issued:,} " in one
    for row in pressures(far):
        shares = [f"{share:.1%}" for share in row.shares if share]
        cells = [cell for line in text.splitlines() if f"  {row.line}  " in line for cell in line.split()[2:]]
        assert [cell for cell in cells if cell.endswith("%")] == shares
    assert (len(tables) > 1) == (width == 60)


def test_results_in_a_console_are_a_line_and_as_text_the_report(result: Result) -> None:
    assert "\n" not in repr(result) + repr(result.main) and "sgemm on k40" in repr(result)
    assert str(result) == render(result)


def test_sections_of_a_result_without_details_are_left_out(result: Result) -> None:
    bare = replace(result, launches=(replace(result.main, detail=None, recording=None),))
    text = render(bare, more=GIVEN)
    assert "Pressure" not in text and "Warps over time" not in text
    assert "sm.ipc: IPC of an SM" in text


def test_flags_show_sections(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["predict", "vecadd", "--gpu", "k40"]
    assert main(command) == 0
    plain = capsys.readouterr().out
    assert main([*command, "--warps", "--pressure", "--window", "0:100", "--explain", "limiter"]) == 0
    shown = capsys.readouterr().out
    for title in ("Warps over time", "Pressure on pipes", "limiter: Limiter"):
        assert title in shown and title not in plain
    assert shown.index("Hot lines") < shown.index("Pressure") < shown.index("How this number was made")


@pytest.mark.parametrize(
    "more, expected",
    [
        (("--explain", "kernel.tim"), "did you mean 'kernel.time'?"),
        (("--explain", "gpumech"), "ppt-gpu compare WORKLOAD --gpu GPU --explain gpumech"),
        (("--json", "--warps"), "--json has no sections"),
    ],
)
def test_bad_arguments(more: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "vecadd", "--gpu", "k40", *more]) == 2
    out, err = capsys.readouterr()
    assert out == "" and expected in err


def test_explain_knows_reasons_and_models(capsys: pytest.CaptureFixture[str]) -> None:
    for name, expected in (
        ("barrier", "waited at a barrier"),
        ("gpumech", "IISWC 2014"),
        ("models", "\nvolkov "),
        ("sm.ipc", "instructions/cycle"),
    ):
        assert main(["explain", name]) == 0
        assert expected in capsys.readouterr().out
    assert main(["explain", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["reason"] for entry in document["stall_reasons"]] == list(MEANINGS)
    assert main(["explain", "long_scorebord"]) == 2
    assert "did you mean 'long_scoreboard'?" in capsys.readouterr().err


def test_listings_are_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert listing([("a", "one two"), ("long", "")], 20) == "a     one two\nlong\n"
    assert listing([("a", "one two three four five six seven")], 24) == "a  one two three four\n   five six seven\n"
    monkeypatch.setenv("COLUMNS", "60")
    for command in (["explain"], ["explain", "limiter"], ["explain", "models"], ["machines"]):
        assert main(command) == 0
        assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 60
