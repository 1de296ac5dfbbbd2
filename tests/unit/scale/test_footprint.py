"""Written data that launches push out of the L2, where neighbours use lines in part."""

from pathlib import Path

import pytest

from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import workload_traces
from ppt_gpu.scale.history.footprint import dirty_share
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.budget import Budget

#: each thread reads its word of `in`, and one as far in front and one behind, and stores its sum
KERNEL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry halo(.param .u64 out, .param .u64 in, .param .u32 far) {
  .reg .b32 %r<8>; .reg .b64 %d<10>;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.u32 %r7, [far];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
  add.u32 %r1, %r1, %r7;
  mul.wide.u32 %d3, %r1, 4; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
  mul.wide.u32 %d4, %r7, 4; sub.s64 %d5, %d2, %d4; add.s64 %d6, %d2, %d4;
  ld.global.u32 %r4, [%d2]; ld.global.u32 %r5, [%d5]; ld.global.u32 %r6, [%d6];
  add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
  st.global.u32 [%d1], %r4;
  ret;
}
"""
BLOCKS = 1 << 22
SMS = 80


@pytest.mark.parametrize(("far", "touched"), [(8, 10), (32, 16)])
def test_a_stencil_pushes_out_as_many_sectors_as_it_writes(tmp_path: Path, far: int, touched: int) -> None:
    """Each block writes four sectors and reads its neighbours', too: one of either, or all."""
    (tmp_path / "halo.ptx").write_text(KERNEL)
    count = 32 * BLOCKS + 2 * far
    (tmp_path / "halo.toml").write_text(
        f'ptx = "halo.ptx"\ngrid = {BLOCKS}\nblock = 32\nregisters = 32\narguments = ["out", "in", "u32={far}"]\n'
        f'[buffers]\nout = "u32[{count}]"\nin = "u32[{count}]"\n'
    )
    gpu = load_gpu("v100")
    workload = open_workload(str(tmp_path / "halo.toml"))
    traces, _ = workload_traces(workload, gpu, {}, Budget(), (), False, None)
    program, _ = TraceSm.of(traces.launch(0), gpu, None).lower([SMS * turn for turn in range(1000, 1004)])
    # the L2 holds little of it at the end
    assert dirty_share(program, gpu, BLOCKS / 4, SMS) == pytest.approx(4 / touched, rel=0.02)
