"""The set `curves`: its points are read as the files have them, and its kernels do what the curves are of."""

from collections import Counter

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.paths import data_dir
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate import curves

KERNELS = data_dir("validation") / "measured" / "kernels"


def test_points():
    cases = curves.cases()
    assert Counter(case.curve for case in cases) == {"latency": 14, "bandwidth": 6, "small": 45}
    references = {(case.gpu, case.name): case.reference for case in cases}
    assert references["v100", "latency 15 KiB"] == 30.0
    assert references["a40", "bandwidth 32 KiB"] == 9352.2
    assert references["h200", "small 8234 x 32 threads"] == pytest.approx(8234 * 16 / 51e3)


def test_a_chain_in_each_level_takes_its_latency():
    gpu = load_gpu("a100_80gb")
    assert curves.chain_latency("a100_80gb", 16 << 10, 1410) == pytest.approx(gpu.l1.latency, abs=1)
    assert curves.chain_latency("a100_80gb", 1 << 20, 1410) == pytest.approx(gpu.l2.latency, abs=1)


def test_the_chain_visits_all_links_and_the_sum_reads_all_elements():
    data, out = np.ones(2 * 8192, "f4"), np.zeros(1024, "f4")
    data[8192:] = 1.25 / 8 - 1  # a thread adds eight of either
    ppt_gpu.launch(
        KERNELS / "curves.ptx", kernel="sum", grid=1, block=1024, args=[data, out, np.int32(2 * 8192), np.int32(1)]
    )
    np.testing.assert_allclose(out, 1.25)  # the sum of each thread lets it write


def test_a_small_launch_takes_no_less_than_its_overhead():
    assert curves.small_time("a40", 8192, 512, 1740) >= load_gpu("a40").host.launch_overhead * 0.5e6
