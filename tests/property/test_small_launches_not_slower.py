"""Launches of few waves of blocks: more bandwidth or MSHRs slow none down that level grid does not slow down as well.

Rows with a reduction in each block, stencils and transposes do get slower on faster memory here and there: blocks that
no longer wait for memory meet at barriers and at the load/store unit. Level grid, which knows nothing of waves, shows
the same then. What it does not show is an artefact of how one SM stands for all.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.explore.hardware_changes import Changes
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Workload

ROOT = Path(__file__).parents[2]
HELD_OUT = ROOT / "validation" / "held_out"
Record = Callable[[str, object], None]
ALLOWED = 0.02
FACTORS = (1.1, 1.5, 2.0, 4.0)


def _rows(path: str, kernel: str, columns: int, blocks: int, *more: str) -> Workload:
    """A block a row; `more`: arguments behind input and output, whichever comes first in `path`."""
    field = f"f32[{blocks * columns}]=random:1"
    inputs = (field, f"f32[{columns}]=random:2", f"f32[{columns}]=random:3") if kernel == "layer_norm" else (field,)
    args = [*inputs, f"f32[{blocks * columns}]", f"i32={columns}", *more]
    return ppt_gpu.open_workload(HELD_OUT / path, kernel=kernel, grid=(blocks,), block=(256,), args=args)


def _layer_norm(blocks: int) -> Workload:
    return _rows("second/learning.ptx", "layer_norm", 4096, blocks, "f32=1e-5")


def _softmax_rows(blocks: int) -> Workload:
    return _rows("first/learning.ptx", "softmax_rows", 2048, blocks)


def _stencil(blocks: int) -> Workload:
    rows = blocks // 8
    args = [*(f"f32[{256 * rows * 8 * 16}]=random:1",) * 2, "i32=256", f"i32={rows * 8}", "i32=16", "f32=-6", "f32=1"]
    source = ROOT / "tasklists" / "stencil7_shared.ptx"
    return ppt_gpu.open_workload(source, grid=(8, rows), block=(32, 8), args=args)


def _transpose(blocks: int) -> Workload:
    side = 1024
    args = [*(f"f32[{side * side * (blocks // 1024 + 1)}]",) * 2, f"i32={side}"]
    source = ROOT / "tasklists" / "transpose_tiled.ptx"
    return ppt_gpu.open_workload(source, grid=(32, blocks // 32), block=(32, 8), args=args)


KERNELS = {"layer_norm": _layer_norm, "softmax_rows": _softmax_rows, "stencil": _stencil, "transpose": _transpose}


def test_more_dram_bandwidth_does_not_slow_a_stencil_of_three_waves(record_property: Record) -> None:
    """On an A100, at 1.1 times its bandwidth: 17 % slower while blocks of an SM that end within half an even time of
    each other were taken to be followed by as many in a row."""
    check("stencil", 2592, "a100", "dram.bandwidth", (1.1,), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("waves", [0.7, 1.3, 3.0])
@pytest.mark.parametrize("gpu", ["a100", "rtx5090"])
@pytest.mark.parametrize("key", ["dram.bandwidth", "l2.bandwidth", "interconnect.bandwidth", "l1.mshrs"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_slowdown_that_level_grid_has_not(
    kernel: str, key: str, gpu: str, waves: float, record_property: Record
) -> None:
    """Waves of the blocks that fit with 256 threads, registers and shared memory aside."""
    chip = load_gpu(gpu)
    blocks = round(waves * chip.sm.count * chip.sm.max_warps / 8)
    check(kernel, blocks, gpu, key, FACTORS, record_property)


def check(kernel: str, blocks: int, gpu: str, key: str, factors: tuple[float, ...], record: Record) -> None:
    """No step slower by more than ALLOWED, or than by ALLOWED more than at level grid."""
    workload, changes = KERNELS[kernel](blocks), Changes(gpu)
    made = [changes.improved(key, factor) for factor in factors]
    steps = [(), *((change.override,) for change in made if change is not None)]
    worst = (0.0, "no slowdown")
    for before, after in pairwise(steps):
        slower = _slower(workload, gpu, before, after, "steady")
        text = f"{kernel} of {blocks} blocks on {gpu}, {after[0]}"
        worst = max(worst, (slower, text))
        if slower > ALLOWED:
            assert slower <= _slower(workload, gpu, before, after, "grid") + ALLOWED, text
    if worst[0] > 0:
        record("worst anomaly", f"{worst[0]:+.2%} {worst[1]}")


def _slower(workload: Workload, gpu: str, before: tuple[str, ...], after: tuple[str, ...], level: str) -> float:
    times = [ppt_gpu.predict(workload, gpu, overrides=step, level=level).time for step in (before, after)]
    return times[1] / times[0] - 1.0
