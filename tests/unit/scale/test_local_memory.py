"""Local memory: warps have frames by the slot that they run in; an L1 that drops lines of global stores keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW, WINDOW_BYTES
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict, workload_traces
from ppt_gpu.scale.history.footprint import dirty_share
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget

#: each thread stores to its 64 bytes of local memory, a word at a time, loads them again, and stores the sum
KERNEL = """.version 6.0
.target sm_35
.address_size 64
.visible .entry spill(.param .u64 out) {
  .local .align 4 .b8 depot[64];
  .reg .b32 %r<4>; .reg .b64 %d<5>; .reg .pred %p;
  mov.u64 %d1, depot;
  mov.u32 %r1, 0;
fill:
  st.local.u32 [%d1], %r1;
  add.u64 %d1, %d1, 4;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 16;
  @%p bra fill;
  mov.u64 %d1, depot;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
sum:
  ld.local.u32 %r3, [%d1];
  add.u32 %r2, %r2, %r3;
  add.u64 %d1, %d1, 4;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 16;
  @%p bra sum;
  ld.param.u64 %d2, [out];
  cvta.to.global.u64 %d2, %d2;
  st.global.u32 [%d2], %r2;
  ret;
}
"""
LINES = 16  # of 128 bytes, in the frame of a warp


def spill(folder: Path, gpu: Gpu, blocks: int) -> TraceSm:
    (folder / "spill.ptx").write_text(KERNEL)
    (folder / "spill.toml").write_text(
        f'ptx = "spill.ptx"\ngrid = {blocks}\nblock = 32\nregisters = 32\narguments = ["out"]\n'
        '[buffers]\nout = "u32[1]"\n'
    )
    workload = open_workload(str(folder / "spill.toml"))
    traces, _ = workload_traces(workload, gpu, {}, Budget(), (), False, None)
    return TraceSm.of(traces.launch(0), gpu, None)


def frames(program: Program) -> list[int]:
    local = program.line_address[program.line_address < LOCAL_WINDOW + WINDOW_BYTES]
    return sorted({int(address - LOCAL_WINDOW) // (LINES * 128) for address in local})


@pytest.mark.parametrize("resident", [1, 2, 3])
def test_a_block_has_the_frame_of_its_slot(tmp_path: Path, resident: int) -> None:
    gpu = load_gpu("v100")
    sm = spill(tmp_path, gpu, 800)
    sm = replace(sm, spread=replace(sm.spread, resident=resident))
    program, _ = sm.lower([7, 87, 167, 247])
    assert frames(program) == list(range(resident))
    first = program.line_address[np.unique(program.tx_line[: program.access_start[2 * LINES]])]
    assert np.array_equal(first, LOCAL_WINDOW + np.arange(LINES) * 128)  # of the first block


def test_of_a_whole_grid_as_many_frames_as_warps_are_resident(tmp_path: Path) -> None:
    sm = spill(tmp_path, load_gpu("k40", ["sm.count=2"]), 100)
    sm = replace(sm, whole=True)
    program, _ = sm.lower(list(range(100)))
    assert sm.spread.resident == 16
    assert frames(program) == list(range(32))


def test_frames_push_nothing_out_of_the_l2_again(tmp_path: Path) -> None:
    """100,000 blocks, two at a time on 80 SMs: 160 frames of 2 KiB stay in the L2 of 6 MiB, all would be 200 MiB."""
    gpu = load_gpu("v100")
    sm = spill(tmp_path, gpu, 100_000)
    sm = replace(sm, spread=replace(sm.spread, resident=2))
    program, _ = sm.lower([0, 80, 160, 240])
    assert dirty_share(program, gpu, 100_000 / 4, 80) == 0.0
    not_local = replace(program, line_address=program.line_address + np.uint64(WINDOW_BYTES))
    assert dirty_share(not_local, gpu, 100_000 / 4, 80) > 0.5


def hits(folder: Path, gpu: str, *overrides: str) -> float:
    spill(folder, load_gpu(gpu), 600)
    result = predict(str(folder / "spill.toml"), gpu, overrides=overrides, cache=False)
    return float(result.launches[0].value("memory.l1_hit_rate"))


def test_what_is_stored_stays_in_an_l1_that_drops_global_lines(tmp_path: Path) -> None:
    """40 blocks on an SM of the K40, 16 at a time with 16 lines each: they fit an L1 of 48 KiB, and every load hits."""
    assert load_gpu("k40").l1.write == "write-evict"
    assert hits(tmp_path, "k40", "l1.size=48 KiB") == 1.0
    # where only loads bring lines, the first 16 blocks' do, for all others, too
    assert 0.4 < hits(tmp_path, "k40", "l1.size=48 KiB", "l1.write_allocate=false") < 0.7


@pytest.mark.parametrize("whole", [False, True])
def test_each_word_of_all_threads_of_the_chip(tmp_path: Path, whole: bool) -> None:
    """GPGPU-Sim, `shader_core_ctx::translate_local_memaddr`: word w of a thread lies at w x threads that the chip holds
    x 4 + 4 x (threads of a block x (SM + SMs x place of its block in the SM) + its number there)."""
    gpu = load_gpu("gpgpusim_gtx480")
    sm = spill(tmp_path, gpu, 60)
    sm = replace(sm, spread=replace(sm.spread, resident=2), whole=whole)
    blocks = [0, 15, 30] if not whole else [0, 1, 16]
    places = [0, 15, 0] if not whole else [0, 1, 2]  # 15 SMs; blocks take places in their order
    program, _ = sm.lower(blocks)
    for block, place in enumerate(places):
        first, last = program.access_start[program.warp_access[block : block + 2]]
        lines = program.line_address[program.tx_line[first:last]]
        local = np.unique(lines[(lines >= LOCAL_WINDOW) & (lines < LOCAL_WINDOW + WINDOW_BYTES)])
        assert np.array_equal(local, LOCAL_WINDOW + (np.arange(LINES) * 2 * 15 + place) * 128)
