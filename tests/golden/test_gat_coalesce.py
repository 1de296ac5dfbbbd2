"""GATSim's coalescing examples: distinct lines of a warp access, through the golden's function and the SM's rules."""

from __future__ import annotations

import numpy as np
import pytest
from goldens import goldens

from ppt_gpu.sm.accesses.coalesce import distinct_lines, transactions

GOLDENS = goldens("gat.coalesce.*")


@pytest.mark.parametrize("golden", GOLDENS, ids=[golden["id"] for golden in GOLDENS])
def test_distinct_lines(golden: dict) -> None:
    inputs, expected = golden["inputs"], golden["expected"]["accesses"]
    assert distinct_lines(inputs["addresses"], inputs["line"]) == expected
    offsets = np.array(inputs["addresses"], np.int64)
    size = 8 if golden["id"].endswith("double") else 4
    for rule in ("line", "sector"):
        found = transactions(rule, offsets, 0xFFFFFFFF, 0, size, inputs["line"], 32, rule == "line")
        assert len(found) == expected
