"""Execution units behind operand collectors."""

import pytest

from ppt_gpu.spec.gpu import Pipe


def test_without_collectors_the_units_decide() -> None:
    pipe = Pipe("fp32", 64, "sm", 2, 1)
    assert (pipe.places, pipe.interval(3, 9)) == (2, 3)


@pytest.mark.parametrize(("ii", "sources", "cycles"), [(1, 3, 4), (1, 0, 3), (2, 1, 6), (4, 3, 12)])
def test_a_collector_is_held_for_its_operands_or_for_its_unit(ii: int, sources: int, cycles: int) -> None:
    """Six collectors before two units: a multiply-add leaves every 4 / 6 cycle; an interval of 2 means one a cycle."""
    assert Pipe("fp32", 64, "sm", 2, 1, collectors=6).interval(ii, sources) == cycles
