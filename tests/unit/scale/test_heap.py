"""Buffers where the simulator's driver puts them."""

from __future__ import annotations

import dataclasses

import numpy as np

from ppt_gpu import load_gpu
from ppt_gpu.common.paths import data_dir
from ppt_gpu.emulator.cache.traces import LaunchTraces
from ppt_gpu.pipeline import open_workload, predict, workload_traces
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Range

QV100 = load_gpu("gpgpusim_qv100")
START = 0xC0000000
RANGES = (Range("b", 9000, 100, True), Range("a", 1000, 300, False), Range("c", 20000, 256, False))


def test_one_behind_another_in_the_order_of_the_run() -> None:
    heap = Heap.of(RANGES, QV100)
    assert [area.start - START for area in heap.ranges] == [0, 256, 768]
    assert [(area.name, area.bytes, area.copied) for area in heap.ranges] == [
        (area.name, area.bytes, area.copied) for area in RANGES
    ]


def test_only_what_is_in_a_buffer_moves() -> None:
    heap = Heap.of(RANGES, QV100)
    at = np.array([999, 1000, 1299, 1300, 9000, 9099, 9100, 20255, 20256, 0, 1 << 63], np.uint64)
    moved = [START + 256, START + 555, START, START + 99, START + 768 + 255]
    expected = at.tolist()
    for place, address in zip((1, 2, 4, 5, 7), moved, strict=True):
        expected[place] = address
    assert heap._moved(at, np.ones(len(at), np.bool_)).tolist() == expected
    assert heap._moved(at, np.zeros(len(at), np.bool_)).tolist() == at.tolist()
    assert Heap.of((), QV100)._moved(at, np.ones(len(at), np.bool_)).tolist() == at.tolist()


def test_a_trace_and_its_accesses_have_the_same_addresses() -> None:
    workload = open_workload("saxpy")
    traces, _ = workload_traces(workload, QV100, {}, Budget(), (), False, None)
    launch: LaunchTraces = traces.launch(0)
    sm = TraceSm.of(launch, QV100, None, keep=False)
    run = launch.run([0, 3])
    heap = Heap.of(run.ranges, sm.gpu)
    trace = heap.trace(run)
    assert trace.ranges[0].start == START
    base = heap.accesses(launch.touched([0, 3])).base
    assert np.array_equal(np.sort(base), np.sort(trace.access_base[trace.access_space == 0]))
    there = [area for area in trace.ranges if area.start <= int(base.min()) < area.start + area.bytes]
    assert there


def test_other_gpus_leave_buffers_where_they_are() -> None:
    """And where they stand changes what a GPU with a heap takes, as slices of its L2 follow from it."""
    assert load_gpu("v100").memory.heap == 0
    elsewhere = dataclasses.replace(QV100, memory=dataclasses.replace(QV100.memory, heap=START + 4096))
    side = 512
    matrices = [*(f"f32[{side * side}]",) * 2, f"i32={side}"]
    kernel = data_dir("tasklists") / "transpose_tiled.ptx"
    workload = open_workload(kernel, grid=(side // 32, side // 32), block=(32, 8), args=matrices)
    first, second = (predict(workload, gpu, level="grid", cache=False).launches[0] for gpu in (QV100, elsewhere))
    assert first.value("kernel.cycles") != second.value("kernel.cycles")
