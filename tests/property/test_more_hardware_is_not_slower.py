"""More SMs, bandwidth or MSHRs never slow a kernel down by more than 2 %; the worst anomaly found is printed.

Scheduling anomalies exist (a faster memory changes the order in which warps issue), so a small slowdown is allowed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from some_examples import one_in

import ppt_gpu
from ppt_gpu.workload.workload import Workload

TASKLISTS = Path(__file__).parents[2] / "tasklists"
Record = Callable[[str, object], None]
ALLOWED = 0.02
BLOCKS = 2800  # many waves: with few, a last wave of fewer blocks fills the memory less, which more SMs can make worse


def kernels() -> dict[str, Workload]:
    """Small launches of samples of every kind: streaming, shared memory, uncoalesced, barriers."""
    count = BLOCKS * 256
    side = 2048
    return {
        "vecadd": ppt_gpu.open_workload(
            TASKLISTS / "vecadd.ptx", grid=(BLOCKS,), block=(256,), args=[*(f"f32[{count}]",) * 3, f"i32={count}"]
        ),
        "sgemm": ppt_gpu.open_workload(
            TASKLISTS / "sgemm.ptx",
            grid=(64, 64),
            block=(16, 16),
            args=[*("f32[1048576]",) * 3, "i32=1024"],
            registers=60,
        ),
        **{
            name: ppt_gpu.open_workload(
                TASKLISTS / f"{name}.ptx",
                grid=(side // 32, side // 32),
                block=(32, 8),
                args=[*(f"f32[{side * side}]",) * 2, f"i32={side}"],
            )
            for name in ("transpose_naive", "transpose_tiled")
        },
    }


GPUS = ("k40", "v100")
#: steps of the default run: one more SM, which gives a last wave of a few blocks, and large jumps
FEW = {
    "sm.count": ("15", "16", "30"),
    "dram.bandwidth": ("144 GB/s", "576 GB/s"),
    "l2.bandwidth": ("256 B/cycle", "1024 B/cycle"),
    "interconnect.bandwidth": ("32 B/cycle", "128 B/cycle"),
    "l1.mshrs": ("32", "256"),
}
MANY = {
    "sm.count": ("15", "16", "20", "30"),
    "dram.bandwidth": ("144 GB/s", "200 GB/s", "288 GB/s", "576 GB/s"),
    "l2.bandwidth": ("256 B/cycle", "512 B/cycle", "1024 B/cycle"),
    "interconnect.bandwidth": ("32 B/cycle", "64 B/cycle", "128 B/cycle"),
    "l1.mshrs": ("32", "64", "256"),
}


#: each key on one GPU, then on the other; the one that comes first takes turns
PAIRS = [pair for place, key in enumerate(FEW) for pair in ((key, GPUS[place % 2]), (key, GPUS[1 - place % 2]))]


@pytest.mark.parametrize("pair", one_in(2, PAIRS), ids="-".join)
def test_more_is_not_slower(pair: tuple[str, str], record_property: Record) -> None:
    key, gpu = pair
    check(key, gpu, FEW[key], record_property)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["k40", "v100", "gpgpusim_qv100"])
@pytest.mark.parametrize("key", MANY)
def test_every_step_is_not_slower(key: str, gpu: str, record_property: Record) -> None:
    check(key, gpu, MANY[key], record_property)


def check(key: str, gpu: str, steps: tuple[str, ...], record: Record) -> None:
    worst = (0.0, "no slowdown")
    for name, workload in kernels().items():
        times = [ppt_gpu.predict(workload, gpu, overrides=[f"{key}={value}"]).time for value in steps]
        for low, high, value in zip(times, times[1:], steps[1:], strict=False):
            slower = high / low - 1.0
            text = f"{name} on {gpu}, {key} raised to {value}"
            worst = max(worst, (slower, text))
            assert slower <= ALLOWED, text
    if worst[0] > 0:
        record("worst anomaly", f"{worst[0]:+.2%} {worst[1]}")
