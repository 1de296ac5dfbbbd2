"""A capture as a GPU would give it whose hardware file is right: the kit's plan, timed by the simulation."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.capture import HOST, Capture, Time, plan, run_time

#: launches in a row of runs that find the L2 warm; the kit chooses them by the time that a launch takes
_BATCH = 10


def synthetic_capture(gpu: Gpu, groups: Sequence[str] = ()) -> Capture:
    """The runs of the plan, or of some of its groups, with predicted times and no spread."""
    major, minor = gpu.compute_capability
    facts = {"capture": "1", "gpu": gpu.title, "compute_capability": f"{major}.{minor}", "sms": str(gpu.sm.count)}
    times = []
    for run in plan(gpu):
        if not groups or run.group in groups:
            batch = 1 if run.cold or run.group == HOST else _BATCH
            us = run_time(run, gpu, 0, batch)
            times.append(Time(run, 0, us, us, us, batch, gpu.sm.clock / 1e6))
    return Capture(f"simulation of {gpu.name}", {**facts, "date": "never"}, tuple(times))
