"""Worked numbers of the cache models: reuse distance, the Fermi mapping (Nugteren), SDCM, and mappings by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from goldens import golden, goldens

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.caches.nugteren import set_of
from ppt_gpu.models.caches.reuse_distance import COLD, reuse_distances
from ppt_gpu.models.caches.sdcm import hit_probability, normal_hit_probability, released_hit_probability


def test_stack_distances() -> None:
    record = golden("rd.stack")
    trace, expected = record["inputs"]["trace"], record["expected"]
    found = reuse_distances(np.array([ord(name) for name in trace]))
    assert [None if distance == COLD else distance for distance in found.tolist()] == expected["distance"]
    for ways in (2, 4):
        hits = (found != COLD) & (found < ways)
        assert int((~hits).sum()) == expected[f"misses_{ways}way_full"]


def test_fermi_mapping() -> None:
    record = golden("rd.fermihash")
    lines, sets = np.array(record["inputs"]["lines"]), record["inputs"]["sets"]
    assert set_of(lines, sets, "fermi").tolist() == record["expected"]["set"]


def test_other_mappings() -> None:
    lines = np.arange(4096)
    assert set_of(lines, 32, "modulo").tolist() == [line % 32 for line in range(4096)]
    assert set_of(lines, 32, "xor").tolist() == [(line % 32) ^ (line // 32 % 32) for line in range(4096)]
    for mapping in ("modulo", "xor", "fermi"):
        counts = np.bincount(set_of(np.arange(8192), 32, mapping), minlength=32)
        assert counts.tolist() == [256] * 32  # none prefers a set
    assert set(set_of(lines, 24, "xor").tolist()) <= set(range(24))
    with pytest.raises(PptError, match="unknown mapping"):
        set_of(lines, 32, "fermy")


@pytest.mark.parametrize("record", goldens("sdcm.*"), ids=lambda record: record["id"])
def test_sdcm(record: dict[str, Any]) -> None:
    given, expected, rel = record["inputs"], record["expected"], record["tol"]["rel"]
    distance, ways, blocks = given["D"], given["A"], given["B"]
    assert hit_probability(np.array([distance]), ways, blocks)[0] == pytest.approx(expected["P_hit"], rel=rel)
    if "normal" in expected:
        assert normal_hit_probability(distance, ways, blocks) == pytest.approx(expected["normal"], rel=rel)
        released = released_hit_probability(np.array([distance]), ways, blocks)[0]
        assert released == pytest.approx(expected["normal_abs_as_released"], rel=rel)


def test_hit_probability_falls_with_distance_and_ends_at_0() -> None:
    for ways, blocks in ((1, 64), (4, 64), (16, 128), (64, 64), (16, 1 << 16)):
        found = hit_probability(np.array([*range(300), 10**6, 10**9]), ways, blocks)
        assert found[0] == 1 and (np.diff(found) <= 1e-12).all() and (found >= 0).all() and (found <= 1).all()
        assert found[-1] < 1e-6
    assert hit_probability(np.array([COLD, 63, 64]), 64, 64).tolist() == [0, 1, 0]
    assert hit_probability(np.zeros((0,), np.int64), 4, 64).tolist() == []
    with pytest.raises(PptError, match="ways"):
        hit_probability(np.array([1]), 5, 4)
