"""The shipped samples at sizes that run in a fraction of a second, and what they should compute, in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.ptx import load_module, parse_module
from ppt_gpu.workload.fill import NUMPY_TYPES
from ppt_gpu.workload.reader import bind_workload, load_workload


@dataclass(frozen=True)
class Small:
    """Element counts by buffer, and per launch the grid and the integer arguments."""

    counts: dict[str, int]
    grids: tuple[tuple[int, int, int], ...]
    integers: tuple[tuple[int, ...], ...]
    expected: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]  # from buffers before to buffers after


def stencil(before):
    a = before["in"].astype("f8").reshape(6, 16, 64)
    out = np.zeros_like(a)
    inner = slice(1, -1)
    neighbours = a[inner, inner, :-2] + a[inner, inner, 2:] + a[inner, :-2, inner] + a[inner, 2:, inner]
    out[inner, inner, inner] = neighbours + a[:-2, inner, inner] + a[2:, inner, inner] - 6 * a[inner, inner, inner]
    return {"out": out.ravel()}


def product(before):
    size = int(len(before["a"]) ** 0.5)
    a, b = (before[name].astype("f8").reshape(size, size) for name in "ab")
    return {"c": (a @ b).ravel()}


def transposed(before):
    return {"out": before["in"].reshape(64, 64).T.ravel()}


def swept(before):
    old = before["old"].reshape(48, 48)
    fresh = old.copy()
    fresh[1:-1, 1:-1] = (old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]) / 4
    return {"fresh": fresh.ravel()}


def spmv(v):
    rows = np.arange(101)
    start = rows * 12 + np.where(rows == 100, 0, (rows * 2654435761 & 0xFFFFFFFF) >> 29)
    products = v["value"].astype("f8") * v["x"][v["column"]]
    y = [products[a:b].sum() for a, b in pairwise(start)]
    return {"start": start, "y": np.array(y)}


def histogram(v):
    return {"bins": np.bincount(v["data"].view("u1"), minlength=256)}


def mandelbrot(v):
    """As the kernel in its order of operations; a fused multiply-add is a product in f64, then rounded."""
    width, height, most = 40, 24, 50
    f4 = np.float32
    column, row = np.meshgrid(np.arange(width, dtype="f4"), np.arange(height, dtype="f4"))
    a, b = column * f4(3) / f4(width) + f4(-2), row * f4(2.4) / f4(height) + f4(-1.2)
    x = y = xx = yy = np.zeros_like(a)
    steps, going = np.zeros(a.shape, "i4"), np.ones(a.shape, bool)
    with np.errstate(all="ignore"):  # points that have left go on to infinity
        for _ in range(most):
            new = a + (xx - yy)
            y = ((x + x).astype("f8") * y + b).astype("f4")
            x, xx, yy = new, new * new, y * y
            steps += going
            going &= xx + yy <= 4
    return {"steps": steps.ravel()}


_STENCIL = Small({"in": 6144, "out": 6144}, ((2, 2, 1),), ((64, 16, 6),), stencil)
_TRANSPOSE = Small({"in": 4096, "out": 4096}, ((2, 2, 1),), ((64,),), transposed)
SMALL = {
    "vecadd": Small(dict.fromkeys("abc", 1000), ((4, 1, 1),), ((1000,),), lambda x: {"c": x["a"] + x["b"]}),
    "saxpy": Small(dict.fromkeys("xy", 1000), ((2, 1, 1),), ((1000,),), lambda v: {"y": 2 * v["x"] + v["y"]}),
    "sgemm": Small(dict.fromkeys("abc", 48 * 48), ((3, 3, 1),), ((48,),), product),
    "hgemm": Small(dict.fromkeys("abc", 64 * 64), ((1, 1, 1),), ((64,),), product),
    "stencil7": _STENCIL,
    "stencil7_shared": _STENCIL,
    "jacobi": Small(dict.fromkeys(("old", "fresh"), 48 * 48), ((1, 12, 1),), ((48,),), swept),
    "reduction": Small(
        {"data": 5000, "partial": 4, "sum": 1},
        ((4, 1, 1), (1, 1, 1)),
        ((5000,), (4,)),
        lambda v: {"sum": v["data"].astype("f8").sum(keepdims=True)},
    ),
    "transpose_naive": _TRANSPOSE,
    "transpose_tiled": _TRANSPOSE,
    "spmv": Small(
        {"start": 101, "column": 1300, "value": 1300, "x": 65536, "y": 100},
        ((1, 1, 1), (1, 1, 1)),
        ((100,), (100,)),
        spmv,
    ),
    "histogram": Small({"data": 1000, "bins": 256}, ((2, 1, 1),), ((1000,),), histogram),
    "mandelbrot": Small({"steps": 960}, ((3, 3, 1),), ((40, 24, 50),), mandelbrot),
}


def small_workload(name, text=None):
    """(workload, module) of sample `name` at its small size; of `text` instead of its PTX where that is given."""
    workload, small = load_workload(name), SMALL[name]
    launches = []
    for launch, grid, integers in zip(workload.launches, small.grids, small.integers, strict=True):
        left = iter(integers)
        arguments = tuple(replace(a, value=next(left)) if a.type == "s32" else a for a in launch.arguments)
        launches.append(replace(launch, grid=grid, arguments=arguments))
    buffers = tuple(replace(buffer, count=small.counts[buffer.name]) for buffer in workload.buffers)
    module = load_module(workload.ptx_path) if text is None else parse_module(text, str(workload.ptx_path))
    return bind_workload(replace(workload, launches=tuple(launches), buffers=buffers), module), module


def run_small(name, run, text=None):
    """Run all launches of the small sample with `run`. Returns (buffers before, buffers after, traces)."""
    workload, module = small_workload(name, text)
    memory = DeviceMemory.build(module, workload.buffers, workload.symbols)
    types = {b.name: NUMPY_TYPES[b.type] for b in workload.buffers}
    before = {name: memory.view(name, kind).copy() for name, kind in types.items()}
    traces = []
    for launch in workload.launches:
        kernel = module.kernels[launch.kernel]
        traces.append(run(kernel, module, launch, memory, list(range(launch.blocks))))
    return before, {name: memory.view(name, kind) for name, kind in types.items()}, traces
