"""Block timing that is kept: repeated, or stale where anything changed that the SM sees; and its file."""

import logging
import struct
from dataclasses import replace

import pytest
from plain_document import plain
from timing_cases import K40, Unreadable, another, changed, count_stages, launch_of, leaves, same

import ppt_gpu
from ppt_gpu.bounds.work import work_of
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.scale.blocks.distribution import spread_grid
from ppt_gpu.scale.cache.block_timing import MAGIC, read_timing, timing_name, write_timing
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.lowering.gpu_cache_key import UNSEEN, seen_by_sm
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate

pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def calls(monkeypatch):
    return count_stages(monkeypatch)


def small_vecadd():
    """Of 8 blocks."""
    workload = ppt_gpu.open_workload("vecadd")
    return replace(workload, launches=(replace(workload.launches[0], grid=(8, 1, 1)),))


def timing_of(name="reduction"):
    sm = TraceSm.of(launch_of(name), K40, None)
    return sm.slots([0, 15]).timing(2)


@pytest.mark.parametrize("name", ["reduction", "jacobi", "spmv", "histogram"])
@pytest.mark.parametrize("level", ["steady", "workload"])
def test_a_repeated_prediction_runs_nothing(name, level, calls):
    expected = plain(ppt_gpu.predict(name, K40, level=level, cache=False))
    for _ in range(2):
        assert plain(ppt_gpu.predict(name, K40, level=level)) == expected
        kept.forget()
        calls.clear()
    assert plain(ppt_gpu.predict(name, K40, level=level)) == expected
    assert calls == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other", "title": "Other"},
        {"host": replace(K40.host, launch_overhead=1e-3, link_bandwidth=1e9, copy_latency=1e-4)},
        {"sm": replace(K40.sm, clock=2 * K40.sm.clock), "dram": replace(K40.dram, bandwidth=2 * K40.dram.bandwidth)},
        {"sm": replace(K40.sm, registers=2 * K40.sm.registers), "dram": replace(K40.dram, size=1 << 40)},
    ],
    ids=["names", "host", "clock", "sizes"],
)
def test_what_the_sm_does_not_see_simulates_nothing(changes, calls):
    gpu = replace(K40, **changes)
    expected = plain(ppt_gpu.predict("vecadd", gpu, cache=False))
    ppt_gpu.predict("vecadd", K40)
    calls.clear()
    assert plain(ppt_gpu.predict("vecadd", gpu)) == expected
    assert calls == []


def test_empty_sms_are_not_seen(calls):
    """A grid of 8 blocks does not know whether 8 or 30 SMs were there to take them."""
    workload = small_vecadd()
    wide = replace(K40, sm=replace(K40.sm, count=30))
    expected = plain(ppt_gpu.predict(workload, wide, cache=False))
    ppt_gpu.predict(workload, K40)
    calls.clear()
    assert plain(ppt_gpu.predict(workload, wide)) == expected
    assert calls == []


def test_without_cache_and_for_trace_files_everything_is_simulated(tmp_path, calls):
    expected = plain(ppt_gpu.predict("vecadd", K40))
    calls.clear()
    assert plain(ppt_gpu.predict("vecadd", K40, trace_out=tmp_path / "a.trace")) == expected
    assert "simulate" in calls and "lower_trace" in calls
    calls.clear()
    assert plain(ppt_gpu.predict("vecadd", K40, trace_in=tmp_path / "a.trace")) == expected
    assert "simulate" in calls


def is_unseen(path):
    owner = K40
    for name in path[:-1]:
        owner = owner[name] if hasattr(owner, "keys") else getattr(owner, name)
    return path[-1] in UNSEEN.get(type(owner).__name__, ())


LEAVES = dict(leaves(K40))


