"""hardware/tools/simulator_sm.py: one SM of the simulator, against launches of the reference and by hand."""

from __future__ import annotations

import pytest
from some_examples import one_in

from ppt_gpu.pipeline import open_workload
from ppt_gpu.validate.gpgpusim.launches import chosen, parts_of


def slow(case: str):
    return pytest.param(case, marks=pytest.mark.slow)


@pytest.fixture
def tools(hardware_tool):
    return hardware_tool("simulator_kernels")


def first_part(case: str, config: str = "SM7_QV100"):
    """The launches of a program under perfect memory."""
    members = next(m for m in chosen([case]) if (m[0]["config"], m[0]["mem"]) == (config, "perfect"))
    return next(iter(parts_of(members)))


def cycles(tools, case: str, units: int = 2) -> tuple[list[int], list[int]]:
    """(those of the reference under perfect memory, those found) of the launches of a program."""
    part = first_part(case)
    return [int(row["gpu_sim_cycle"]) for row in part.rows if row], tools.launches(part.workload, part.contents, units)


@pytest.mark.parametrize("case", ["strided(16384)", "vecadd(65536)", "reduction(131072)"])
def test_launches_take_the_cycles_of_the_reference(tools, case: str) -> None:
    reference, found = cycles(tools, case)
    assert found == pytest.approx(reference, rel=0.03)


@pytest.mark.parametrize(
    "case",
    ["ilp_fma(120,8)", "ilp_fma_300b(300,6)", "vecadd(65536)", "strided(16384)", "transpose(256)", "divergent(16384)",
     "reduction(131072)", "reduction_600k", slow("sgemm16(128,16)"), "stencil_naive(64", slow("alulat")],
)  # fmt: skip
def test_ours_takes_its_cycles_to_the_last_one(tools, case: str) -> None:
    """Loops, branches, barriers, shared memory, loads that overtake one another in the L1, blocks that follow."""
    part = first_part(case)
    found = list(tools.beside(part.workload, part.contents))
    assert [ours for _, ours in found] == [truth for truth, _ in found]


@pytest.mark.parametrize(
    "case",
    ["reduction(131072)", slow("vecadd(65536)"), slow("alulat"), slow("strided(16384)"), slow("sgemm16(128,16)")],
)
def test_launches_on_gtx480_take_the_cycles_of_the_reference_to_the_last_one(tools, case: str) -> None:
    """All SMs, with the addresses that the simulator gives to buffers."""
    part = first_part(case, "SM2_GTX480")
    found = list(tools.device_launches(tools.Chip(), part.workload, part.contents))
    assert found == [int(row["gpu_sim_cycle"]) for row in part.rows if row]


@pytest.mark.parametrize(
    "case",
    one_in(2, ("ilp_fma(120,8)", "ilp_fma_300b(300,6)", "vecadd(65536)", "strided(16384)", "transpose(256)",
               "divergent(16384)", "reduction(131072)", "sgemm16(128,16)", "stencil_naive(64", "stencil_25d(64",
               "saxpy(", "alulat", "pchase(256)")),
)  # fmt: skip
def test_ours_of_gtx480_takes_its_cycles_to_the_last_one(tools, case: str) -> None:
    """Lines of instructions and constants that miss, blocks that are seen to be over, the collectors of pipes."""
    part = first_part(case, "SM2_GTX480")
    found = list(tools.beside(part.workload, part.contents, tools.GTX480))
    assert [ours for _, ours in found] == [truth for truth, _ in found]


@pytest.mark.parametrize("name", [slow("spmv"), "transpose_tiled", slow("histogram")])
def test_and_for_kernels_that_the_reference_does_not_have(tools, name: str) -> None:
    found = list(tools.beside(open_workload(name)))
    assert [ours for _, ours in found] == [truth for truth, _ in found]


@pytest.mark.parametrize("case", [slow("vecadd(65536)"), slow("reduction(131072)"), slow("strided(16384)")])
def test_the_chip_of_qv100_takes_the_cycles_of_the_reference_to_the_last_one(hardware_tool, case: str) -> None:
    """With crossbars and slices of the L2, turns of the schedulers that go on, and the simulator's addresses."""
    members = next(m for m in chosen([case]) if (m[0]["config"], m[0]["mem"]) == ("SM7_QV100", "default"))
    part, tool = next(iter(parts_of(members))), hardware_tool("whole_chip")
    found = list(tool.cycles(tool.Chip(), part.workload, part.contents))
    assert found == [int(row["gpu_sim_cycle"]) for row in part.rows if row]


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
    path = [tools.Step(load), *[tools.Step(use)] * 3] * 40
    two, four = (tools.Sm([[path] * 64], 1, 1 << 17, units).run() for units in (2, 4))
    assert two > four
