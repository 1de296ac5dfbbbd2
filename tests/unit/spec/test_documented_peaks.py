"""Peaks of every shipped GPU, as the simulator reads them, against those that are documented."""

import csv
from functools import lru_cache
from pathlib import Path

import pytest

from ppt_gpu.bounds.roofline import peak_flops
from ppt_gpu.spec import list_gpus, load_gpu
from ppt_gpu.spec.gpu import Gpu

TABLE = Path(__file__).parents[2] / "data" / "spec" / "documented_peaks.csv"
#: machines of simulators, of papers and foreseen ones
NOT_REAL = {"gpgpusim_gtx480", "gpgpusim_qv100", "gpumech_table1", "pascal_ppt"}
#: TFLOP/s of dense f16 mma.sync with sums in f32 by data sheets, at the clock of the table
TENSOR = {
    "v100": 125, "t4": 65, "rtx2080": 40.3, "titanrtx": 130.5, "quadro_rtx6000": 130.5, "a100": 312, "a30": 165,
    "rtx3090": 71, "rtx3060ti": 32.4, "a40": 149.7, "rtxa4000": 76.7, "rtxa5000": 111.1, "a2": 18.1, "a16": 18,
    "a10g": 70, "rtx4090": 165.2, "rtx4060": 30.2, "l4": 121, "l40": 181, "l40s": 362, "rtx6000ada": 364, "l20": 119.5,
    "rtx5090": 209.5, "rtx5080": 112.6, "rtxpro6000": 503.8, "jetson_agx_orin": 42.5,
}  # fmt: skip


def table() -> dict[str, dict[str, str]]:
    with TABLE.open() as stream:
        return {row["gpu"]: row for row in csv.DictReader(line for line in stream if not line.startswith("#"))}


@lru_cache(maxsize=1)
def rows() -> list[tuple[Gpu, dict[str, str]]]:
    return [(load_gpu(name), row) for name, row in table().items()]


def shipped(name: str) -> Gpu:
    return next(gpu for gpu, _ in rows() if gpu.name == name)


def test_every_real_gpu_is_in_the_table() -> None:
    assert set(table()) == {entry.name for entry in list_gpus()} - NOT_REAL


def test_peaks_are_the_documented_ones() -> None:
    """Cores x 2 x the clock of the sheet, and bus x data rate; TechPowerUp rounds to three or four digits."""
    for gpu, row in rows():
        scale = float(row["clock_mhz"]) * 1e6 / gpu.sm.clock / 1e9
        assert peak_flops(gpu, "fp32") * scale == pytest.approx(float(row["fp32_gflops"]), rel=0.006), gpu.name
        if row["fp64_gflops"]:
            assert peak_flops(gpu, "fp64") * scale == pytest.approx(float(row["fp64_gflops"]), rel=0.1), gpu.name
        assert gpu.dram.bandwidth / 1e9 == pytest.approx(float(row["bandwidth_gbs"]), rel=0.011), gpu.name


def test_clocks_are_at_most_the_boost_clock() -> None:
    """Some are base or measured clocks: Kepler's compute boards, and boards that were measured at a lower one."""
    for gpu, row in rows():
        assert 0.84 < gpu.sm.clock / 1e6 / float(row["clock_mhz"]) < 1.01, gpu.name


@pytest.mark.parametrize("name", TENSOR)
def test_tensor_peaks_are_those_of_the_sheets(name: str) -> None:
    gpu = shipped(name)
    op = gpu.isa.op("tensor.mma.f16.m16n8k16")
    rate = 16 * 8 * 16 * 2 * gpu.sm.schedulers / op.ii
    if gpu.compute_capability == (7, 0):  # steps of m8n8k4
        rate = 8 * 8 * 4 * 2 * gpu.sm.schedulers / gpu.isa.op("tensor.hmma884").ii
    found = rate * gpu.sm.count * float(table()[name]["clock_mhz"]) * 1e6 / 1e12
    assert found == pytest.approx(TENSOR[name], rel=0.025)


#: pairs in which the second has more of everything
SIBLINGS = [
    ("k20", "k20x"), ("k20x", "k40"), ("gtx780ti", "gtxtitanblack"), ("gtx750ti", "gtx960"), ("gtx960", "gtx970"),
    ("gtx970", "gtx980"), ("gtx980", "gtx980ti"), ("gtx1050ti", "gtx1060"), ("gtx1060", "gtx1070"),
    ("gtx1080", "gtx1080ti"), ("gtx1080ti", "titanxp"), ("gtx1650", "gtx1660"), ("gtx1660", "gtx1660ti"),
    ("rtx2060", "rtx2070s"), ("rtx2070s", "rtx2080"), ("rtx2080s", "rtx2080ti"), ("rtx2080ti", "titanrtx"),
    ("rtx3050", "rtx3060"), ("rtx3060", "rtx3070ti"), ("rtx3080", "rtx3080ti"), ("rtx3080ti", "rtx3090ti"),
    ("a2", "rtxa2000"), ("rtxa4000", "rtxa5000"), ("rtx4060", "rtx4060ti"), ("rtx4060ti", "rtx4070"),
    ("rtx4070", "rtx4070ti"), ("rtx4070ti", "rtx4080"), ("rtx4080s", "rtx4090d"), ("rtx4090d", "rtx4090"),
    ("rtx5050", "rtx5060"), ("rtx5060ti", "rtx5070"), ("rtx5070", "rtx5070ti"), ("rtx5070ti", "rtx5080"),
    ("rtx5080", "rtx5090"), ("rtx5090", "rtxpro6000"), ("rtxpro4000", "rtxpro5000"), ("rtx4090", "rtx5090"),
    ("h100_nvl", "h200"), ("b200", "b300"), ("jetson_orin_nano", "jetson_agx_orin"),
]  # fmt: skip


@pytest.mark.parametrize(("small", "large"), SIBLINGS)
def test_siblings_are_in_order(small: str, large: str) -> None:
    one, other = shipped(small), shipped(large)
    if (small, large) != ("b200", "b300"):  # whose clock is a measured one
        assert peak_flops(one, "fp32") <= peak_flops(other, "fp32")
    assert one.dram.bandwidth <= other.dram.bandwidth
    assert one.l2.bandwidth <= other.l2.bandwidth
