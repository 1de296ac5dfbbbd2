"""Queues before a unit that all schedulers of an SM share, counted by hand, in both loops."""

from __future__ import annotations

import dataclasses

import numpy as np
from test_simulate import both, reasons, tiny

from benchmarks.loop_programs import Entry, loop_program
from ppt_gpu.sm.program.program import FORCED_L1
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu, Pipe

SLOW = ("sfu", (), -1)  # on the shared unit, for 16 cycles; its result takes 20


def shared_unit(queue: int, **changes: object) -> Gpu:
    gpu = tiny(**({"sm__schedulers": 2} | changes))
    slow = dataclasses.replace(gpu.isa.op("sfu"), pipe="one", ii=16)
    isa = dataclasses.replace(gpu.isa, ops=gpu.isa.ops | {"sfu": slow})
    return dataclasses.replace(gpu, isa=isa, pipes=gpu.pipes | {"one": Pipe("one", 2, "sm", 1, 16, queue=queue)})


def run(gpu: Gpu, body: tuple[Entry, ...], warps: int = 1) -> SmResult:
    program = loop_program(gpu, body, 1, 1, warps, reuse=True)
    return both(dataclasses.replace(program, tx_line=np.full(len(program.tx_line), FORCED_L1, np.int32)), gpu)


def test_instructions_wait_in_the_queue_and_their_warp_goes_on() -> None:
    result = run(shared_unit(4), (SLOW,) * 4)
    assert result.cycles == 3 * 16 + 20
    assert reasons(result) == {"selected": 4, "drain": 3 * 16 + 20 - 4}


def test_a_place_is_free_when_its_instruction_starts() -> None:
    """Issued in cycles 0 and 1, and when those before them have started: in cycles 16 and 32."""
    result = run(shared_unit(1), (SLOW,) * 4)
    assert result.cycles == 3 * 16 + 20
    assert reasons(result) == {"selected": 4, "math_pipe_throttle": 14 + 15, "drain": 3 * 16 + 20 - 33}


def test_each_scheduler_has_its_places_and_the_unit_serves_in_order_of_issue() -> None:
    result = run(shared_unit(1), (SLOW,) * 2, warps=2)
    assert result.cycles == 3 * 16 + 20
    assert (
        reasons(result)["math_pipe_throttle"] == 15
    )  # the second of the second scheduler, which has its place until 16


def test_a_load_does_not_pass_what_was_in_the_queue_when_it_became_ready() -> None:
    load = ("load.global", (), -1)
    behind = run(shared_unit(4), (SLOW, SLOW, SLOW, load))
    assert behind.cycles == 32 + 30  # the last of them starts in cycle 32
    assert reasons(behind)["lg_throttle"] == 32 - 3
    assert run(shared_unit(4), (SLOW, load, SLOW)).cycles == 2 + 16 - 2 + 20  # nothing waits in cycle 1


def test_without_a_queue_they_wait_at_their_schedulers() -> None:
    result = run(shared_unit(0), (SLOW,) * 4)
    assert result.cycles == 3 * 16 + 20
    assert reasons(result)["math_pipe_throttle"] == 3 * 15
