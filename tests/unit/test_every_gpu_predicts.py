"""A stream and a kernel of multiply-adds on shipped GPUs reach shares of their peaks that are known of real ones."""

from functools import cache
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.bounds.roofline import peak_flops
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec import list_gpus, load_gpu

#: GPUs of most compute capabilities, and boards whose files differ in more than numbers of SMs and clocks
FEW = [
    "m2090", "k20x", "k80", "gtx750ti", "gtx970", "jetson_tx2", "jetson_agx_xavier", "gtx1650", "a2", "jetson_agx_orin",
    "h800", "b300", "rtx5080", "rtx5090", "gb10",
]  # fmt: skip
#: a simulator whose DRAM has fewer channels than its sheet says, and a machine of 2015 with few loads in flight
NOT_REAL = {"gpgpusim_gtx480", "gpgpusim_qv100", "gpumech_table1", "pascal_ppt"}
ALL = [
    entry.name for entry in list_gpus() if entry.name not in NOT_REAL and not entry.compute_capability.startswith("1.")
]
LOOPS, SUMS = 64, 32
FMA = f"""
.version 6.0
.target sm_20
.address_size 64
.visible .entry fma(.param .u64 out, .param .u32 n)
{{
    .reg .f32 %f<6>; .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %p;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r1, %r2, %r3;
    cvt.rn.f32.s32 %f0, %r1; mov.f32 %f1, 0f3F000000;
    mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.f32 %f4, %f0; mov.f32 %f5, %f0;
    ld.param.u32 %r4, [n];
loop:
    .pragma "nounroll";
    {" ".join(f"fma.rn.f32 %f{2 + each % 4}, %f{2 + each % 4}, %f1, %f0;" for each in range(SUMS))}
    sub.s32 %r4, %r4, 1; setp.gt.s32 %p, %r4, 0;
    @%p bra loop;
    add.f32 %f2, %f2, %f3; add.f32 %f4, %f4, %f5; add.f32 %f2, %f2, %f4;
    ld.param.u64 %d0, [out]; cvta.to.global.u64 %d0, %d0; mul.wide.u32 %d1, %r1, 4; add.s64 %d0, %d0, %d1;
    st.global.f32 [%d0], %f2;
    ret;
}}
"""


@cache
def stream_time(name: str) -> float:
    """Seconds for the sum of two vectors of 16 Mi floats."""
    count = 1 << 24
    args = [*(f"f32[{count}]",) * 3, f"i32={count}"]
    path = data_dir("tasklists") / "vecadd.ptx"
    return ppt_gpu.predict(ppt_gpu.open_workload(path, grid=(count // 256,), block=(256,), args=args), name).time


def check(name: str, folder: Path) -> None:
    gpu = load_gpu(name)
    stream = 12 * (1 << 24) / stream_time(name) / gpu.dram.bandwidth
    # Kepler with ECC reaches two thirds; the fastest DRAM needs more loads in flight than threads with two have
    assert 0.55 < stream < 1.25, f"{stream:.2f} of the bandwidth"  # the last lines stay in a large L2
    path = folder / "fma.ptx"
    path.write_text(FMA)
    blocks = gpu.sm.count * 64
    workload = ppt_gpu.open_workload(path, grid=(blocks,), block=(256,), args=[f"f32[{blocks * 256}]", f"i32={LOOPS}"])
    rate = 2 * SUMS * LOOPS * blocks * 256 / ppt_gpu.predict(workload, name).time
    assert 0.85 < rate / peak_flops(gpu, "fp32") <= 1, f"{rate / peak_flops(gpu, 'fp32'):.2f} of the peak"


@pytest.mark.parametrize("name", FEW)
def test_shares_of_the_peaks(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in FEW])
def test_shares_of_the_peaks_of_all(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


def test_more_bandwidth_is_a_shorter_stream() -> None:
    """Between any two whose bandwidths are far enough apart: Kepler's boards lose a third to ECC."""
    bandwidth = {name: load_gpu(name).dram.bandwidth for name in FEW}
    for small in FEW:
        for large in FEW:
            if bandwidth[large] > 1.6 * bandwidth[small]:
                assert stream_time(large) < stream_time(small), (small, large)
