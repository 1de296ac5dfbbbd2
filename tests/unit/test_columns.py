"""Tables that are too wide for 80 columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.report.text.columns import WIDTH, columns
from ppt_gpu.report.text.listing import listing

CELL = st.text("abc123", max_size=12)


def test_columns_are_as_wide_as_their_cells() -> None:
    rows = [("case", "cycles", "why"), ("saxpy", "1,200", "memory"), ("fma", "7", "pipe")]
    assert columns(rows, last_left=True) == ["case   cycles  why", "saxpy   1,200  memory", "fma         7  pipe"]


@given(st.integers(1, 30).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_bands_hold_every_cell_and_fit(rows: list[list[str]]) -> None:
    lines = columns(rows)
    assert max(map(len, lines)) <= WIDTH
    for row in range(len(rows)):
        found = [cell for line in lines[row :: len(rows) + 1] for cell in line.split()]
        bands = len(lines[row :: len(rows) + 1])
        expected = [cell for cell in [*rows[row][:1] * bands, *rows[row][1:]] if cell]
        assert sorted(found) == sorted(expected)


def test_text_goes_on_below_itself() -> None:
    text = "a long source that says where a number comes from, and more than that"
    name = "op.tensor.mma.f16acc.m16n8k16.latency"
    rows = [("sm.count", "15", text), ("dram.efficiency", "0.8", "short"), (name, "21", text)]
    lines = listing(rows, 60, longest=(20, 20)).splitlines()
    assert lines[0].startswith("sm.count              15   a long")
    assert lines[1].startswith(" " * 27)
    assert all(len(line) <= 60 for line in lines)
    assert "dram.efficiency       0.8  short" in lines
    at = lines.index(name + "  21")
    assert " ".join(line.strip() for line in lines[at + 1 :]) == text
    assert listing([], 80) == ""
