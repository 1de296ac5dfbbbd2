"""Lowered blocks that are kept: taken for every GPU that is the same to lowering, and for no other; and their file."""

import struct
from dataclasses import fields, replace

import numpy as np
import pytest
from plain_document import plain
from timing_cases import K40, Unreadable, another, changed, count_stages, launch_of, leaves, same

import ppt_gpu
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.scale.blocks.distribution import spread_grid
from ppt_gpu.scale.cache import launch_store
from ppt_gpu.scale.cache.lowered_blocks import LOWERED, MAGIC, program_name, read_lowered, write_lowered
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.lowering.gpu_cache_key import seen_by_lowering
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.program.program import op_issues

pytestmark = pytest.mark.usefixtures("empty_cache")
LEAVES = dict(leaves(K40))


@pytest.fixture
def calls(monkeypatch):
    return count_stages(monkeypatch)


def lowered_of(name):
    return TraceSm.of(launch_of(name), K40, None).lower([0, 15])


@pytest.mark.parametrize("in_memory", [True, False])
def test_another_gpu_that_is_the_same_to_lowering_is_simulated_only(in_memory, calls):
    other = replace(K40, l1=replace(K40.l1, latency=50), dram=replace(K40.dram, latency=900))
    expected = plain(ppt_gpu.predict("transpose_tiled", other, cache=False))
    ppt_gpu.predict("transpose_tiled", K40)
    if not in_memory:
        launch_store.forget()
        kept.forget()
    calls.clear()
    assert plain(ppt_gpu.predict("transpose_tiled", other)) == expected
    assert set(calls) == {"simulate"}


def test_what_lowering_reads_is_lowered_again(calls):
    other = replace(K40, memory=replace(K40.memory, transactions_per_cycle=0.5))
    expected = plain(ppt_gpu.predict("transpose_tiled", other, cache=False))
    ppt_gpu.predict("transpose_tiled", K40)
    calls.clear()
    assert plain(ppt_gpu.predict("transpose_tiled", other)) == expected
    assert set(calls) == {"lower_trace", "simulate"}


def is_hidden(path):
    """Does the view that lowering has come without reading this field?"""
    try:
        return seen_by_lowering(changed(K40, path, Unreadable())) == seen_by_lowering(K40)
    except (AssertionError, TypeError):
        return False


@pytest.mark.parametrize("name", ["reduction", "transpose_tiled", "histogram"])
def test_fields_that_are_not_seen_are_never_read(name):
    hidden = [path for path in LEAVES if is_hidden(path)]
    assert {path[-1] for path in hidden} >= {"name", "clock", "bandwidth", "mshrs", "policy", "ways"}
    gpu = K40
    for path in hidden:
        gpu = changed(gpu, path, Unreadable())
    launch = launch_of(name)
    trace, around = launch.run([0, 15]), launch.touched([1, 2, 16, 17])
    one, other = (
        lower_trace(launch.kernel, trace, target, launch=launch.launch, active_sms=15, neighbours=around)
        for target in (K40, gpu)
    )
    assert same(one, other)


def test_what_changes_the_name():
    usual = (K40, spread_grid(100, 4, 15), [0, 15], 32, "", False)
    others = (1, spread_grid(100, 4, 14)), (2, [15, 0]), (3, 31), (4, "left"), (5, True)
    for at, other in others:
        assert program_name(*usual[:at], other, *usual[at + 1 :]) != program_name(*usual)
    op = next(path for path in LEAVES if path[:2] == ("isa", "ops") and path[-1] == "latency")
    for path in (("l2", "size"), ("sm", "issue_width"), op, ("shared", "banks")):
        assert program_name(changed(K40, path, another(LEAVES[path])), *usual[1:]) != program_name(*usual)


