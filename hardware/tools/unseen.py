"""Launches of kernels of kinds that the reference does not have (validation/gpgpusim/unseen.cu)."""

from __future__ import annotations

from collections.abc import Iterator

from ppt_gpu.common.paths import data_dir
from ppt_gpu.pipeline import open_workload
from ppt_gpu.workload.workload import Workload

#: kernel -> (grid, block, arguments, registers)
LAUNCHES: dict[str, tuple[str, str, tuple[str, ...], int]] = {
    "matvec": ("2", "64", ("f32[128*256]=random", "f32[256]=random", "f32[128]", "i32=256"), 24),
    "nbody": ("4", "128", ("f32[2048]=random", "f32[2048]", "i32=512"), 32),
    "scan": ("160", "256", ("i32[40960]=random(0,9)", "i32[40960]"), 24),
    "bitonic": ("80", "256", ("i32[40960]=random(0,999)",), 24),
    "convolution": ("16,16", "16,16", ("f32[65536]=random", "f32[65536]", "i32=256"), 24),
    "blur": ("16,16", "16,16", ("u8[65536]=random(0,255)", "u8[65536]", "i32=256"), 24),
    "count": ("128", "256", ("i32[32768]=random(0,999)", "i32[64]", "i32=32768"), 24),
    "count_shared": ("80", "256", ("i32[81920]=random(0,999)", "i32[64]", "i32=81920"), 24),
    "gather": ("128", "256", ("f32[65536]=random", "i32[131072]=random(0,65535)", "f32[32768]", "i32=32768"), 24),
    "doubles": ("128", "256", ("f64=2", "f64[32768]=random", "f64[32768]=random", "i32=32768"), 24),
    "collatz": ("128", "256", ("u32[32768]=random(0,32767)", "u32[32768]", "i32=32768"), 24),
    "warp_sums": ("80", "256", ("f32[163840]=random", "f32[80]", "i32=163840"), 24),
    "shortest": ("1,256", "256", ("i32[65536]=random(0,1000)", "i32=256", "i32=7"), 24),
    "local_array": ("40", "128", ("i32[5120]=random(0,1000)", "i32[5120]"), 24),
    "hotspot": ("16,16", "16,16", ("f32[65536]=random", "f32[65536]=random", "f32[65536]", "i32=256"), 24),
    "logarithms": ("128", "256", ("f32[32768]=random(5,30)", "f32[32768]=random(1,9)", "f32[32768]", "i32=32768"), 32),
    "life": ("16,16", "16,16", ("i32[65536]=random(0,1)", "i32[65536]", "i32=256"), 32),
    "pathfinder": (
        "80", "256", ("i32[409600]=random(0,9)", "i32[20480]=random(0,9)", "i32[20480]", "i32=20480", "i32=20"), 20,
    ),
    "fft": ("160", "128", ("f32[81920]=random",), 32),
    "heat": ("16,16", "16,16", ("f64[65536]=random", "f64[65536]", "i32=256"), 24),
    "byte_histogram": ("40", "256", ("u8[131072]=random(0,255)", "u32[64]", "i32=131072"), 20),
    "eliminate": ("16,16", "16,16", ("f32[65536]=random(1,2)", "f32[256]=random", "i32=256", "i32=3"), 24),
    "sparse": (
        "64", "256",
        ("f32[196608]=random", "i32[196608]=random(0,16383)", "f32[16384]=random", "f32[16384]", "i32=16384", "i32=12"),
        24,
    ),
    "random_points": ("120", "192", ("u32[23040]", "i32=60"), 16),
    "tiled_product": ("4,4", "256", ("f32[65536]=random", "f32[65536]=random", "f32[65536]", "i32=256"), 48),
}  # fmt: skip


def unseen() -> Iterator[tuple[str, Workload]]:
    """Name and launch of each."""
    path = data_dir("validation") / "gpgpusim" / "unseen.ptx"
    for kernel, (grid, block, arguments, registers) in LAUNCHES.items():
        made = open_workload(path, kernel=kernel, grid=grid, block=block, args=arguments, registers=registers)
        yield kernel, made
