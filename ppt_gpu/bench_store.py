"""How much faster a prediction is with the traces that one on another GPU left: `python -m ppt_gpu.bench store`.

CPU time; the compiled loops are warm, compiled kernels are not. The second prediction reads the traces from disk, as
another process does; the third finds them in memory, as the next point of a sweep does.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from ppt_gpu.exec import kept
from ppt_gpu.exec.kept import content_bytes
from ppt_gpu.exec.run import forget_engines
from ppt_gpu.exec.store import Store
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.traces import LaunchTraces, Traces
from ppt_gpu.pipeline import predict

SAMPLES = ("sgemm", "stencil7", "vecadd", "transpose_tiled", "reduction")
FIRST = "k40"
#: another GPU with as many SMs, and one with other blocks on each SM
OTHERS = ("k6000", "v100")
#: what belongs to the functional part: everything that yields traces
_FUNCTIONAL = (
    (Traces, ("__init__", "launch")),
    (LaunchTraces, ("run", "touched", "features", "advance")),
)


@dataclass
class _Watch:
    """CPU seconds inside some functions, calls between them counted once."""

    seconds: float = 0.0
    depth: int = 0
    replaced: list[tuple[Any, str, Any]] = field(default_factory=list)

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            began, self.depth = time.process_time(), self.depth + 1
            try:
                return function(*arguments, **options)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.process_time() - began

        return call


@contextmanager
def _watched() -> Iterator[_Watch]:
    watch = _Watch()
    for owner, names in _FUNCTIONAL:
        for name in names:
            watch.replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, watch.timed(getattr(owner, name)))
    try:
        yield watch
    finally:
        for owner, name, function in watch.replaced:
            setattr(owner, name, function)


def _measure(name: str, gpu: str) -> tuple[float, float]:
    """CPU seconds of a prediction, whole and in its functional part."""
    forget_engines()
    with _watched() as watch:
        began = time.process_time()
        predict(name, gpu)
        return time.process_time() - began, watch.seconds


def bench_store(runs: int = 5) -> list[dict[str, Any]]:
    """Figures {name, value, unit}: of each sample the first prediction and later ones, and what the traces take."""
    figures = []
    for name in SAMPLES:
        for gpu in (FIRST, *OTHERS):
            predict(name, gpu, cache=False)  # compiles the loops
        figures += _bench_sample(name, runs)
    return figures


def _bench_sample(name: str, runs: int) -> list[dict[str, Any]]:
    times: dict[str, list[tuple[float, float]]] = {}
    sizes: list[dict[str, Any]] = []
    before = os.environ.get("PPT_GPU_CACHE")
    try:
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["PPT_GPU_CACHE"] = folder
                kept.forget()
                times.setdefault(f"first, {FIRST}", []).append(_measure(name, FIRST))
                sizes = _sizes(name)
                for gpu in OTHERS:
                    kept.forget()
                    times.setdefault(f"second, {gpu}, from disk", []).append(_measure(name, gpu))
                    times.setdefault(f"third, {gpu}, from memory", []).append(_measure(name, gpu))
    finally:
        kept.forget()
        os.environ.pop("PPT_GPU_CACHE")
        if before is not None:
            os.environ["PPT_GPU_CACHE"] = before
    figures = []
    first = [statistics.median(column) for column in zip(*times[f"first, {FIRST}"], strict=True)]
    for label, pairs in times.items():
        whole, part = (statistics.median(column) for column in zip(*pairs, strict=True))
        figures.append(_figure(f"store {name}: {label}", whole, "s CPU"))
        figures.append(_figure(f"store {name}: {label}, functional part", part, "s CPU"))
        if not label.startswith("first"):
            figures.append(_figure(f"store {name}: {label}, whole faster by", first[0] / whole, "times"))
            figures.append(_figure(f"store {name}: {label}, functional faster by", first[1] / max(part, 1e-6), "times"))
    return figures + sizes


def _sizes(name: str) -> list[dict[str, Any]]:
    """Bytes a warp instruction of all whole traces that the first prediction kept, in memory and on disk."""
    store = Store()
    traces = disk = memory = 0
    for path, size, _ in store.entries():
        record = store.get(path.parent.name, path.stem)
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
