"""Recorded runs that are kept: used for GPUs with another memory system, and for no other; and their file."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from plain_document import plain
from timing_cases import K40, same

import ppt_gpu
from ppt_gpu.exec.store import Store
from ppt_gpu.scale.run_store import MAGIC, SUFFIX, RunStore, read_run, write_run
from ppt_gpu.sm import core
from ppt_gpu.sm.core_again import RecordedRun
from ppt_gpu.sm.core_record import Answers

pytestmark = pytest.mark.usefixtures("empty_cache")

FAST_DRAM = replace(K40, dram=replace(K40.dram, bandwidth=1.2 * K40.dram.bandwidth))
RUN = RecordedRun(
    np.array([0, 2]), np.array([900, 7]), np.arange(3), np.arange(6).reshape(2, 3),
    Answers(np.array([5, 5, 70]), np.array([6, 8, 16]), np.array([0, 3, 1]), np.array([9, 5, 4]), np.array([5, 8, 70])),
)  # fmt: skip


@pytest.fixture
def runs(monkeypatch):
    """One entry each time that the loop runs."""
    calls = []
    whole = core.run_core
    monkeypatch.setattr(core, "run_core", lambda *given, **options: calls.append(1) or whole(*given, **options))
    return calls


def small_mandelbrot():
    """Of 4 blocks: many instructions, few stores."""
    workload = ppt_gpu.open_workload("mandelbrot")
    return replace(workload, launches=(replace(workload.launches[0], grid=(2, 2, 1)),))


def test_a_kernel_that_computes_is_simulated_once_for_all_memory_systems(runs):
    expected = plain(ppt_gpu.predict(small_mandelbrot(), FAST_DRAM, cache=False))
    ppt_gpu.predict(small_mandelbrot(), K40)
    assert runs
    runs.clear()
    assert plain(ppt_gpu.predict(small_mandelbrot(), FAST_DRAM)) == expected
    assert not runs


@pytest.mark.parametrize(
    "other",
    [
        replace(K40, sm=replace(K40.sm, policy="lrr")),
        replace(K40, memory=replace(K40.memory, store_ack=True, store_latency=900)),
    ],
    ids=["policy", "answers"],
)
def test_where_the_run_goes_another_way_it_is_made(other, runs):
    expected = plain(ppt_gpu.predict(small_mandelbrot(), other, cache=False))
    ppt_gpu.predict(small_mandelbrot(), K40)
    runs.clear()
    assert plain(ppt_gpu.predict(small_mandelbrot(), other)) == expected
    assert runs


def test_a_kernel_that_moves_data_is_not_recorded():
    ppt_gpu.predict("vecadd", K40)
    assert not [path for path, _, _ in Store().entries() if path.suffix == SUFFIX]


def test_what_is_read_is_what_was_written():
    assert same(read_run(write_run(RUN), "x"), RUN)


def test_names_keep_programs_apart():
    store = Store()
    RunStore(store, "group", "program").put("name", RUN)
    assert RunStore(store, "group", "program").get("name") is not None
    for group, program, name in (("other", "program", "name"), ("group", "other", "name"), ("group", "program", "x")):
        assert RunStore(store, group, program).get(name) is None


def test_damaged_files_are_refused():
    data = write_run(RUN)
    turned = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), 11)]
    for bad in (b"", data[:20], data + b"x", struct.pack("<8sII", MAGIC, 0, 0), *turned):
        with pytest.raises(ValueError, match=r"^file\.run: "):
            read_run(bad, "file.run")
