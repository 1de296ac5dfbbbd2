"""Which of a block's warp slots its warps take, and what that does to blocks of which one warp has all the work."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from benchmarks.loop_programs import loop_program
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.slot_rotation import seat, seated
from ppt_gpu.spec import load_gpu


@pytest.mark.parametrize("schedulers", [1, 2, 3, 4])
@pytest.mark.parametrize("warps", [1, 2, 3, 4, 5, 6, 8, 12])
def test_first_warps_of_blocks_come_to_all_schedulers_alike(schedulers: int, warps: int) -> None:
    count = [0] * schedulers
    together = math.gcd(schedulers, warps)
    for index in range(schedulers * schedulers):
        seats = [seat.py_func(schedulers, together, index, warp) for warp in range(warps)]
        assert sorted(seats) == list(range(warps))
        assert [seated.py_func(schedulers, together, index, place) for place in seats] == list(range(warps))
        count[(index * warps + seats[0]) % schedulers] += 1
    assert count == [schedulers] * schedulers


@pytest.mark.parametrize(("turned", "warps"), [(False, 4), (True, 1)])
def test_one_warp_of_each_block_works(turned: bool, warps: int) -> None:
    """`warps` of them on one scheduler."""
    gpu = load_gpu("v100")
    gpu = dataclasses.replace(
        gpu,
        sm=dataclasses.replace(gpu.sm, turned=turned),
        host=dataclasses.replace(gpu.host, warp_launch=0, blocks_per_cycle=0.0),
    )
    program = loop_program(gpu, (("fp32", (), -1),), 64, 4, 4, reuse=True)
    entries = int(program.path_start[-1])
    program = dataclasses.replace(
        program,
        path_start=np.array([0, entries, entries], program.path_start.dtype),
        warp_path=np.array([0, 1, 1, 1] * 4, program.warp_path.dtype),
    )
    for reference in (True, False):
        found = simulate(program, gpu, resident_blocks=4, active_sms=1, reference=reference)
        assert found.cycles == warps * 64 * 2 + 2  # the unit takes two cycles, the last result four
