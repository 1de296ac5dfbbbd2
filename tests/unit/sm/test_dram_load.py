"""DRAM under load: reads take longer the more of it is used, and an SM can use later what it left over."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.loop_programs import Entry, loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.machine import DRAM_AHEAD
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.whole_chip import simulate_chip
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu, Op, Pipe

CHAIN: tuple[Entry, ...] = (("load.global", (0,), 0),)
COPY: tuple[Entry, ...] = (("load.global", (0,), 0), ("store.global", (), -1))
LATENCY, COST = 100, 50  # cycles: of an idle DRAM; for which a line occupies it


def loaded(latency: int, sms: int = 1) -> Gpu:
    """One scheduler. DRAM brings a line of 128 B to each of `sms` SMs in 50 cycles; nothing else limits memory."""
    gpu = load_gpu("k40")
    dram = {"bandwidth": 128 / COST * sms * gpu.sm.clock, "efficiency": 1.0, "turnaround": 0.0, "burst": 0}
    return dataclasses.replace(
        gpu,
        pipes={name: Pipe(name, 32, "scheduler", 1, 1) for name in ("math", "lsu")},
        isa=dataclasses.replace(
            gpu.isa, ops={name: Op(name, "lsu" if "." in name else "math", 6, 1) for name in gpu.isa.ops}
        ),
        sm=dataclasses.replace(gpu.sm, count=sms, schedulers=1, issue_width=1, policy="lrr"),
        l1=dataclasses.replace(gpu.l1, caches_global=False),
        l2=dataclasses.replace(
            gpu.l2, size=128 * sms, latency=20, bandwidth=1e6, write="write-through", write_allocate=False
        ),
        dram=dataclasses.replace(gpu.dram, latency=LATENCY, loaded_latency=latency, **dram),  # type: ignore[arg-type]
        memory=dataclasses.replace(gpu.memory, requests_per_cycle=0.0),
    )


def run(gpu: Gpu, body: tuple[Entry, ...], repeat: int, sms: int = 1) -> SmResult:
    program = loop_program(gpu, body, repeat, 1, 1)
    plain, fast = (
        simulate(program, gpu, resident_blocks=1, active_sms=sms, reference=reference) for reference in (True, False)
    )
    assert plain.cycles == fast.cycles
    return fast


def settled(extra: float) -> float:
    """Latency l of one of a chain of loads: l = LATENCY + extra * (COST / l)^2."""
    latency = float(LATENCY)
    for _ in range(100):
        latency = LATENCY + extra * (COST / latency) ** 2
    return latency


@pytest.mark.parametrize("extra", [0, 90, 300])
def test_a_read_takes_longer_by_the_square_of_the_use(extra: int) -> None:
    assert run(loaded(extra), CHAIN, 400).cycles / 400 == pytest.approx(settled(extra), rel=0.02)


def test_where_half_are_writes_it_takes_twice_as_long() -> None:
    """A chain of loads, with a store each: DRAM is used twice as much, 2 * 50 of its cycles a load."""
    found = run(loaded(90), COPY, 400)
    assert found.dram_read_bytes == found.dram_write_bytes
    latency = float(LATENCY)
    for _ in range(200):  # the two reach it from either side
        latency = (latency + LATENCY + 2 * 90 * min(2 * COST / latency, 1) ** 2) / 2
    assert found.cycles / 400 == pytest.approx(latency, rel=0.02)


def test_the_chip_waits_as_its_only_sm_does() -> None:
    gpu = loaded(200)
    program = loop_program(gpu, CHAIN, 300, 1, 1)
    for reference in (True, False):
        found = simulate_chip(program, gpu, resident_blocks=1, reference=reference)
        assert found.cycles == run(gpu, CHAIN, 300).cycles


@pytest.mark.slow
def test_what_an_sm_leaves_over_it_can_use_later() -> None:
    """Loads of 20 lines at once, after arithmetic that takes as long as 40 of them at the SM's share of DRAM."""
    burst: tuple[Entry, ...] = (*((("load.global", (), slot)) for slot in range(20)), ("fp32", tuple(range(20)), 20))
    thinking = 40 * COST // 6
    body = (*burst, *((("fp32", (20,), 20),) * thinking))
    share, ahead = (run(loaded(extra, 2), body, 20, 2).cycles / 20 for extra in (0, 1))
    assert thinking * 6 <= DRAM_AHEAD
    assert share == pytest.approx(thinking * 6 + LATENCY + 19 * COST, rel=0.03)
    assert ahead == pytest.approx(thinking * 6 + LATENCY + 19, rel=0.06)


@pytest.mark.slow
def test_in_the_long_run_an_sm_has_its_share() -> None:
    """Loads without anything between them take DRAM's time, whatever they may use ahead."""
    body: tuple[Entry, ...] = tuple(("load.global", (slot,), slot) for slot in range(20))
    share, ahead = (run(loaded(extra, 2), body, 25, 2).cycles for extra in (0, 1))
    assert share == pytest.approx(500 * COST, rel=0.01)
    assert ahead == pytest.approx(share, rel=0.01)


@pytest.mark.slow
def test_an_sm_that_starts_out_of_step_finds_unused_share_once() -> None:
    """Loads of 20 lines at once come at once. Where nothing is between such loads, all that is gained is DRAM_AHEAD."""
    burst: tuple[Entry, ...] = tuple(("load.global", (slot,), slot) for slot in range(20))

    def cycles(repeat: int, later: bool) -> int:
        program = loop_program(loaded(1, 2), burst, repeat, 1, 1)
        plain, fast = (
            simulate(program, loaded(1, 2), resident_blocks=1, active_sms=2, out_of_step=later, reference=reference)
            for reference in (True, False)
        )
        assert plain.cycles == fast.cycles
        return fast.cycles

    assert cycles(1, False) == pytest.approx(LATENCY + 19 * COST, rel=0.06)
    assert cycles(1, True) == LATENCY + 19 * 2  # the interconnect brings a line in two cycles
    assert cycles(100, False) - cycles(100, True) == pytest.approx(DRAM_AHEAD, rel=0.06)