@pytest.mark.parametrize("path", [p for p in LEAVES if not is_unseen(p)], ids=".".join)
def test_every_field_that_is_seen_changes_the_name(path):
    gpu = changed(K40, path, another(LEAVES[path]))
    spread = spread_grid(100, 4, K40.sm.count)
    assert seen_by_sm(gpu) != seen_by_sm(K40)
    names = {timing_name(target, "gto", 16384, spread, [0, 15], 2) for target in (gpu, K40)}
    assert len(names) == 2


def test_arguments_change_the_name():
    wide, narrow = spread_grid(100, 4, 15), spread_grid(100, 4, 14)
    usual = (K40, "gto", 16384, wide, [0, 15], 2)
    for at, other in ((1, "lrr"), (2, 32768), (3, narrow), (4, [15, 0]), (5, 1)):
        assert timing_name(*usual[:at], other, *usual[at + 1 :]) != timing_name(*usual)


#: read through dram_bytes_per_cycle, which the name holds; and the number of SMs, in a check of the active ones
_READ_OTHERWISE = {("sm", "clock"), ("dram", "bandwidth"), ("sm", "count")}


@pytest.mark.parametrize("name", ["reduction", "transpose_tiled", "histogram"])
def test_fields_that_are_not_seen_are_never_read(name):
    """So no result depends on them: lowering, simulation and work are the same with values nothing can be done with."""
    hidden = [path for path in LEAVES if is_unseen(path) and path not in _READ_OTHERWISE]
    assert {path[-1] for path in hidden} >= {"name", "registers", "launch_overhead", "carveouts", "max_blocks"}
    gpu = changed(K40, ("sm", "count"), 1 << 20)
    for path in hidden:
        gpu = changed(gpu, path, Unreadable())
    launch = launch_of(name)
    trace, around = launch.run([0, 15]), launch.touched([1, 2, 16, 17])
    found = []
    for target in (K40, gpu):
        lowered = lower_trace(launch.kernel, trace, target, launch=launch.launch, active_sms=15, neighbours=around)
        result = simulate(lowered, target, resident_blocks=2, active_sms=15, l2_dirty=0.5, l1_bytes=16384)
        found.append((work_of(lowered, target), replace(result, wall=0.0)))
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


def test_the_file_loses_nothing():
    timing = timing_of()
    data = write_timing(timing)
    found = read_timing(data, "x")
    assert same(replace(timing, result=replace(timing.result, wall=0.0)), found)
    assert write_timing(found) == data
    assert len(found.feed.features) == 2 and found.work.blocks == 2 and found.result.cycles > 0


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_entry_is_dropped_with_one_line(tmp_path, caplog, damage, calls):
    expected = plain(ppt_gpu.predict(small_vecadd(), K40))
    (path,) = tmp_path.rglob("*.timing")
    data = bytearray(path.read_bytes())
    whole = bytes(data)
    data[len(data) // 2] ^= 1
    if damage == "other":  # the checksum of nothing: right, but no document
        Store(path.parents[2]).write(path.parent.name, path.name, struct.pack("<8sI", MAGIC, 0))
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "flip": data, "empty": b""}[damage])
    calls.clear()
    with caplog.at_level(logging.WARNING):
        assert plain(ppt_gpu.predict(small_vecadd(), K40)) == expected
    assert calls == ["simulate"]
    if damage != "empty":  # as a file system leaves it after a loss of power: nothing to say
        assert len(caplog.records) == 1
        assert "\n" not in caplog.text.strip() and str(path) in caplog.text
    assert path.read_bytes() == whole


def test_a_file_of_somebody_else_is_left_alone(tmp_path, caplog, calls):
    expected = plain(ppt_gpu.predict(small_vecadd(), K40))
    (path,) = tmp_path.rglob("*.timing")
    path.write_bytes(b"hello")
    calls.clear()
    with caplog.at_level(logging.WARNING):
        assert plain(ppt_gpu.predict(small_vecadd(), K40)) == expected
    assert (calls, caplog.records, path.read_bytes()) == (["simulate"], [], b"hello")
