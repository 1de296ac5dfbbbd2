"""A new instruction that computes needs a row of the instruction table and a description, and nothing else."""

import numpy as np
import pytest
from ptx_lanes import lanes
from reference.interpreter.interpreter import interpret

from ppt_gpu.emulator.forms.computes import DESCRIBED, computes
from ppt_gpu.emulator.forms.value import pick
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx.table import TABLE


@pytest.mark.parametrize("engine", [interpret, run], ids=["interpreter", "compiled"])
def test_distance(engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`farther d, a, b`: how far a is above b, or b above a."""
    monkeypatch.setitem(TABLE, "farther", TABLE["min"])
    monkeypatch.setitem(DESCRIBED, ("farther", False), None)  # taken back at the end

    @computes("farther", operands="T T")
    def farther(form, a, b):
        return pick(a.is_less(b, form.signed), b - a, a - b)

    a, b = [5, -3, 7, 0], [9, 4, -7, 0]
    for kind in ("s32", "s64"):
        found = lanes(f"farther.{kind} %d, %a, %b;", [kind, kind], kind, a, b, run=engine)
        assert found.tolist() == np.abs(np.subtract(a, b)).tolist()
