"""The set `curves`: its points are read as the files have them, and its kernels do what the curves are of."""

from collections import Counter

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.paths import data_dir
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon import curves
from ppt_gpu.validate.silicon.curve_kernels import chain_latency, small_time, strided_cycles

KERNELS = data_dir("validation") / "measured" / "kernels"


def test_points():
    cases = curves.cases()
    counts = {"latency": 32, "bandwidth": 10, "parts": 12, "strides": 43, "small": 60, "graph": 30}
    assert Counter(case.curve for case in cases) == counts
    references = {(case.gpu, case.name): case.reference for case in cases}
    assert references["v100", "latency 15 KiB"] == 30.0
    assert references["a40", "bandwidth 32 KiB"] == 9352.2
    assert references["gh200", "small 8234 x 32 threads"] == pytest.approx(8234 * 16 / 51e3)
    assert references["l40", "parts 8704 KiB"] == 5201.2
    assert references["a40", "stride 1"] == 2.0


def test_a_chain_in_each_level_takes_its_latency():
    gpu = load_gpu("a100_80gb")
    assert chain_latency("a100_80gb", 16 << 10, 1410) == pytest.approx(gpu.l1.latency, abs=1)
    assert chain_latency("a100_80gb", 1 << 20, 1410) == pytest.approx(gpu.l2.latency, abs=1)


def test_the_chain_visits_all_links_and_the_sum_reads_all_elements():
    data, out = np.ones(2 * 8192, "f4"), np.zeros(1024, "f4")
    data[8192:] = 1.25 / 8 - 1  # a thread adds eight of either
    ppt_gpu.launch(
        KERNELS / "curves.ptx", kernel="sum", grid=1, block=1024, args=[data, out, np.int32(2 * 8192), np.int32(1)]
    )
    np.testing.assert_allclose(out, 1.25)  # the sum of each thread lets it write


def test_the_parts_and_the_strides_are_read():
    data, out = np.ones(3 * 8192, "f4"), np.zeros(1024, "f4")
    data[2 * 8192 :] = 1.25 / 8  # of one of three parts, which is read by the third block
    ppt_gpu.launch(
        KERNELS / "curves.ptx", kernel="sum_parts", grid=3, block=1024, args=[data, out, np.int32(8192), np.int32(3)]
    )
    np.testing.assert_allclose(out, 1.25)
    data, out = np.zeros(3 * 127 + 29, "f4"), np.zeros(256, "f4")
    data[3 * 50 : 3 * 50 + 29 : 4] = 1.25 / 8  # where the threads with number 50 of 128 read
    ppt_gpu.launch(
        KERNELS / "curves.ptx", kernel="strided", grid=1, block=256,
        args=[out, data, np.int32(3), np.int32(8), np.int32(0)],
    )  # fmt: skip
    assert np.flatnonzero(out).tolist() == [50, 178]


def test_strides_that_meet_in_a_bank_take_as_many_cycles():
    assert strided_cycles("a100", 4, 1410) == pytest.approx(4, rel=0.1)


def test_a_small_launch_in_a_stream_takes_its_gap_and_its_kernel_and_in_a_graph_less():
    host = load_gpu("a40").host
    stream, graph = (small_time("a40", 8192, 512, 1740, graph=graph) for graph in (False, True))
    assert stream >= host.launch_gap * 1e6
    assert stream - graph == pytest.approx(1e6 * (host.launch_gap - host.graph_gap))
