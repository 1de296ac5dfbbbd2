"""GATSim's coalescing examples: distinct lines of a warp access, through the golden's function and the SM's rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.sm.coalesce import distinct_lines, transactions

HERE = Path(__file__).resolve().parent
GOLDENS = json.loads((HERE / "data" / "gat_coalesce.json").read_text())
FULL = HERE.parents[1].parent / "shared" / "models" / "goldens.json"


@pytest.mark.parametrize("golden", GOLDENS, ids=[golden["id"] for golden in GOLDENS])
def test_distinct_lines(golden: dict) -> None:
    inputs, expected = golden["inputs"], golden["expected"]["accesses"]
    assert distinct_lines(inputs["addresses"], inputs["line"]) == expected
    offsets = np.array(inputs["addresses"], np.int64)
    size = 8 if golden["id"].endswith("double") else 4
    for rule in ("line", "sector"):
        found = transactions(rule, offsets, 0xFFFFFFFF, 0, size, inputs["line"], 32, rule == "line")
        assert len(found) == expected


def test_the_copy_is_the_original() -> None:
    if not FULL.exists():
        pytest.skip("the shared reference data do not lie beside the repository")
    records = json.loads(FULL.read_text())
    records = records if isinstance(records, list) else records["goldens"]
    assert [r for r in records if r["id"].startswith("gat.coalesce.")] == GOLDENS
