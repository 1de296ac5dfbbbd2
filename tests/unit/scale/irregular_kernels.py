"""Kernels whose blocks differ (tests/data/scale/irregular.cu), inputs that make them differ, and their whole grids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.scale.levels.dispatch import dispatch
from ppt_gpu.scale.levels.grid import grid_prediction
from ppt_gpu.scale.levels.irregular import block_starts, lengths, speeds
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Argument, Buffer, Launch, Workload

PTX = Path(__file__).parents[2] / "data" / "scale" / "irregular.ptx"
RAGGED = Path(__file__).parents[3] / "validation" / "levels" / "ragged.ptx"


def launch_sm(
    gpu: Gpu,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    arguments: list[np.ndarray | int],
    ptx: Path = PTX,
) -> TraceSm:
    """A launch of `kernel` on arrays (f32 or s32) and s32 scalars."""
    module = load_module(ptx)
    buffers, packed = [], []
    for number, argument in enumerate(arguments):
        if isinstance(argument, int):
            packed.append(Argument("s32", argument))
        else:
            buffers.append(Buffer(f"b{number}", "f32" if argument.dtype.kind == "f" else "s32", argument.size))
            packed.append(Argument("u64", buffer=f"b{number}"))
    launch = Launch(kernel, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], tuple(packed), registers=24)  # type: ignore[arg-type]
    contents = {f"b{n}": argument for n, argument in enumerate(arguments) if not isinstance(argument, int)}
    workload = Workload(kernel, "", str(ptx), (launch,), tuple(buffers))
    return TraceSm.of(Traces(module, workload, contents, Budget()).launch(0), gpu, None)


def graph(nodes: int, seed: int, skew: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """A random graph in CSR form whose degrees follow a power law, up to `most`."""
    rng = np.random.default_rng(seed)
    degree = np.minimum((rng.pareto(skew, nodes) * 4).astype(np.int32) + 1, most)
    first = np.concatenate(([0], np.cumsum(degree))).astype(np.int32)
    return first, rng.integers(0, nodes, first[-1]).astype(np.int32)


def triangular(gpu: Gpu, blocks: int = 600, backwards: int = 0) -> TraceSm:
    return launch_sm(gpu, "triangular", (blocks,), (128,), [np.zeros(blocks * 128, np.float32), backwards])


def spmv(gpu: Gpu, blocks: int = 240) -> TraceSm:
    rows = 128 * blocks
    first, column = graph(rows, 1, 1.5, 400)
    values = np.ones(len(column), np.float32)
    x, y = np.ones(rows, np.float32), np.zeros(rows, np.float32)
    return launch_sm(gpu, "spmv", (blocks,), (128,), [first, column, values, x, y, rows])


def mandelbrot(gpu: Gpu, width: int = 512, most: int = 200) -> TraceSm:
    grid = (width // 16, width // 16)
    return launch_sm(gpu, "mandelbrot", grid, (16, 16), [np.zeros(width * width, np.int32), width, width, most])


def bfs(gpu: Gpu, blocks: int = 800) -> TraceSm:
    """One node in a hundred is active, in one part of the graph."""
    nodes = 128 * blocks
    first, neighbour = graph(nodes, 2, 1.5, 2000)
    depth = np.full(nodes, -1, np.int32)
    rng = np.random.default_rng(3)
    depth[nodes // 3 + rng.choice(nodes // 20, nodes // 100, replace=False)] = 4
    return launch_sm(gpu, "bfs", (blocks,), (128,), [first, neighbour, depth, nodes, 4])


def boundary(gpu: Gpu, columns: int = 16, rows: int = 40) -> TraceSm:
    width = 128 * columns
    field = np.ones(width * rows, np.float32)
    return launch_sm(gpu, "boundary", (columns, rows), (128,), [field, field, width])


def ragged_copy(gpu: Gpu, blocks: int = 640, length: int = 1500, longer: int = 20) -> TraceSm:
    """Every 64th segment is longer."""
    data = np.ones(blocks // 64 * (63 + longer) * length, np.float32)
    return launch_sm(gpu, "ragged_copy", (blocks,), (256,), [data, data, length, longer], RAGGED)


def chains(gpu: Gpu, blocks: int = 1200, longest: int = 300) -> TraceSm:
    """Blocks of 4 to `longest` steps, few of many."""
    rng = np.random.default_rng(4)
    draw, following = rng.integers(0, 256, blocks).astype(np.int32), rng.integers(0, 1 << 18, 1 << 18).astype(np.int32)
    given = [draw, following, np.zeros(64 * blocks, np.int32), longest, (1 << 18) - 1]
    return launch_sm(gpu, "chains", (blocks,), (64,), given, RAGGED)


def rounds(gpu: Gpu, blocks: int = 1200, longest: int = 3000) -> TraceSm:
    """Blocks of 8 to `longest` rounds of arithmetic, few of many."""
    draw = np.random.default_rng(6).integers(0, 256, blocks).astype(np.int32)
    return launch_sm(gpu, "rounds", (blocks,), (256,), [draw, np.zeros(256 * blocks, np.float32), longest], RAGGED)


KERNELS = {
    "triangular": triangular,
    "triangular backwards": lambda gpu: triangular(gpu, backwards=1),
    "spmv": spmv,
    "mandelbrot": mandelbrot,
    "bfs": bfs,
    "boundary": boundary,
}


@dataclass(frozen=True)
class Whole:
    """A launch of which every block was simulated, SM by SM."""

    cycles: int
    features: BlockFeatures


def whole_grid(sm: TraceSm, rounds: int = 4) -> Whole:
    """Simulate every block of the grid on its own SM, until the blocks go where the SMs that free slots first are."""
    features = sm.survey("all").features
    spread, blocks = sm.spread, sm.launch.blocks
    typical = np.argsort(np.abs(features.warp_instructions - features.warp_instructions.mean()), kind="stable")
    speed = speeds(sm.slots(sorted(typical[: spread.resident].tolist())).result, spread.resident)
    owner = np.arange(blocks) % spread.sms
    best, starts = None, block_starts(sm.gpu, spread.active_sms)
    for _ in range(rounds):
        length, cycles = np.zeros(blocks), 0
        for number in np.unique(owner):
            own = np.flatnonzero(owner == number)
            result = sm(own.tolist()).result
            length[own] = lengths(result, speed)
            cycles = max(cycles, result.cycles)
        best = cycles if best is None else min(best, cycles)
        following = dispatch(length, spread.sms, spread.resident, speed, starts=starts).sm
        if np.array_equal(following, owner):
            return Whole(cycles, features)
        owner = following
    return Whole(best if best is not None else 0, features)


def whole_chip(sm: TraceSm) -> float:
    """Cycles of the grid at level grid, where a block goes to the SM that frees a slot first, in one run.

    For blocks whose SMs never settle in `whole_grid`: those of `boundary` are so short that its rounds on 8 SMs of a
    V100 end anywhere between 8,200 and 8,700 cycles; 7,900 here.
    """
    return grid_prediction(sm).cycles
