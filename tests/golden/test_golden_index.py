"""Every golden number is checked by a test."""

from __future__ import annotations

import pytest
from goldens import FILE, GATED, ORIGINAL, RECORDS, checked_by, golden, goldens


def test_every_gated_golden_is_checked_somewhere() -> None:
    missing = [name for name, places in checked_by().items() if RECORDS[name]["kind"] in GATED and not places]
    assert missing == []


def test_the_copy_is_the_original() -> None:
    if not ORIGINAL.exists():
        pytest.skip("the shared reference data do not lie beside the repository")
    assert FILE.read_bytes() == ORIGINAL.read_bytes()


def test_ids_are_found_by_name_and_by_pattern() -> None:
    assert golden("ppt.fig5")["model"] == "ppt"
    assert [record["id"] for record in goldens("roofline*")] == ["roofline", "roofline.hier"]
    with pytest.raises(KeyError):
        golden("ppt.fig6")
    with pytest.raises(KeyError):
        goldens("ptp.*")
