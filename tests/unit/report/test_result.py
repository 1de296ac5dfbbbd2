"""Results in Python: rows for tables, pickles, and what a notebook shows."""

import pickle
from dataclasses import replace

import pytest
from wellformed import Page

from ppt_gpu.pipeline import predict
from ppt_gpu.report.html.page import to_html
from ppt_gpu.report.json import to_json
from ppt_gpu.report.result.metrics import REGISTRY
from ppt_gpu.report.result.result import Result
from ppt_gpu.report.text.text import render
from ppt_gpu.sm.reference.recording import Window


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [predict("spmv", "k40", window=Window(0, 100)), predict("sgemm", "k40")]


def test_rows_are_launches(results: list[Result]) -> None:
    spmv, sgemm = results
    assert [(row["launch"], row["kernel"]) for row in spmv.rows()] == [(0, "row_starts"), (1, "spmv")]
    (row,) = sgemm.rows()
    assert (row["workload"], row["gpu"], row["repeat"]) == ("sgemm", "k40", 1)
    assert row["kernel.time"] == sgemm.main.value("kernel.time")
    assert row["memory.l1_hit_rate"] is None  # global loads of a k40 do not use it


def test_columns_have_one_type(results: list[Result]) -> None:
    """polars takes no column of numbers and texts."""
    rows = [row for result in results for row in result.rows()]
    for tag, known in REGISTRY.items():
        values = [row[tag] for row in rows if tag in row and row[tag] is not None]
        assert all(isinstance(value, int | float) if known.unit else isinstance(value, str) for value in values), tag


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_libraries_take_rows(library: str, results: list[Result]) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame(results[0].rows())
    assert list(frame["kernel"]) == ["row_starts", "spmv"]


def test_pickles_come_back_whole(results: list[Result]) -> None:
    for result in results:
        back = pickle.loads(pickle.dumps(result))
        assert back == result
        assert to_json(back) == to_json(result)
        assert to_html(back) == to_html(result)
        assert render(back) == render(result)


def test_notebooks_show_a_summary(results: list[Result]) -> None:
    spmv, sgemm = results
    page = Page(sgemm._repr_html_())
    assert "limited by barriers" in page.text()
    assert "long_scoreboard" in page.text("td")
    assert page.all("script") == page.all("style") == page.references == []
    assert "row_starts" in Page(spmv._repr_html_()).text("td")
    evil = replace(sgemm, workload="<script>")
    assert Page(evil._repr_html_()).all("script") == []
    many = replace(sgemm, launches=sgemm.launches * 20)
    assert "and 8 more launches" in Page(many._repr_html_()).text("p")
