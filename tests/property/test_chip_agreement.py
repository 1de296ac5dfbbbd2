"""The compiled loop of a whole chip gives what the plain reference gives, for any window and number of threads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, reject, settings
from hypothesis import strategies as st
from sm_random import differences, gpus, outcome, pipelined_gpus, programs, staged_gpus, with_events, with_operands
from some_examples import cases

from benchmarks.loop_programs import loop_program
from ppt_gpu.common.errors import BudgetError
from ppt_gpu.common.threads import at_most
from ppt_gpu.sm.chip.machine import Chip, checked_window, chip_of, with_left
from ppt_gpu.sm.collectors.loop import run_staged
from ppt_gpu.sm.loop.loop import run_core
from ppt_gpu.sm.program.machine import CODE_IN_SM, machine_of
from ppt_gpu.sm.program.program import KIND_STORE, Program
from ppt_gpu.sm.reference.chip import run_chip_reference
from ppt_gpu.sm.whole_chip import run_chip
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
LONG = 1 << 30
ENDS = 20_000
MOST_OF_A_CHIP = 80_000  # cycles of its SMs together
#: Some runs take more, up to 200 000, and all of these longer than all others: they are for the slow tests.
SM_CYCLES = 4_000
THREADS = 2  # whatever the tests' processes may use otherwise
POLICIES = ("lrr", "gto", "gto_launch", "gto_block")


@st.composite
def chips(draw: st.DrawFn, collectors: bool = False, pipelines: bool = False) -> Gpu:
    """A random GPU of up to 4 SMs."""
    gpu = draw(pipelined_gpus() if pipelines else staged_gpus() if collectors else gpus())
    policy = gpu.sm.policy if collectors or pipelines else draw(st.sampled_from(POLICIES))
    return dataclasses.replace(
        gpu,
        sm=dataclasses.replace(gpu.sm, count=draw(st.integers(1, 4)), policy=policy),
        l2=dataclasses.replace(
            gpu.l2,
            slices=draw(st.sampled_from((1, 2, 6))),
            interleave=draw(st.sampled_from((128, 256, 1024))),
            slice_index=draw(st.sampled_from(("linear", "hash"))),
        ),
        dram=dataclasses.replace(gpu.dram, channels=draw(st.sampled_from((1, 2, 3)))),
    )


def compare(program: Program, gpu: Gpu, resident: int, share: float, most: int = SM_CYCLES) -> None:
    """`most`: cycles of all SMs together; another example is drawn instead of one that takes more."""
    chip = chip_of(program, gpu)
    window = max(1, int(checked_window(None, chip) * share))
    try:
        plain = outcome(run_chip_reference, program, chip, resident, most // chip.sms, window)
    except BudgetError:
        reject()
    with at_most(THREADS):
        fast = outcome(run_chip, program, chip, resident, LONG, window)
    note(f"window {window} of {chip.horizon}; {plain} and {fast}")
    assert differences(plain, fast) == []


OPTIONS = {
    "program": programs,
    "gpu": chips(),
    "resident": st.integers(1, 3),
    "share": st.sampled_from((0.01, 0.3, 0.77, 1.0)),
}


@settings(RELAXED, max_examples=cases(15))  # and below with something in the L2 or nothing, which are these too
@given(**OPTIONS)
def test_compiled_chip_is_the_reference(program: Program, gpu: Gpu, resident: int, share: float) -> None:
    compare(program, gpu, resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**OPTIONS)
def test_compiled_chip_is_the_reference_many(program: Program, gpu: Gpu, resident: int, share: float) -> None:
    compare(program, gpu, resident, share, LONG)


STAGED = OPTIONS | {"gpu": chips(collectors=True), "operands": st.integers(0, 1000)}


@pytest.mark.slow
@settings(RELAXED, max_examples=cases(15))
@given(**STAGED)
def test_with_collector_units(program: Program, gpu: Gpu, resident: int, share: float, operands: int) -> None:
    compare(with_operands(program, operands, gpu.collectors.banks), gpu, resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**STAGED)
def test_with_collector_units_many(program: Program, gpu: Gpu, resident: int, share: float, operands: int) -> None:
    compare(with_operands(program, operands, gpu.collectors.banks), gpu, resident, share, LONG)


PIPELINED = STAGED | {"gpu": chips(pipelines=True)}


@pytest.mark.slow
@settings(RELAXED, max_examples=cases(15))
@given(**PIPELINED)
def test_with_pipelines_of_the_l1(program: Program, gpu: Gpu, resident: int, share: float, operands: int) -> None:
    compare(with_operands(program, operands, gpu.collectors.banks), gpu, resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**PIPELINED)
def test_with_pipelines_of_the_l1_many(program: Program, gpu: Gpu, resident: int, share: float, operands: int) -> None:
    compare(with_operands(program, operands, gpu.collectors.banks), gpu, resident, share, LONG)


@settings(RELAXED, max_examples=cases(15))
@given(**OPTIONS, seed=st.integers(0, 2**32))
def test_arrivals_waits_and_copies(program: Program, gpu: Gpu, resident: int, share: float, seed: int) -> None:
    compare(with_events(program, seed), gpu, resident, share)


@settings(RELAXED, max_examples=cases(15))
@given(**OPTIONS, seed=st.integers(0, 2**32), more=st.integers(1, 2))
def test_warps_that_wait_for_ever(
    program: Program, gpu: Gpu, resident: int, share: float, seed: int, more: int
) -> None:
    """Events for which more count than there are: both say so, or nobody waits for them."""
    found = with_events(program, seed)
    compare(dataclasses.replace(found, event_count=found.event_count + more), gpu, resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=3000)
@given(**OPTIONS, seed=st.integers(0, 2**32))
def test_arrivals_waits_and_copies_many(program: Program, gpu: Gpu, resident: int, share: float, seed: int) -> None:
    compare(with_events(program, seed), gpu, resident, share, LONG)


def with_crossbar(
    gpu: Gpu, polynomial: bool, port: int | None, answers: int, queue: int = 2, stops_after: int = 20
) -> Gpu:
    """One of its L2 slices by address, and with a crossbar in front of them; a router behind ports of so many flits.
    Slices stop where more than so many answers wait, or more than so many sectors in their queues."""
    slices = {"slices": 8, "slice_index": "polynomial"} if polynomial else {}
    return dataclasses.replace(
        gpu,
        l2=dataclasses.replace(gpu.l2, **slices),
        dram=dataclasses.replace(gpu.dram, channels=2 if polynomial else gpu.dram.channels),
        interconnect=dataclasses.replace(
            gpu.interconnect,
            crossbar=True,
            router=port is not None,
            port=port or 0,
            answers=answers,
            stops_after=stops_after,
            queue=queue,
        ),
    )


PORTS = st.sampled_from((None, None, 0, 1, 3, 8, 73))


@settings(RELAXED, max_examples=cases(15))
@given(**OPTIONS, left=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=60))
def test_with_what_earlier_launches_left(
    program: Program, gpu: Gpu, resident: int, share: float, left: list[tuple[int, int]]
) -> None:
    """Lines in the L2 when the launch begins, some of which it names, with sectors that have to be written back."""
    lines = dict(left)  # each once
    found = dataclasses.replace(
        program,
        left_address=np.array(list(lines), np.uint64) * np.uint64(program.line_bytes),
        left_written=np.array(list(lines.values()), np.uint8),
    )
    compare(with_left(found), gpu, resident, share)


CROSSED = PIPELINED | {
    "polynomial": st.booleans(),
    "port": PORTS,
    "answers": st.sampled_from((0, 1, 3, 10)),
    "queue": st.sampled_from((0, 2, 30)),
    "stops_after": st.sampled_from((0, 1, 20)),
}


def crossed(
    program: Program,
    gpu: Gpu,
    operands: int,
    polynomial: bool,
    port: int | None,
    answers: int,
    queue: int,
    stops_after: int,
) -> tuple[Program, Gpu]:
    found = with_operands(program, operands, gpu.collectors.banks)
    return found, with_crossbar(gpu, polynomial, port, answers, queue, stops_after)


@settings(RELAXED, max_examples=cases(15))
@given(**CROSSED)
def test_with_a_crossbar(resident: int, share: float, **options: Any) -> None:
    compare(*crossed(**options), resident, share)


@pytest.mark.slow
@settings(RELAXED, max_examples=2000)
@given(**CROSSED)
def test_with_a_crossbar_many(resident: int, share: float, **options: Any) -> None:
    """Some random programs never end with collector units, with a crossbar or without."""
    compare(*crossed(**options), resident, share, MOST_OF_A_CHIP)


@pytest.mark.parametrize("stops_after", [0, 20])
def test_a_slice_stops_as_long_as_what_it_has_taken_waits(stops_after: int) -> None:
    """Four warps store to one slice. At the end of a window its queue is known to stop it in the next ones, too: that
    is when the port has room again."""
    one = ["sm.count=1", "l2.slices=1", "dram.channels=1", "interconnect.port=1", "interconnect.answers=1000"]
    stops = ["interconnect.queue=0", f"interconnect.stops_after={stops_after}"]
    gpu = load_gpu("gpgpusim_gtx480", one + stops)
    program = loop_program(gpu, (("store.global", (), -1),), repeat=4, blocks=1, warps=4, lines=16)
    chip = chip_of(program, gpu)
    window = checked_window(None, chip)
    plain = run_chip_reference(program, chip, 1, ENDS, window)
    assert differences(plain, run_chip(program, chip, 1, ENDS, window)) == []


def one_sm(program: Program, gpu: Gpu) -> tuple[Program, Gpu, Chip]:
    """A chip of one SM, slice and channel; nothing is in the L2, nor kept by others, with whom none is in step; code
    and constants are there."""
    nothing = {"line_warm": np.zeros_like(program.line_warm), "line_kept": np.zeros(0, np.bool_)}
    alone = dataclasses.replace(program, l2_share_factor=1.0, l2_reads=1.0, **nothing)
    small = dataclasses.replace(
        gpu,
        sm=dataclasses.replace(gpu.sm, count=1),
        l2=dataclasses.replace(gpu.l2, slices=1),
        dram=dataclasses.replace(gpu.dram, channels=1),
    )
    return alone, small, chip_of(alone, small, code_at=CODE_IN_SM, constants_at=CODE_IN_SM)


@settings(RELAXED, max_examples=cases(15))
@given(program=programs, gpu=chips(), resident=st.integers(1, 3), seed=st.none() | st.integers(0, 2**32))
def test_a_chip_of_one_sm_is_the_sm(program: Program, gpu: Gpu, resident: int, seed: int | None) -> None:
    """To the last cycle, unless stores are held up below, of which an SM of a chip learns later.

    Nothing is copied by the copy engine: one SM serves its requests in the order of issue, a chip in that of time.
    """
    if seed is not None:
        program = with_events(program, seed)
        program = dataclasses.replace(program, op_copies=np.zeros_like(program.op_copies))
    alone, small, chip = one_sm(program, gpu)
    assume(small.code.size == 0 and small.l1.write != "write-back")
    assume(not (program.op_kind[program.entry_op] == KIND_STORE).any())
    whole = run_chip(alone, chip, resident, LONG, chip.horizon)
    machine = machine_of(alone, small, 1, None, 0.0, None, CODE_IN_SM, CODE_IN_SM)
    assert differences(run_core(alone, machine, resident, LONG), whole) == []


@pytest.mark.slow
@settings(RELAXED, max_examples=cases(15))
@given(program=programs, gpu=chips(collectors=True), resident=st.integers(1, 3), operands=st.integers(0, 1000))
def test_a_chip_of_one_sm_with_collector_units_is_the_sm(
    program: Program, gpu: Gpu, resident: int, operands: int
) -> None:
    """As above; and what is below answers late enough to be known before it is wanted by an SM that is ahead of it."""
    alone, small, chip = one_sm(with_operands(program, operands, gpu.collectors.banks), gpu)
    lag = chip.sm.memory_lag
    assume(small.code.size == 0 and small.l1.write != "write-back" and chip.horizon > 2 * lag)
    assume(small.l1.latency >= lag and small.shared.latency >= lag)
    assume(not (program.op_kind[program.entry_op] == KIND_STORE).any())
    window = checked_window(None, chip)
    whole = run_chip(alone, chip, resident, LONG, window)
    machine = machine_of(alone, small, 1, None, 0.0, None, CODE_IN_SM, CODE_IN_SM)
    assert differences(run_staged(alone, machine, resident, LONG), whole) == []


@pytest.mark.slow
@settings(RELAXED, max_examples=cases(15))
@given(program=programs, gpu=chips(pipelines=True), resident=st.integers(1, 3), operands=st.integers(0, 1000))
def test_a_chip_of_one_sm_with_pipelines_of_the_l1_is_the_sm(
    program: Program, gpu: Gpu, resident: int, operands: int
) -> None:
    """As above."""
    alone, small, chip = one_sm(with_operands(program, operands, gpu.collectors.banks), gpu)
    assume(small.code.size == 0 and chip.horizon > chip.sm.memory_lag)
    assume(not (program.op_kind[program.entry_op] == KIND_STORE).any())
    whole = run_chip(alone, chip, resident, LONG, checked_window(None, chip))
    machine = machine_of(alone, small, 1, None, 0.0, None, CODE_IN_SM, CODE_IN_SM)
    assert differences(run_staged(alone, machine, resident, LONG), whole) == []
