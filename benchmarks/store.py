"""How much faster a prediction is with what an earlier one left: `python -m benchmarks store`.

CPU time; the compiled loops are warm, compiled kernels are not. Each second prediction finds on disk what the first one
left, as another process does: on a GPU with as many SMs, on one with other blocks on each SM, and on the same again.
It is held against the first one, and against one on its own GPU that finds nothing: how many blocks are simulated is up
to the GPU, where the time of a wave of blocks settles late to several times as many as on the first one.
The point of a sweep finds the traces in memory and differs in what the SM sees.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from benchmarks.stopwatch import Parts, watched
from ppt_gpu import sm
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import SUFFIX, Store
from ppt_gpu.emulator.cache.trace_cache import content_bytes
from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.run.run import forget_engines
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.frontends.call import CallOptions
from ppt_gpu.machine import code_cache as machine_kept
from ppt_gpu.pipeline import predict
from ppt_gpu.ptx.features import LackError
from ppt_gpu.scale import simulated_sm
from ppt_gpu.scale.cache import launch_store
from ppt_gpu.scale.levels import grid as whole_grid
from ppt_gpu.spec.toml_document import forget_documents
from ppt_gpu.workload.reader import load_workload, sample_names

FIRST = "k40"
SECONDS = {"as many SMs": "k6000", "other blocks": "v100", "again": FIRST}
SWEEP = ("l2.latency=300",)
#: samples whose first prediction is short, as larger problems: what changes in their files
LARGER: dict[str, tuple[tuple[str, str], ...]] = {
    "reduction": (("4194304", "67108864"),),
    "jacobi": (("[16, 256]", "[64, 1024]"), ("i32=1024", "i32=4096"), ("1024*1024", "4096*4096")),
    "mandelbrot": (
        ("[64, 96]", "[256, 384]"), ("i32=1024", "i32=4096"), ("i32=768", "i32=3072"), ("1024*768", "4096*3072"),
    ),
}  # fmt: skip
#: part of a prediction -> the functions that it is made of
PARTS: Parts = {
    "running": ((Traces, ("__init__", "launch")), (LaunchTraces, ("run", "touched", "features", "advance"))),
    "reading": ((Store, ("read",)),),
    "writing": ((Store, ("write",)),),
    "lowering": ((sm, ("lower_trace",)), (simulated_sm, ("work_of",))),
    "simulating": ((sm, ("simulate",)), (whole_grid, ("simulate_chip",))),
}
#: all that yields traces
FUNCTIONAL = ("running", "reading", "writing")


def measure(name: str, gpu: str, overrides: Sequence[str] = (), **call: Unpack[CallOptions]) -> dict[str, float]:
    """CPU seconds of a prediction by part, whole and functional."""
    forget_engines()
    with watched(PARTS) as watch:
        predict(name, gpu, overrides=overrides, **call)
        parts = watch.stop()
    functional = sum(parts.get(part, 0.0) for part in FUNCTIONAL)
    return {"whole": sum(parts.values()), "functional": functional, **parts}


def bench_store(runs: int = 3, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Figures {name, value, unit}: of each sample the first prediction, later ones, and its traces.

    By default of all samples but those that need what one of the GPUs lacks, and of `LARGER`.
    """
    figures = []
    for name in names or sample_names():
        try:
            _round(name, defaultdict(list))  # compiles the loops
        except LackError:
            if names:
                raise
            continue
        figures += _bench(name, name, runs)
    with tempfile.TemporaryDirectory() as folder:
        for name in () if names else LARGER:
            figures += _bench(f"{name}, larger", str(_larger(name, Path(folder))), runs)
    return figures


