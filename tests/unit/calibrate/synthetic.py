"""A capture as a GPU would give it whose hardware file is right: the kit's plan, timed by the simulation."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.validate.silicon.capture import COLUMNS, Capture, Time
from ppt_gpu.validate.silicon.capture_runs import HOST, Run, plan, run_time

#: launches in a row of runs that find the L2 warm; the kit chooses them by the time that a launch takes
_BATCH = 10


def synthetic_capture(gpu: Gpu, runs: Sequence[Run] = ()) -> Capture:
    """These runs, or all of the plan, with predicted times and no spread."""
    major, minor = gpu.compute_capability
    facts = {"capture": "1", "gpu": gpu.title, "compute_capability": f"{major}.{minor}", "sms": str(gpu.sm.count)}
    times = []
    for run in runs or plan(gpu):
        batch = 1 if run.cold or run.group == HOST else _BATCH
        us = run_time(run, gpu, 0, batch)
        times.append(Time(run, 0, us, us, us, batch, gpu.sm.clock / 1e6))
    return Capture(f"simulation of {gpu.name}", {**facts, "date": "never"}, tuple(times))


def capture_text(capture: Capture) -> str:
    """A capture as the kit writes it."""
    text = io.StringIO()
    text.writelines(f"# {name}: {value}\n" for name, value in capture.facts.items())
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for time in capture.times:
        run = time.run
        shape = ("", "") if run.group == HOST else ("x".join(map(str, run.grid)), "x".join(map(str, run.block)))
        what = run.group, run.module, run.kernel, *shape, "cold" if run.cold else "warm", ";".join(run.args)
        numbers = (f"{value:.4f}" for value in (time.median, time.low, time.high, time.clock))
        writer.writerow((*what, time.registers, 0, 1, time.batch, *numbers))
    return text.getvalue()
