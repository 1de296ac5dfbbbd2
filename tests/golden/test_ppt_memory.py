"""Global memory of the PPT family: released constants, PPT-GPU 2019's mean access time, 2021's by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from goldens import golden, goldens

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.ppt.memory import (
    PUBLISHED,
    AccessTimes,
    LoadedMemory,
    Traffic,
    access_time,
    loaded_memory,
    mean_access_time,
    pending_latency,
)
from ppt_gpu.spec import load_gpu

NAMES = {"M2090": "m2090", "K40": "k40", "K6000": "k6000", "Pascal_hyp": "pascal_ppt"}
TIMES = AccessTimes(l1=10, l2=100, dram=300, l2_service=0.5, dram_service=2.0, channels=8)


def test_mean_access_time_of_2019() -> None:
    record = golden("pptgpu.amt")
    given = record["inputs"]
    found = mean_access_time(given["phit_l2"], given["l2"], given["l2_to_dram"])
    assert found == pytest.approx(record["expected"]["AMT"], rel=record["tol"]["rel"])
    with pytest.raises(PptError, match="hit rate"):
        mean_access_time(1.5, 222, 200)


@pytest.mark.parametrize("name", NAMES)
def test_released_constants_of_memory(name: str) -> None:
    printed = golden("ppt.hw.lanl")["expected"][name]
    memory, published = loaded_memory(load_gpu(NAMES[name], ()))
    assert published
    assert [memory.unloaded, memory.loaded] == printed["ram"]
    assert [memory.free, memory.most] == printed["cap"]


def test_whole_cycles_of_pending_accesses() -> None:
    for record in goldens("ppt.memtime.*"):
        given = record["inputs"]
        memory = LoadedMemory(*given["ram"], *given["cap"])
        assert pending_latency(given["pending"], memory) == math.ceil(record["expected"]["cycles"])


def test_little_s_law_stands_in_for_constants_that_nobody_measured() -> None:
    """It gives the published capacities within a factor of 1.6."""
    for name, memory in PUBLISHED.items():
        gpu = load_gpu(name, ())
        other = replace(gpu, name="other", dram=replace(gpu.dram, latency=memory.unloaded))
        inferred, published = loaded_memory(other)
        assert not published
        assert inferred.unloaded == memory.unloaded
        assert memory.most / 1.6 < inferred.most < memory.most * 1.6
        assert 0 < inferred.free < inferred.most


def test_access_time_of_2021_by_hand() -> None:
    # 80 loads and 20 stores; the L1 answers half of the loads, the L2 a quarter of the 60 that reach it
    traffic = Traffic(requests=50, loads=80, stores=20, l1_hit_rate=0.5, l2_hit_rate=0.25, divergence=2.0)
    assert (traffic.l2, traffic.dram) == (60.0, 45.0)
    # L1 800, L2 6000, DRAM 13500 cycles; 45 transactions of 2 cycles; the network's 30 are less than an access
    assert access_time(traffic, TIMES) == math.ceil((13500 + 90) / 50)
    busy = replace(TIMES, l2_service=10.0)
    assert access_time(traffic, busy) == math.ceil((13500 + 90 + 600) / 50)
    # as many side by side as there are channels, once accesses diverge that much
    assert access_time(replace(traffic, divergence=8.0), TIMES) == math.ceil((13500 / 8 + 90 / 8) / 50)
    assert access_time(replace(traffic, divergence=20.0), replace(TIMES, channels=64)) == math.ceil(
        (800 + 90 / 20) / 50
    )  # the L1
    assert access_time(replace(traffic, requests=0), TIMES) == 0.0
