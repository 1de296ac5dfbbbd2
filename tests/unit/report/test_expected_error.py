"""What a prediction says of its own error, and where that comes from."""

from __future__ import annotations

import json

import pytest

from ppt_gpu.report.expected_error import Group, expected_error, expected_text, generation_of
from ppt_gpu.report.limiter import KINDS, OTHERWISE, limiter, limiter_kind
from ppt_gpu.report.result import Bound
from ppt_gpu.sm.result import STALL_REASONS
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.evidence import document, groups
from ppt_gpu.validate.rows import Row

GROUPS = (
    Group("Kepler", "memory latency", 10, 0.3, 0.2, 0.5),
    Group("Volta", "memory latency", 30, 0.1, 0.04, 0.5),
    Group("Volta", "arithmetic", 3, 0.1, 0.1, 0.1),
)


@pytest.mark.parametrize(
    ("capability", "name"),
    [((1, 3), "Tesla"), ((3, 5), "Kepler"), ((7, 0), "Volta"), ((7, 5), "Turing"), ((8, 6), "Ampere"), ((8, 9), "Ada"),
     ((12, 0), "Blackwell")],
)  # fmt: skip
def test_generations(capability: tuple[int, int], name: str) -> None:
    assert generation_of(capability) == name


def test_evidence_of_the_own_generation_comes_first() -> None:
    text = expected_text(expected_error(load_gpu("v100"), "memory latency", GROUPS))
    assert text == "about 4% (median of 30 measured launches limited by memory latency, on Volta)"


def test_without_it_all_generations_count_by_their_launches() -> None:
    found = expected_error(load_gpu("h100"), "memory latency", GROUPS)
    assert found is not None and found.median == pytest.approx((10 * 0.2 + 30 * 0.04) / 40)
    assert expected_text(found).endswith("on Kepler, Volta; none on this generation)")


@pytest.mark.parametrize("kind", ["arithmetic", "synchronisation"])
def test_few_launches_are_no_evidence(kind: str) -> None:
    found = expected_error(load_gpu("v100"), kind, GROUPS)
    assert found is None and expected_text(found).startswith("no evidence")


def test_every_stall_reason_has_a_kind_and_the_text_names_the_same() -> None:
    members = [name for kind in KINDS.values() for name in kind]
    assert len(members) == len(set(members)) and OTHERWISE not in KINDS
    for reason in STALL_REASONS:
        stalls = (("selected", 0.5), (reason, 0.4))
        kind = limiter_kind((), stalls, 100.0)
        assert (reason in KINDS.get(kind, ())) != (kind == OTHERWISE)
        assert reason == "selected" or reason in limiter((), stalls, 100.0)


def test_a_bound_that_is_nearly_reached_is_the_limit() -> None:
    bounds = (Bound("DRAM bandwidth", 80.0, "", ""), Bound("issue slots", 20.0, "", ""))
    stalls = (("wait", 1.0),)
    assert limiter_kind(bounds, stalls, 100.0) == "memory bandwidth"
    assert limiter_kind(bounds, stalls, 200.0) == "arithmetic"


def test_groups_of_rows() -> None:
    rows = [
        Row("a", "k20", "kepler", "steady", 100.0, predicted, "us", limit)
        for predicted, limit in ((110.0, "arithmetic"), (80.0, "arithmetic"), (130.0, "load/store"))
    ]
    assert groups(rows) == [
        Group("Kepler", "arithmetic", 2, 0.15, 0.15, 0.2),
        Group("Kepler", "load/store", 1, 0.3, 0.3, 0.3),
    ]
    content = json.loads(document(rows))
    assert content["sets"][0]["cases"] == 3 and len(content["groups"]) == 2
