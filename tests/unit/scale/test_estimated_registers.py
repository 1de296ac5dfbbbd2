"""Estimated registers do not keep loads from being in flight together: ptxas has no reason to use so few."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ppt_gpu.common.paths import data_dir
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict

KERNEL = data_dir("validation") / "measured" / "kernels" / "curves.ptx"


def test_eight_loads_are_in_flight_whether_registers_are_estimated_or_given() -> None:
    """16 are estimated for a kernel of which ptxas makes one with 28."""
    count = 8192
    args = (f"f32[{4 * count}]:copied", "f32[1024]", f"i32={count}", "i32=4")
    workload = open_workload(KERNEL, kernel="sum_parts", grid=(108, 1, 1), block=(1024, 1, 1), args=args)
    cycles = []
    for registers in (None, 28):
        launch = replace(workload.launches[0], registers=registers)
        result = predict(replace(workload, launches=(launch,)), "a100", cache=False)
        cycles.append(float(result.main.value("kernel.cycles")))
    assert cycles[0] == pytest.approx(cycles[1], rel=0.05)
