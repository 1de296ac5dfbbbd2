"""However a simulation is run, every arrival and event time is the same: SHA-256 of all of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from plain_machine import PlainMachine
from runs import APPLICATIONS

from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings
from ppt_gpu.cluster.load import load_machine

MACHINES = {
    "ties": PlainMachine(nodes=6, gpus_per_node=2),
    "no ties": PlainMachine(nodes=6, gpus_per_node=2, overhead=312_345, latency=2_000_303, byte=113, near_byte=17),
    "switches": PlainMachine(nodes=6, gpus_per_node=2, hops=2, switches=5, uniform=False),
    "no overhead": PlainMachine(nodes=6, gpus_per_node=2, overhead=0, near_latency=0, near_byte=0),
}
CASES = [(app, machine, jitter) for app in APPLICATIONS for machine in MACHINES for jitter in (0.0, 0.2)]


def run(app: str, machine: str, jitter: float, **how: object) -> Outcome:
    settings = Settings(digest=True, jitter=jitter, seed=3)
    return simulate(MACHINES[machine], APPLICATIONS[app], settings, collapse=False, **how)  # type: ignore[arg-type]


@cache
def reference(app: str, machine: str, jitter: float) -> Outcome:
    """On simpy, event after event."""
    return run(app, machine, jitter, queue="simpy")


@pytest.mark.parametrize(("app", "machine", "jitter"), CASES)
def test_windows_are_simpy(app: str, machine: str, jitter: float) -> None:
    expected = reference(app, machine, jitter)
    found = run(app, machine, jitter)
    assert (found.sha256, found.time, found.events) == (expected.sha256, expected.time, expected.events)


@pytest.mark.parametrize(("partitions", "scheme"), [(2, "block"), (3, "round_robin"), (4, "block"), (4, "round_robin")])
@pytest.mark.parametrize(("app", "machine", "jitter"), CASES)
def test_partitions(app: str, machine: str, jitter: float, partitions: int, scheme: str) -> None:
    expected = reference(app, machine, jitter)
    found = run(app, machine, jitter, partitions=partitions, scheme=scheme)
    assert (found.sha256, found.time, found.messages) == (expected.sha256, expected.time, expected.messages)


def test_partitions_on_simpy() -> None:
    expected = reference("halo", "ties", 0.2)
    assert run("halo", "ties", 0.2, partitions=3, queue="simpy").sha256 == expected.sha256


@pytest.mark.parametrize("app", APPLICATIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_histories_and_critical_paths(app: str, machine: str) -> None:
    """Where each rank's time goes and the path that ends last, through messages and collectives of other parts."""
    how: list[dict[str, Any]] = [{"partitions": 2}, {"partitions": 4, "scheme": "round_robin"}]
    settings = Settings(history=True, jitter=0.1)
    expected = simulate(MACHINES[machine], APPLICATIONS[app], settings, collapse=False)
    assert sum(end - start for _, _, _, start, end in expected.path) > 0
    for parts in how:
        found = simulate(MACHINES[machine], APPLICATIONS[app], settings, collapse=False, **parts)
        assert found.path == expected.path
        assert [rank.split for rank in found.ranks] == [rank.split for rank in expected.ranks]


def test_the_digest_sees_a_picosecond() -> None:
    late = simulate(
        PlainMachine(nodes=6, gpus_per_node=2, latency=2_000_001), APPLICATIONS["halo"], Settings(digest=True)
    )
    assert late.sha256 != reference("halo", "ties", 0.0).sha256


def test_a_history_changes_nothing() -> None:
    settings = Settings(digest=True, history=True)
    found = simulate(MACHINES["ties"], APPLICATIONS["streams"], settings, collapse=False)
    assert found.sha256 == reference("streams", "ties", 0.0).sha256


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("dgx_h100", ()),
        ("mixed_node", ()),
        ("k40_node", ("network=torus_3d", "network.contention=links")),
    ],
)
def test_shipped_machines(name: str, overrides: tuple[str, ...]) -> None:
    machine = load_machine(name, 3, overrides)
    settings = Settings(digest=True, jitter=0.05)
    runs: list[dict[str, Any]] = [{}, {"queue": "simpy"}, {"partitions": 3}]
    found = {simulate(machine, APPLICATIONS["large_halo"], settings, collapse=False, **how).sha256 for how in runs}
    assert len(found) == 1