def _larger(name: str, folder: Path) -> Path:
    """The file of a sample as a larger problem."""
    sample = load_workload(name)
    text = Path(sample.path).read_text(encoding="utf-8")
    for old, new in ((f'"{name}.ptx"', f"'{Path(sample.ptx_path).resolve()}'"), *LARGER[name]):
        text = text.replace(old, new)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _bench(label: str, name: str, runs: int) -> list[dict[str, Any]]:
    times: dict[str, list[dict[str, float]]] = defaultdict(list)
    sizes: list[dict[str, Any]] = []
    for _ in range(runs):
        sizes = _round(name, times, label)
    return [*_figures(label, times), *sizes]


def _round(name: str, times: dict[str, list[dict[str, float]]], label: str = "") -> list[dict[str, Any]]:
    """Add one measurement of each prediction. Returns the figures of the sizes of traces."""
    with tempfile.TemporaryDirectory() as folder:
        used, left = Path(folder) / "used", Path(folder) / "left"
        with cache_in(used):
            times[f"first, {FIRST}"].append(measure(name, FIRST))
            sizes = _sizes(label)
            shutil.copytree(used, left)
            times[f"sweep, {FIRST} with {SWEEP[0]}, from memory"].append(measure(name, FIRST, SWEEP))
        for what, gpu in SECONDS.items():
            if gpu != FIRST:
                with cache_in(Path(folder) / gpu):
                    times[f"first, {gpu}"].append(measure(name, gpu))
            with cache_in(Path(shutil.copytree(left, Path(folder) / what))):
                times[f"second, {gpu} ({what})"].append(measure(name, gpu))
    return sizes


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """Predictions keep what they find in `folder`; nothing is in memory."""
    before = os.environ.get("PPT_GPU_CACHE")
    os.environ["PPT_GPU_CACHE"] = str(folder)
    _forget()
    try:
        yield
    finally:
        _forget()
        os.environ.pop("PPT_GPU_CACHE")
        if before is not None:
            os.environ["PPT_GPU_CACHE"] = before


def _forget() -> None:
    kept.forget()
    machine_kept.forget()
    launch_store.forget()
    forget_documents()


def _figures(name: str, times: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    parts = ("whole", "functional", *PARTS, "rest")
    middle = {
        label: {part: statistics.median(run.get(part, 0.0) for run in found) for part in parts}
        for label, found in times.items()
    }
    first = middle[f"first, {FIRST}"]
    figures = []
    for label, seconds in middle.items():
        figures += [_figure(f"store {name}: {label}, {part}", seconds[part], "s CPU") for part in parts]
        if label.startswith("first"):
            continue
        for part in ("whole", "functional", "all but simulating"):
            figures.append(_ratio(f"store {name}: {label}, {part} faster by", part, first, seconds))
        own = middle.get(f"first, {label.split()[1]}")
        if label.startswith("second") and own is not None and own is not first:
            figures.append(_ratio(f"store {name}: {label}, whole faster than alone by", "whole", own, seconds))
    return figures


def _ratio(name: str, part: str, slow: dict[str, float], fast: dict[str, float]) -> dict[str, Any]:
    return _figure(name, _seconds(slow, part) / max(_seconds(fast, part), 1e-6), "times")


def _seconds(of: dict[str, float], part: str) -> float:
    return of["whole"] - of["simulating"] if part == "all but simulating" else of[part]


def _sizes(name: str) -> list[dict[str, Any]]:
    """Bytes a warp instruction of all whole traces that predictions kept, in memory and on disk."""
    store = Store()
    traces = disk = memory = 0
    for path, size, _ in store.entries():
        record = store.get(path.parent.name, path.stem) if path.suffix == SUFFIX else None
        if record is not None and isinstance(record.content, Trace):
            traces += record.content.warp_instructions
            disk += size
            memory += content_bytes(record.content)
    return [
        _figure(f"store {name}: trace on disk", disk / max(traces, 1), "B/warp instruction"),
        _figure(f"store {name}: trace in memory", memory / max(traces, 1), "B/warp instruction"),
    ]


def _figure(name: str, value: float, unit: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit}