@pytest.mark.parametrize("name", ["reduction", "spmv"])
def test_what_is_read_is_what_was_written(name):
    lowered = lowered_of(name)
    assert all(same(one, other) for one, other in zip(read_lowered(write_lowered(lowered), "x"), lowered, strict=True))
    assert write_lowered(lowered) == write_lowered(lowered_of(name))


def test_wide_and_falling_values_are_kept_exactly():
    program, feed = lowered_of("reduction")
    line = np.array([-3, 1 << 30, 5], np.int32)
    address = np.array([1 << 63, 7, (1 << 64) - 1], np.uint64)
    given = (
        replace(program, tx_line=line, line_address=address),
        replace(feed, printed="\N{SNOWMAN}\n", notes=("a", "b")),
    )
    assert all(same(one, other) for one, other in zip(read_lowered(write_lowered(given), "x"), given, strict=True))


def test_damaged_files_are_refused():
    data = write_lowered(lowered_of("reduction"))
    cut = [data[:end] for end in (0, 5, 16, 40, len(data) - 1)]
    turned = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), len(data) // 20)]
    for bad in (*cut, *turned, data + b"x"):
        with pytest.raises(ValueError, match=r"^file\.program: "):
            read_lowered(bad, "file.program")
    no_header = struct.pack("<8sII", MAGIC, 0, 0)
    with pytest.raises(ValueError, match=r"^file\.program: "):
        read_lowered(no_header, "file.program")


def test_a_damaged_entry_is_made_again(calls):
    ppt_gpu.predict("transpose_tiled", K40)
    store = Store()
    paths = [path for path, _, _ in store.entries() if path.suffix == LOWERED.suffix]
    for path in paths:
        path.write_bytes(path.read_bytes()[:-1])
    launch_store.forget()
    calls.clear()
    other = replace(K40, l1=replace(K40.l1, latency=50))
    ppt_gpu.predict("transpose_tiled", other)
    assert calls.count("lower_trace") == len(paths) > 0
    for path in paths:
        assert store.read(path.parent.name, path.name, read_lowered)


def test_memory_holds_the_programs_used_last(monkeypatch):
    store = launch_store.LaunchStore(Store(limit=0), "group")
    program, feed = lowered_of("reduction")
    size = sum(getattr(program, f.name).nbytes for f in fields(program) if hasattr(getattr(program, f.name), "nbytes"))
    monkeypatch.setattr(launch_store, "IN_MEMORY", 2 * size)
    for name in "ab":
        store.put(LOWERED, name, (program, feed))
    assert store.get(LOWERED, "a") is not None  # used last
    store.put(LOWERED, "c", (program, feed))
    assert [store.get(LOWERED, name) is not None for name in "abc"] == [True, False, True]


def test_what_a_program_computes_once_is_not_kept_with_it():
    """Another thread may compute it while the size of what is kept is counted."""
    lowered = lowered_of("vecadd")
    before = LOWERED.size(lowered)
    assert op_issues(lowered[0]).nbytes > 0
    assert LOWERED.size(lowered) == before > 0


def test_a_sleep_takes_its_time_at_any_clock(tmp_path):
    """What is kept of one clock is not taken for another: a warp sleeps as many nanoseconds, so other cycles."""
    (tmp_path / "sleep.ptx").write_text(
        ".version 6.4\n.target sm_70\n.address_size 64\n"
        ".visible .entry rest() {\n  .reg .b32 %r<2>;\n  mov.u32 %r1, 1000;\n  nanosleep.u32 %r1;\n  ret;\n}\n"
    )
    (tmp_path / "sleep.toml").write_text('ptx = "sleep.ptx"\ngrid = 80\nblock = 32\nregisters = 16\n')

    def cycles(clock):
        result = ppt_gpu.predict(str(tmp_path / "sleep.toml"), "v100", overrides=[f"sm.clock={clock} MHz"])
        return float(result.launches[0].value("kernel.cycles"))

    assert cycles(2000) - cycles(1000) == pytest.approx(1000, abs=60)
