"""What recording a trace costs on top of running a kernel, by part: `python -m benchmarks recording`.

Runs without trace, with trace and with a trace but without results take turns, each as often first, as the one before
leaves caches and memory to the next; medians of CPU time, in per cent of a run without trace. Predictions record
without results: where memory steers nothing, only what decides the trace is computed (`steering`), and a run for it
takes less than one that leaves results. The last figures of a sample are what making the accesses costs a reader of a
trace that holds records (`recorded_trace`), which no run of it does, and a bound: a recorder of arrays of all accesses
has to write their bytes once.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.emulator import SAMPLES, Prepared, figure, prepare
from benchmarks.stopwatch import REST, Parts, watched
from ppt_gpu.emulator.run import run as run_module
from ppt_gpu.emulator.run import run_blocks
from ppt_gpu.emulator.run.collect import Collector, Paths
from ppt_gpu.emulator.trace.trace import Trace

#: with few patterns and with many, dense in memory accesses, in atomics, in branches
NAMES = ("sgemm", "stencil7", "spmv", "histogram", "mandelbrot")
PARTS: Parts = {
    "compiled code": ((run_blocks, ("run_blocks",)),),
    "accesses": ((Collector, ("take", "make_room")),),
    "paths": ((Paths, ("take",)),),
    "trace put together": ((Collector, ("trace",)),),
    "warnings about shared memory": ((run_module, ("with_shared_warnings",)),),
}
_WHOLE = "whole"
#: (traced, with results): without trace, with trace, and as predictions run
_KINDS = ((False, True), (True, True), (True, False))


def bench_recording(runs: int = 27, names: Sequence[str] = NAMES) -> list[dict[str, Any]]:
    """Figures {name, value, unit, inputs}: of each sample what a trace costs, by part, and what it costs at least."""
    return [found for name, most in SAMPLES if name in names for found in _bench(name, prepare(name, most), runs)]


def _bench(name: str, prepared: Prepared, runs: int) -> list[dict[str, Any]]:
    trace = prepared.run(True)  # compiles
    prepared.run(False)
    prepared.run(True, results=False)
    seconds: dict[tuple[bool, bool], dict[str, list[float]]] = {kind: defaultdict(list) for kind in _KINDS}
    for turn in range(runs):
        for kind in _KINDS[turn % len(_KINDS) :] + _KINDS[: turn % len(_KINDS)]:
            with watched(PARTS) as watch:
                prepared.run(*kind)
                parts = watch.stop()
            for part in (*PARTS, REST):
                seconds[kind][part].append(parts.get(part, 0.0))
            seconds[kind][_WHOLE].append(sum(parts.values()))
    making, writing = [], []
    for _ in range(runs):
        making.append(_make(prepared.run(True)))
        writing.append(_write(trace))
    untraced, traced, deciding = (
        {part: statistics.median(own) for part, own in seconds[kind].items()} for kind in _KINDS
    )
    plain, least = untraced[_WHOLE], statistics.median(writing)
    more = {part: own - untraced[part] for part, own in traced.items()}
    size = sum(array.nbytes for array in _arrays(trace))
    inputs = {"accesses": len(trace.access_base), "patterns": len(trace.pattern_mask), "bytes": size}
    values = [(", speed of a run without trace", 100 * plain / (plain + more[_WHOLE]), "%")]
    values += [(f": {part}", 100 * more[part] / plain, "% more") for part in (*PARTS, REST)]
    values.append((": without results, as predictions record", 100 * (deciding[_WHOLE] - plain) / plain, "% more"))
    values.append((": making all accesses of its records", 100 * statistics.median(making) / plain, "% more"))
    values.append((": writing the trace's bytes once", 100 * least / plain, "% more"))
    values.append((", speed with no more than that", 100 * plain / (plain + least), "%"))
    return [figure(f"recording {name}{label}", value, unit, inputs) for label, value, unit in values]


def _arrays(trace: Trace) -> list[np.ndarray]:
    found = [getattr(trace, field.name) for field in dataclasses.fields(trace)]
    return [array for array in found if isinstance(array, np.ndarray)]


def _make(trace: Trace) -> float:
    """CPU seconds of making what a trace makes when somebody looks at it."""
    start = time.process_time()
    assert len(trace.access_base) == trace.access_start[-1]
    assert trace.block_threads is None or len(trace.block_threads) == len(trace.blocks)
    return time.process_time() - start


def _write(trace: Trace) -> float:
    """CPU seconds of writing as many bytes as a trace's arrays have into memory that is fresh, as theirs was."""
    start = time.process_time()
    for array in _arrays(trace):
        np.empty_like(array).fill(1)
    return time.process_time() - start
