"""Speed, measured on the spot: `python -m benchmarks [PART ...] [--json]`.

CPU time of this process unless a line says otherwise, the median of several runs; compare figures of one run only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.chip import bench_chip
from benchmarks.cluster import bench_cluster
from benchmarks.emulator import bench_exec
from benchmarks.entered import bench_entered
from benchmarks.first import bench_first
from benchmarks.limits import bench_limits
from benchmarks.lowering import bench_lower
from benchmarks.ptx import bench_parse
from benchmarks.recording import bench_recording
from benchmarks.sm import bench_sm
from benchmarks.store import bench_store
from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import load_suite
from ppt_gpu.multicore.dark_silicon.projection import project
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.pipeline import predict

Figure = dict[str, Any]  # name, value, unit and, where useful, inputs


def _predict(runs: int = 5) -> list[Figure]:
    """End to end, in this process, after one run that warms the compilers."""
    predict("sgemm", "k40", cache=False)
    figures = []
    for name in ("sgemm", "vecadd", "stencil7", "transpose_tiled"):
        times = []
        for _ in range(runs):
            start = time.process_time()
            predict(name, "k40", cache=False)
            times.append(time.process_time() - start)
        figures.append({"name": f"predict {name} on k40, warm", "value": statistics.median(times), "unit": "s CPU"})
    return figures


def _chips(runs: int = 5) -> list[Figure]:
    """The search for the fastest chip: all PARSEC benchmarks, nodes, organisations and topologies."""
    study, suite, scaling = load_study(), load_suite("parsec"), load_scaling("itrs")
    times = []
    for _ in range(runs):
        start = time.process_time()
        found = project(study, suite, scaling)
        times.append(time.process_time() - start)
    kinds = len({(chip.organisation, chip.topology) for chip in found.chips})
    name = f"search of {len(suite.names)} benchmarks, {len(scaling.nodes)} nodes, {kinds} organisations"
    pairs = f"{study.points} x {study.points} cores"
    return [{"name": f"{name}, {pairs}", "value": statistics.median(times), "unit": "s CPU"}]


def _command(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU and wall time of one `python -m ppt_gpu` process, s."""
    wall = time.perf_counter()
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "ppt_gpu", *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return cpu, time.perf_counter() - wall


def _process(runs: int = 5) -> list[Figure]:
    """Whole commands: start-up, a prediction cold (empty compile cache), warm, and again from what was kept.

    Python's own byte code is there, as it is once a command has run from a folder that can be written.
    """
    figures: list[Figure] = []
    sgemm, alone = ["predict", "sgemm", "--gpu", "k40"], "--no-cache"
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": os.path.join(cache, "python")}
        for arguments in (["--help"], ["gpus"]):
            _command(arguments, environment)
            times = [_command(arguments, environment)[0] for _ in range(runs)]
            name = f"ppt-gpu {' '.join(arguments)}, whole process"
            figures.append({"name": name, "value": statistics.median(times), "unit": "s CPU"})
        environment |= {"NUMBA_CACHE_DIR": os.path.join(cache, "numba"), "PPT_GPU_CACHE": os.path.join(cache, "kept")}
        cold = _command([*sgemm, alone], environment)
        warm = [_command([*sgemm, alone], environment) for _ in range(3)]
        _command(sgemm, environment)
        again = [_command(sgemm, environment) for _ in range(3)]
    commands = {f"{alone}, cold (compiles)": [cold], f"{alone}, warm": warm, "again": again}
    for name, runs_of in commands.items():
        for index, unit in ((0, "s CPU"), (1, "s wall")):
            value = statistics.median(pair[index] for pair in runs_of)
            figures.append({"name": f"ppt-gpu {' '.join(sgemm)} {name}", "value": value, "unit": unit})
    return figures


PARTS: dict[str, Callable[[], list[Figure]]] = {
    "parse": bench_parse,
    "exec": bench_exec,
    "recording": bench_recording,
    "lower": bench_lower,
    "sm": bench_sm,
    "limits": bench_limits,
    "grid": bench_chip,
    "predict": _predict,
    "chips": _chips,
    "store": bench_store,
    "first": bench_first,
    "cluster": bench_cluster,
    "process": _process,
    "entered": bench_entered,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help=f"any of {', '.join(PARTS)}; none runs all")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = [figure for part in (arguments.part or PARTS) for figure in PARTS[part]()]
    if arguments.json:
        machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
        print(json.dumps({"schema": 1, "machine": machine, "figures": figures}, indent=2))
        return 0
    width = max(len(figure["name"]) for figure in figures)
    for figure in figures:
        print(f"{figure['name']:{width}}  {figure['value']:10.4g} {figure['unit']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
