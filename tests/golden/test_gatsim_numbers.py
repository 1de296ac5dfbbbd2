"""GATSim: Algorithm 1, figure 3 and barriers (paper 001), and GPUMech's figure 8 through Algorithm 1."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from goldens import ORIGINAL, golden, goldens
from reference.gatsim import gatsim_time_reference

from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gatsim.work import GatsimMachine, GatsimTime, GatsimWork, straight_work

POLICY = {"rr": "lrr", "round_robin": "lrr", "gto": "gto", "gto_launch": "gto_launch"}


def scheduled(work: GatsimWork, policy: str = "lrr") -> tuple[GatsimTime, list[list[int]]]:
    """One block on one scheduler, and (cycle, warp, instruction) of every issue; compiled and plain agree on both."""
    log, issued = np.zeros((work.instructions, 3), np.int64), []
    found = gatsim_time(work, GatsimMachine(policy=policy), log)
    assert gatsim_time_reference(work, GatsimMachine(policy=policy), issued).cycles == found.cycles
    assert list(map(tuple, log.tolist())) == issued
    return found, log.tolist()


@pytest.mark.parametrize("record", goldens("gat.alg1.*"), ids=lambda record: record["id"])
def test_algorithm_1(record: dict[str, Any]) -> None:
    given, expected = record["inputs"], record["expected"]
    found, issued = scheduled(straight_work(given["warps"]), POLICY[given["policy"]])
    assert (found.cycles, issued) == (expected["total_cycles"], expected["issue"])


def test_figure_3() -> None:
    record = golden("gat.fig3")
    given, expected = record["inputs"], record["expected"]
    found, issued = scheduled(straight_work(given["warps"]), POLICY[given["policy"]])
    idle_from, resumes = next((a[0] + 1, b) for a, b in pairwise(issued) if b[0] > a[0] + 1)
    assert (idle_from, resumes[0] - idle_from) == (expected["no_ready_at"], expected["advance"])
    assert (resumes[0], resumes[1]) == (expected["next_issue"], expected["next_warp"])
    assert max(cycle for cycle, warp, _ in issued if warp == 0) + 1 == expected["warp0_all_issued_at"]
    assert found.cycles == expected["total_cycles"]


@pytest.mark.parametrize("record", goldens("gat.fig8.*"), ids=lambda record: record["id"])
def test_gpumech_s_figure_8(record: dict[str, Any]) -> None:
    given, expected = record["inputs"], record["expected"]
    warp = given["latencies"] * given["repeat"]
    found, _ = scheduled(straight_work([warp] * given["warps"]), POLICY[given["policy"]])
    assert found.cycles == expected["total_cycles"]
    assert found.cycles / found.issued == pytest.approx(expected["CPI"], rel=record["tol"]["rel"])


def test_a_barrier() -> None:
    record = golden("gat.barrier")
    given, expected = record["inputs"], record["expected"]
    at_barrier = [[item == "B" for item in warp] for warp in given["warps"]]
    delays = [[given["barrier_latency"] if item == "B" else item for item in warp] for warp in given["warps"]]
    found, issued = scheduled(straight_work(delays, barriers=at_barrier))
    assert (found.cycles, issued) == (expected["total_cycles"], expected["issue"])


def test_table_1_is_what_the_paper_prints() -> None:
    paper = next((ORIGINAL.parents[1] / "papers").glob("001_*.txt"), None)
    if paper is None:
        pytest.skip("the papers do not lie beside the repository")
    rows = re.findall(r"^<(\d+)>\s.*?\s(\d+)\s+([\d.]+[kM]?)\s+([\d.]+[kM]?)\s*$", paper.read_text(), re.M)
    found = {number: [int(times), *map(number_of, numbers)] for number, times, *numbers in rows}
    assert found == golden("gat.table1")["expected"]


def number_of(text: str) -> Any:
    """Of "1.7M" and the like."""
    scale = {"k": 1e3, "M": 1e6}.get(text[-1], 1)
    return pytest.approx(float(text.rstrip("kM")) * scale)


def test_table_1_is_within_what_the_machine_can_issue() -> None:
    """GTX 480: 15 SMs, at most 2 warp instructions of 32 threads a cycle each."""
    for invocations, instructions, cycles in golden("gat.table1")["expected"].values():
        assert invocations >= 1
        assert instructions / cycles <= 15 * 2 * 32
