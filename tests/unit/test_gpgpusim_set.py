"""The set `gpgpusim`: its rows, and --speed: counts that are the reference's, ratios of seconds, the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ppt_gpu.validate.gpgpusim.launches import chosen, rows
from ppt_gpu.validate.gpgpusim.speed import Timed, speeds, timed, to_json, to_text

CASES = ("reduction(131072)", "vecadd(65536)")


@pytest.fixture(scope="module")
def found(ticking_clock: None) -> list[Timed]:
    return timed(CASES)


def test_predictions_are_those_without_times(found: list[Timed]) -> None:
    assert [one.row for one in found] == rows(CASES)
    assert len(found) > 10


def test_counts_are_those_of_the_reference(found: list[Timed]) -> None:
    for one in found:
        assert one.counts.thread_instructions == (one.instructions, one.instructions)
        ours, reference = one.counts.resident_blocks
        assert ours == reference


def test_seconds_are_of_each_launch(found: list[Timed]) -> None:
    for one in found:
        assert 0 < one.core < one.whole
        assert one.reference > 0


def test_speed_is_a_geometric_mean_of_long_launches(found: list[Timed]) -> None:
    rows = [replace(found[0], instructions=n, reference=8.0, whole=w, core=c) for n, w, c in
            ((2_000_000, 4.0, 1.0), (3_000_000, 1.0, 0.25), (999_999, 8.0, 8.0))]  # fmt: skip
    first, everything = speeds(rows)
    assert (first.gpu, first.launches, everything.gpu) == (found[0].row.gpu, 2, "all")
    assert (first.core, first.whole) == (pytest.approx(16.0), pytest.approx(4.0))
    assert speeds(rows[2:]) == []


def test_the_table_says_what_is_not_equal(found: list[Timed]) -> None:
    text = to_text("gpgpusim", found)
    assert max(map(len, text.splitlines())) <= 83  # the summary of every set
    assert f"thread instructions as in the reference: {len(found)} of {len(found)} launches" in text
    wrong = replace(found[0], counts=replace(found[0].counts, resident_blocks=(7, 8)))
    text = to_text("gpgpusim", [wrong, *found[1:]])
    row = found[0].row
    assert (
        f"{row.case}, {row.gpu}, {row.mode}: 7, not 8" in text and f"{len(found) - 1} of {len(found)} launches" in text
    )
    first = json.loads(to_json("gpgpusim", found))["rows"][0]
    assert first["thread_instructions"] == [found[0].instructions] * 2 and first["core_s"] == found[0].core


def test_a_program_is_chosen_whole() -> None:
    (members,) = [group for group in chosen(["reduction(131072)#2"]) if group[0]["mem"] == "perfect"][:1]
    assert [member["launch"] for member in members] == ["1", "2"]
