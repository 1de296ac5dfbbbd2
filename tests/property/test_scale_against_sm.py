"""The steady extrapolation against the SM simulation of every block, for kernels of four characters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from timed import timed

from ppt_gpu.bounds.bounds import bounds, largest_bound
from ppt_gpu.bounds.work import work_of
from ppt_gpu.scale.levels.steady import steady_prediction
from ppt_gpu.scale.occupancy.occupancy import Occupancy
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.ops import build_ops
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

OPS = ("fp32.fma", "load.global", "store.global", "barrier")
FMA, LOAD, STORE, BARRIER = range(4)
#: character -> (path, waits for slot 0, lines of all blocks: None = each block its own)
KERNELS = {
    "compute": ([FMA] * 40, [0] + [1] * 39, None),
    "streaming": ([LOAD, FMA, STORE], [0, 1, 1], None),
    "table": ([LOAD, FMA, FMA, FMA], [0, 1, 1, 1], 64),
    "barriers": ([LOAD, BARRIER, FMA, BARRIER, FMA, STORE], [0, 1, 0, 0, 0, 0], None),
}
WARPS, RESIDENT, TRANSACTIONS = 4, 4, 4


def program(gpu: Gpu, kernel: str, blocks: list[int]) -> Program:
    """The given blocks of a grid in which every warp runs the same path on lines of its block."""
    path, waits, shared_lines = KERNELS[kernel]
    ops = build_ops([[name] for name in OPS], gpu)
    per_warp = sum(op in (LOAD, STORE) for op in path)
    warps = WARPS * len(blocks)
    per_block = WARPS * per_warp * TRANSACTIONS
    line = np.repeat(np.array(blocks), per_block) * per_block + np.tile(np.arange(per_block), len(blocks))
    line = line % shared_lines if shared_lines else line
    address, dense = np.unique(line, return_inverse=True)
    return Program(
        op_name=ops.name, op_pipe=ops.pipe, op_latency=ops.latency, op_ii=ops.ii, op_kind=ops.kind, op_pc=ops.pc,
        op_class=ops.task_class,
        path_start=np.array([0, len(path)], np.int64),
        entry_op=np.array(path, np.int32),
        entry_wait=np.array(waits, np.uint64),
        entry_slot=np.array([-1 if op in (STORE, BARRIER) else 0 for op in path], np.int8),
        warp_path=np.zeros(warps, np.int32),
        warp_access=np.arange(warps + 1, dtype=np.int64) * per_warp,
        block_warp=np.arange(len(blocks) + 1, dtype=np.int64) * WARPS,
        access_start=np.arange(warps * per_warp + 1, dtype=np.int64) * TRANSACTIONS,
        access_cycles=np.full(warps * per_warp, TRANSACTIONS, np.int32),
        tx_line=dense.astype(np.int32),
        tx_sectors=np.full(len(line), 15, np.uint8),
        line_address=address.astype(np.uint64) * np.uint64(128),
        line_warm=np.zeros(len(address), np.uint8),
    )  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["k40", "v100"])
@pytest.mark.parametrize("blocks", [9, 64, 161])
def test_extrapolated_cycles_are_those_of_the_whole_run(name: str, kernel: str, blocks: int) -> None:
    gpu = load_gpu(name)
    gpu = replace(gpu, sm=replace(gpu.sm, count=1), dram=replace(gpu.dram, bandwidth=gpu.dram.bandwidth / gpu.sm.count))
    holding = Occupancy(RESIDENT, WARPS, RESIDENT * WARPS, 1.0, ("blocks",), {"blocks": RESIDENT}, 0, 0, 0, 0)

    def run(ids: list[int]) -> SmResult:
        return simulate(program(gpu, kernel, ids), gpu, resident_blocks=min(RESIDENT, blocks), active_sms=1)

    found = steady_prediction(timed(run), blocks, holding, gpu)
    whole = run(list(range(blocks)))
    assert found.cycles == pytest.approx(whole.cycles, rel=0.05)
    work = work_of(program(gpu, kernel, list(found.plan.blocks)), gpu)
    floor = largest_bound(
        bounds(
            work,
            found.result,
            gpu,
            resident=RESIDENT,
            active_sms=1,
            sm_blocks=blocks,
            grid_blocks=blocks,
        )
    )
    assert found.cycles >= floor.cycles * 0.98, floor
