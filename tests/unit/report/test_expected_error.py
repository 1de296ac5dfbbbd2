"""What a prediction says of its own error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ppt_gpu.report.result.expected_error import ANY, Group, expected_error, expected_text, generation_of
from ppt_gpu.report.result.limiter import KINDS, OTHERWISE, limiter, limiter_kind
from ppt_gpu.report.result.result import Bound
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.spec import load_gpu

ALL = Group(ANY, ANY, 300, 20, ("k20", "v100"), ("Kepler", "Volta"), 0.12, 0.3, 0.6)
LATENCY = Group(ANY, "memory latency", 200, 12, ("k20", "v100"), ("Kepler", "Volta"), 0.09, 0.2, 0.5)
VOLTA = Group("Volta", "memory latency", 90, 9, ("v100",), ("Volta",), 0.04, 0.1, 0.2)
KEPLER = Group("Kepler", "memory latency", 80, 2, ("k20",), ("Kepler",), 0.05, None, 0.25)
AMPERE = Group("Ampere", "memory latency", 80, 3, ("a40",), ("Ampere",), 0.06, None, 0.3)
ARITHMETIC = Group(ANY, "arithmetic", 3, 1, ("v100",), ("Volta",), 0.4, None, 0.5)
GROUPS = (ALL, LATENCY, VOLTA, KEPLER, AMPERE, ARITHMETIC)


def line(gpu: str, kind: str, groups: tuple[Group, ...] = GROUPS, level: str = "steady") -> str:
    return expected_text(expected_error(load_gpu(gpu), kind, groups), load_gpu(gpu), level)


@pytest.mark.parametrize(
    ("capability", "name"),
    [((1, 3), "Tesla"), ((3, 5), "Kepler"), ((7, 0), "Volta"), ((7, 5), "Turing"), ((8, 6), "Ampere"), ((8, 9), "Ada"),
     ((12, 0), "Blackwell")],
)  # fmt: skip
def test_generations(capability: tuple[int, int], name: str) -> None:
    assert generation_of(capability) == name


def test_evidence_of_the_own_generation_comes_first() -> None:
    expected = "4% (90% of launches within 10%): 9 measured kernels limited by memory latency on Volta"
    assert line("v100", "memory latency") == expected


def test_few_kernels_tell_their_worst_launch() -> None:
    assert line("a100", "memory latency") == "6% (worst 30%): 3 measured kernels limited by memory latency on Ampere"


def test_without_it_all_generations_count() -> None:
    pooled = "9% (90% of launches within 20%): 12 measured kernels limited by memory latency on Kepler to Volta"
    assert line("h100", "memory latency") == f"{pooled}; none on Hopper"
    assert line("k40", "memory latency") == f"{pooled}; 2 measured kernels on Kepler: 5%"


def test_without_kernels_of_this_limit_all_kernels_count() -> None:
    pooled = "12% (90% of launches within 30%): 20 measured kernels on Kepler to Volta"
    assert line("h100", "load/store") == f"{pooled}; none limited by load/store"


def test_a_generation_without_measurements_is_like_the_one_that_is_furthest_off() -> None:
    far = replace(AMPERE, mean=0.2, worst=0.25)
    pooled = "20% (worst 25%): 12 measured kernels limited by memory latency on Kepler to Volta, none on Hopper"
    assert line("h100", "memory latency", (LATENCY, far)) == f"{pooled}; as on Ampere, where they are furthest off"
    few = replace(far, kernels=2)
    assert line("h100", "memory latency", (LATENCY, few)).endswith("Kepler to Volta; none on Hopper")


@pytest.mark.parametrize("name", ["a40", "rtx2060", "gtx1650", "l20", "a10g", "rtxpro6000"])
def test_boards_whose_tensor_cores_differ_are_real(name: str) -> None:
    assert "no real GPU" not in line(name, "memory latency")


def test_a_nearer_group_of_few_kernels_only_makes_it_worse() -> None:
    found = expected_error(load_gpu("v100"), "arithmetic", GROUPS)
    assert found is not None and (found.mean, found.bound, found.share) == (0.4, 0.5, False)
    better = replace(ARITHMETIC, mean=0.01, worst=0.02)
    found = expected_error(load_gpu("v100"), "arithmetic", (ALL, better))
    assert found is not None and (found.mean, found.bound) == (ALL.mean, ALL.p90)


def test_the_line_says_whose_error_it_is() -> None:
    text = line("v100", "arithmetic")
    assert text == (
        "40% (worst 50%): 1 measured kernel limited by arithmetic on Volta, worse than the 12% of "
        "20 measured kernels on Kepler to Volta"
    )


def test_few_kernels_are_no_evidence() -> None:
    assert line("v100", "arithmetic", (ARITHMETIC,)).startswith("no evidence")
    assert line("v100", "arithmetic", ()).startswith("no evidence")


def test_other_levels_say_that_the_evidence_is_of_another() -> None:
    assert line("v100", "memory latency", level="grid") == f"{line('v100', 'memory latency')}; of level steady"


def test_measurements_say_nothing_of_a_simulator() -> None:
    assert "validate gpgpusim" in line("gpgpusim_qv100", "memory latency")
    assert "no real GPU" in line("gpumech_table1", "memory latency")
    assert "gpgpusim" not in line("gpumech_table1", "memory latency")


def test_every_stall_reason_has_a_kind_and_the_text_names_the_same() -> None:
    members = [name for kind in KINDS.values() for name in kind]
    assert len(members) == len(set(members)) and OTHERWISE not in KINDS
    for reason in STALL_REASONS:
        stalls = (("selected", 0.5), (reason, 0.4))
        kind = limiter_kind((), stalls, 100.0)
        assert (reason in KINDS.get(kind, ())) != (kind == OTHERWISE)
        assert reason == "selected" or reason in limiter((), stalls, 100.0)


def test_warps_that_are_not_selected_wait_only_for_scarce_slots() -> None:
    stalls = (("selected", 0.1), ("not_selected", 0.5), ("barrier", 0.4))
    assert limiter((Bound("issue slots", 20.0, "", ""),), stalls, 100.0).endswith("barrier, 40% of warp cycles")
    assert limiter((Bound("issue slots", 60.0, "", ""),), stalls, 100.0).endswith("not_selected, 50% of warp cycles")


def test_a_bound_that_is_nearly_reached_is_the_limit() -> None:
    bounds = (Bound("DRAM bandwidth", 80.0, "", ""), Bound("issue slots", 20.0, "", ""))
    stalls = (("wait", 1.0),)
    assert limiter_kind(bounds, stalls, 100.0) == "memory bandwidth"
    assert limiter_kind(bounds, stalls, 200.0) == "arithmetic"


def test_a_chain_of_instructions_is_named_by_what_it_waits_for() -> None:
    """Few blocks that run one after another's start, each as long as all: nothing is busy, no launch is late."""
    stalls = (("selected", 0.2), ("wait", 0.6), ("long_scoreboard", 0.2))
    path = Bound("critical path", 93.0, "", "")
    assert limiter_kind((Bound("block launches", 94.0, "", ""), path), stalls, 100.0) == "arithmetic"
    assert limiter((path,), stalls, 100.0).endswith("wait, 60% of warp cycles")
    short = Bound("critical path", 20.0, "", "")
    assert limiter_kind((Bound("block launches", 94.0, "", ""), short), stalls, 100.0) == "block launches"
    assert limiter_kind((path, Bound("DRAM bandwidth", 80.0, "", "")), stalls, 100.0) == "memory bandwidth"
