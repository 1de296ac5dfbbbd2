"""hardware/tools/simulator_sm.py: one SM of the simulator, against launches of the reference and by hand."""

from __future__ import annotations

import pytest

from ppt_gpu.pipeline import predict
from ppt_gpu.validate.gpgpusim import chosen, parts_of


@pytest.fixture
def tools(hardware_tool):
    return hardware_tool("simulator_kernels")


def first_part(case: str):
    """The launches of a program under perfect memory on QV100."""
    members = next(m for m in chosen([case]) if (m[0]["config"], m[0]["mem"]) == ("SM7_QV100", "perfect"))
    return next(iter(parts_of(members)))


def cycles(tools, case: str, units: int = 2) -> tuple[list[int], list[int]]:
    """(those of the reference under perfect memory, those found) of the launches of a program."""
    part = first_part(case)
    return [int(row["gpu_sim_cycle"]) for row in part.rows if row], tools.launches(part.workload, part.contents, units)


@pytest.mark.parametrize("case", ["strided(16384)", "vecadd(65536)", "reduction(131072)"])
def test_launches_take_the_cycles_of_the_reference(tools, case: str) -> None:
    reference, found = cycles(tools, case)
    assert found == pytest.approx(reference, rel=0.03)


@pytest.mark.parametrize("case", ["ilp_fma(120,8)", "ilp_fma_300b(300,6)", "ilp_fma_40b(40,8)", "vecadd(65536)"])
def test_ours_takes_its_cycles_to_the_last_one(tools, case: str) -> None:
    """Where requests do not overtake one another in the L1: from issue to collectors, banks, units and fetches."""
    part = first_part(case)
    _, found = cycles(tools, case)
    ours = predict(part.workload, tools.GPU, overrides=("perfect_memory=true",), contents=part.contents).launches
    assert [one.value("kernel.cycles") for one in ours] == found


def instruction(tools, pc: int, unit: str, **more):
    """One that needs nothing and takes a cycle."""
    nothing = frozenset[int]()
    return tools.Instruction(pc, unit, 1, 1, (), -1, nothing, nothing, **more)


def test_an_instruction_behind_a_taken_branch_is_fetched_again(tools) -> None:
    one, two, far = (tools.Step(instruction(tools, pc, "int")) for pc in (0, 1, 9))
    straight, jump = (tools.Sm([[[one, last]]], 1, 1 << 17).run() for last in (two, far))
    assert jump > straight


def test_loads_in_the_second_collector_unit_starve(tools) -> None:
    """Loads of the first unit come without a gap: with more units of a scheduler the last warp is done sooner."""
    load = instruction(tools, 0, "memory", space="shared", access="load")
    use = tools.Instruction(1, "int", 1, 1, (1,), -1, frozenset(), frozenset({1}))
    load = tools.Instruction(**{**load.__dict__, "result": 1, "writes": frozenset({1}), "registers": frozenset({1})})
    path = [tools.Step(load), tools.Step(use)] * 40
    two, four = (tools.Sm([[path] * 32], 1, 1 << 17, units).run() for units in (2, 4))
    assert two > four
