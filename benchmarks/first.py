"""First predictions, with and without what decides nothing in their traces: `python -m benchmarks first`.

CPU time of a prediction that finds nothing kept, whole and of its functional runs with the compilation of the kernel,
in turns: all that the kernel computes, and only what decides its trace (`ppt_gpu.emulator.analysis.data_dependence`).
The helper functions that compiled kernels call are compiled before.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.store import cache_in, measure
from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.run import run as functional

RUNS = 3
ALL, ALONE = "all computed", "trace alone"
#: samples and workload files of validation/levels, each with a GPU that has what it needs
WORKLOADS = (
    *(("sgemm", "v100"), ("stencil7", "v100"), ("stencil7_shared", "v100"), ("hgemm", "a100")),
    *(("levels/cp_async.toml", "a100"), ("levels/bulk.toml", "h100")),
)
#: of Triton's products: c = a b, m x n x k
PRODUCT = (2048, 2048, 1024)
#: rows of queries, keys and values of Triton's attention
ROWS = 4096


def bench_first(runs: int = RUNS, names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Figures {name, value, unit}: of each kernel, or of those with these names, seconds and how many times as fast."""
    figures: list[dict[str, Any]] = []
    for name, source, gpu, call in _cases():
        if not names or name in names:
            figures += _bench(f"first {name} on {gpu}", source, gpu, call, runs)
    return figures


def _bench(label: str, source: str, gpu: str, call: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(runs + 1):
        for what in (ALL, ALONE):
            with tempfile.TemporaryDirectory() as folder, cache_in(Path(folder)), _computing(what == ALL):
                found = measure(source, gpu, **call)
            for part in ("whole", "functional") if turn else ():  # the first compiles helpers and loops
                times[what, part].append(found[part])
    middle = {key: statistics.median(values) for key, values in times.items()}
    figures = [_figure(f"{label}, {part}, {what}", value, "s CPU") for (what, part), value in middle.items()]
    for part in ("whole", "functional"):
        faster = middle[ALL, part] / max(middle[ALONE, part], 1e-6)
        figures.append(_figure(f"{label}, {part}, {ALONE} faster by", faster, "times"))
    return figures


@contextmanager
def _computing(everything: bool) -> Iterator[None]:
    """Functional runs compute all that the kernel does, or what they are asked for."""
    known = functional.run

    def whole(*arguments: Any, **options: Any) -> Any:
        return known(*arguments, **{**options, "results": True})

    if everything:
        functional.run = whole
    try:
        yield
    finally:
        functional.run = known


def _cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(name, workload or PTX file, GPU, options of the call)."""
    for source, gpu in WORKLOADS:
        path = str(data_dir("validation") / source) if "/" in source else source
        yield Path(source).stem, path, gpu, {}
    m, n, k = PRODUCT
    operands = (f"f16[{m * k}]=random:1", f"f16[{k * n}]=random:2", f"f32[{m * n}]", f"i32={m}", f"i32={n}", f"i32={k}")
    heads = (*(f"f16[{32 * ROWS}]=random:{seed}" for seed in (1, 2, 3)), f"f32[{32 * ROWS}]", f"i32={ROWS}", "f32=0.25")
    for name, kernel, gpu, grid, arguments in (
        ("triton_matmul", "matmul", "a100", (m // 32, n // 32), operands),
        ("triton_matmul_hopper", "matmul", "h100", (m // 64, n // 32), operands),
        ("triton_attention", "attention", "a100", (ROWS // 32,), heads),
    ):
        corpus = data_dir("validation") / "coverage" / "ptx" / f"{name}.ptx"
        shared = re.search(r"dynamic shared memory: (\d+) B", corpus.read_text(encoding="utf-8"))
        call = {"kernel": kernel, "grid": grid, "block": 128, "args": (*arguments, "0", "0"), "registers": "estimate"}
        yield name, str(corpus), gpu, {**call, "dynamic_shared": int(shared[1]) if shared else 0}


def _figure(name: str, value: float, unit: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit}
