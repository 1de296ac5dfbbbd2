"""Recorded runs that are kept: used for GPUs with another memory system, and for no other; and their file."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from plain_document import plain
from timing_cases import K40, same

import ppt_gpu
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.scale.cache.launch_store import LaunchStore
from ppt_gpu.scale.cache.recorded_runs import ON_CHIP, ON_SM, RecordedRuns
from ppt_gpu.sm import one_sm, whole_chip
from ppt_gpu.sm.chip.memory_replay import RecordedChip
from ppt_gpu.sm.loop.memory_replay import RecordedRun
from ppt_gpu.sm.loop.raw import Asked, Requests
from ppt_gpu.sm.loop.record import Answers

pytestmark = pytest.mark.usefixtures("empty_cache")

FAST_DRAM = replace(K40, dram=replace(K40.dram, bandwidth=1.2 * K40.dram.bandwidth))
RUN = RecordedRun(
    np.array([0, 2]), np.array([900, 7]), np.arange(3), np.arange(6).reshape(2, 3),
    Answers(np.array([5, 5, 70]), np.array([6, 8, 16]), np.array([0, 3, 1]), np.array([9, 5, 4]), np.array([5, 8, 70])),
)  # fmt: skip
CHIP_RUN = RecordedChip(
    np.array([0, 2]), np.array([900, 7]), np.arange(3), np.arange(6).reshape(2, 3),
    Asked(
        Requests(*(np.array(words) for words in ([1, 0], [90, 70], [4, -2], [15, 1], [1, 2], [0, 9], [80, 0], [2, 0],
                                                 [700, 7]))),
        np.arange(10), 44,
    ),
)  # fmt: skip
KINDS = pytest.mark.parametrize("kind, run", [(ON_SM, RUN), (ON_CHIP, CHIP_RUN)], ids=["sm", "chip"])


def counted(monkeypatch, module, name):
    """A list that gets an entry each time that the function `name` of the module is called."""
    calls = []
    whole = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **options: calls.append(1) or whole(*given, **options))
    return calls


@pytest.fixture
def chip_runs(monkeypatch):
    return counted(monkeypatch, whole_chip, "run_chip")


@pytest.fixture
def runs(monkeypatch):
    return counted(monkeypatch, one_sm, "run_core")


def small_mandelbrot(grid=(2, 2, 1)):
    """Of 4 blocks: many instructions, few stores."""
    workload = ppt_gpu.open_workload("mandelbrot")
    return replace(workload, launches=(replace(workload.launches[0], grid=grid),))


def middle_of_mandelbrot():
    """Of 768 blocks, some of which compute long."""
    return small_mandelbrot((16, 48, 1))


def test_a_kernel_that_computes_is_simulated_once_for_all_memory_systems(runs):
    expected = plain(ppt_gpu.predict(small_mandelbrot(), FAST_DRAM, cache=False))
    ppt_gpu.predict(small_mandelbrot(), K40)
    assert runs
    runs.clear()
    assert plain(ppt_gpu.predict(small_mandelbrot(), FAST_DRAM)) == expected
    assert not runs


def test_so_is_a_whole_chip(chip_runs):
    expected = plain(ppt_gpu.predict(middle_of_mandelbrot(), FAST_DRAM, level="grid", cache=False))
    ppt_gpu.predict(middle_of_mandelbrot(), K40, level="grid")
    assert chip_runs
    chip_runs.clear()
    assert plain(ppt_gpu.predict(middle_of_mandelbrot(), FAST_DRAM, level="grid")) == expected
    assert not chip_runs


@pytest.mark.parametrize(
    "other",
    [
        replace(K40, l1=replace(K40.l1, latency=K40.l1.latency + 1), memory=replace(K40.memory, store_ack=True)),
        replace(K40, l2=replace(K40.l2, bandwidth=K40.l2.bandwidth / 1000)),
        replace(K40, l2=replace(K40.l2, latency=K40.l2.latency + 9)),
    ],
    ids=["inside", "answers", "latency"],
)
def test_where_a_chip_goes_another_way_it_is_simulated(other, chip_runs):
    expected = plain(ppt_gpu.predict(middle_of_mandelbrot(), other, level="grid", cache=False))
    ppt_gpu.predict(middle_of_mandelbrot(), K40, level="grid")
    chip_runs.clear()
    assert plain(ppt_gpu.predict(middle_of_mandelbrot(), other, level="grid")) == expected
    assert chip_runs


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
    assert not [path for path, _, _ in Store().entries() if path.suffix == ON_SM.suffix]


@KINDS
def test_what_is_read_is_what_was_written(kind, run):
    assert same(kind.read(kind.write(run), "x"), run)


@KINDS
def test_names_keep_programs_apart(kind, run):
    store = Store()
    RecordedRuns(LaunchStore(store, "group"), kind, "program").put("name", run)
    assert RecordedRuns(LaunchStore(store, "group"), kind, "program").get("name") is not None
    for group, program, name in (("other", "program", "name"), ("group", "other", "name"), ("group", "program", "x")):
        assert RecordedRuns(LaunchStore(store, group), kind, program).get(name) is None


@KINDS
def test_damaged_files_are_refused(kind, run):
    data = kind.write(run)
    turned = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), 11)]
    for bad in (b"", data[:20], data + b"x", struct.pack("<8sII", data[:8], 0, 0), *turned):
        with pytest.raises(ValueError, match=r"^file\.run: "):
            kind.read(bad, "file.run")
