"""Speed, measured on the spot: `python -m ppt_gpu.bench [PART ...] [--json]`.

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

Figure = dict[str, Any]  # name, value, unit and, where useful, inputs


def _parse() -> list[Figure]:
    from ppt_gpu.ptx.bench import bench_parse

    return bench_parse()


def _exec() -> list[Figure]:
    from ppt_gpu.exec.bench import bench_exec

    return bench_exec()


def _recording() -> list[Figure]:
    from ppt_gpu.exec.bench_recording import bench_recording

    return bench_recording()


def _lower() -> list[Figure]:
    from ppt_gpu.sm.lower_bench import bench_lower

    return bench_lower()


def _sm() -> list[Figure]:
    from ppt_gpu.sm.bench import bench_sm

    return bench_sm()


def _limits() -> list[Figure]:
    from ppt_gpu.sm.bench_limits import bench_limits

    return bench_limits()


def _grid() -> list[Figure]:
    from ppt_gpu.sm.bench_chip import bench_chip

    return bench_chip()


def _predict(runs: int = 5) -> list[Figure]:
    """End to end, in this process, after one run that warms the compilers."""
    from ppt_gpu.pipeline import predict

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


def _store() -> list[Figure]:
    from ppt_gpu.bench_store import bench_store

    return bench_store()


def _first() -> list[Figure]:
    from ppt_gpu.bench_first import bench_first

    return bench_first()


def _chips(runs: int = 5) -> list[Figure]:
    """The search for the fastest chip: all PARSEC benchmarks, nodes, organisations and topologies."""
    from ppt_gpu.multicore.device_scaling import load_scaling
    from ppt_gpu.multicore.projection import project
    from ppt_gpu.multicore.study import load_study
    from ppt_gpu.multicore.suite import load_suite

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


def _cluster() -> list[Figure]:
    from ppt_gpu.cluster.bench import bench_cluster

    return bench_cluster()


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
    "parse": _parse,
    "exec": _exec,
    "recording": _recording,
    "lower": _lower,
    "sm": _sm,
    "limits": _limits,
    "grid": _grid,
    "predict": _predict,
    "chips": _chips,
    "store": _store,
    "first": _first,
    "cluster": _cluster,
    "process": _process,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ppt_gpu.bench", description=__doc__)
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
