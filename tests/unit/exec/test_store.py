"""The trace store: what it gives back, what it does with damage, limits, read-only folders and other processes."""

import logging
import multiprocessing
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from small_samples import run_small, small_workload

from ppt_gpu.errors import PptError
from ppt_gpu.exec.global_accesses import global_accesses
from ppt_gpu.exec.run import run
from ppt_gpu.exec.store import Store
from ppt_gpu.exec.trace_file import Record, read_traces, write_traces

GROUP = "ab" * 32


def record(name="vecadd", kind="trace"):
    workload, module = small_workload(name)
    launch = workload.launches[0]
    kernel = module.kernels[launch.kernel]
    _, _, traces = run_small(name, run)
    content = traces[0] if kind == "trace" else global_accesses(kernel, traces[0])
    size = launch.threads_per_block
    return Record(0, kernel.name, launch.grid, size, len(kernel.instructions), "id", True, content)


def same(one, other):
    return write_traces([one]) == write_traces([other])


def test_what_is_put_can_be_got(tmp_path):
    store = Store(tmp_path)
    for name, kept in (("a", record()), ("b", record("sgemm", "global"))):
        assert store.get(GROUP, name) is None
        store.put(GROUP, name, kept)
        assert same(store.get(GROUP, name), kept)
    assert [name for name, _ in store.group(GROUP)] == ["a", "b"]
    assert [name for name, _ in store.group(GROUP, {"a"})] == ["b"]
    assert list(store.group("cd" * 32)) == []


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_entry_is_dropped_with_one_line(tmp_path, caplog, damage):
    store = Store(tmp_path)
    store.put(GROUP, "a", record())
    (path,) = tmp_path.rglob("*.trace")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[: len(data) // 2], "flip": data, "empty": b"", "text": b"hello"}[damage])
    with caplog.at_level(logging.WARNING):
        assert store.get(GROUP, "a") is None
    assert len(caplog.records) == 1
    assert "\n" not in caplog.text.strip() and str(path) in caplog.text
    assert not path.exists()
    store.put(GROUP, "a", record())
    assert store.get(GROUP, "a") is not None


def test_the_entries_used_longest_ago_go(tmp_path):
    size = len(write_traces([record()]))
    store = Store(tmp_path, limit=3 * size + size // 2)
    for name in "abc":
        store.put(GROUP, name, record())
        os.utime(store._path(GROUP, name), (1000 + ord(name), 1000 + ord(name)))
    assert store.get(GROUP, "a") is not None  # used: now the newest
    store.put(GROUP, "d", record())
    assert [name for name, _ in store.group(GROUP)] == ["a", "c", "d"]
    assert sum(size for _, size, _ in store.entries()) <= store.limit


def test_predicted_times_go_last(tmp_path):
    store = Store(tmp_path, limit=1000)
    store.write("g", "prediction.time", b"1" * 10)
    for number in range(20):
        store.write("g", f"{number}.program", b"0" * 100)
    assert store.read("g", "prediction.time", lambda data, path: data) == b"1" * 10
    assert store.read("g", "0.program", lambda data, path: data) is None
    for number in range(100):
        store.write("g", f"{number}.time", b"1" * 100)
    assert sum(size for _, size, _ in store.entries()) <= store.limit


def test_larger_than_the_limit_is_not_kept(tmp_path):
    store = Store(tmp_path, limit=10)
    store.put(GROUP, "a", record())
    assert store.entries() == []


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    store = Store(file)
    store.put(GROUP, "a", record())
    store.mark(GROUP, "b")
    assert store.get(GROUP, "a") is None and not store.has_mark(GROUP, "b")
    assert file.read_text() == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_read(tmp_path):
    Store(tmp_path).put(GROUP, "a", record())
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        store = Store(tmp_path)
        assert store.get(GROUP, "a") is not None
        store.put(GROUP, "b", record())
        assert store.get(GROUP, "b") is None
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_clear(tmp_path):
    store = Store(tmp_path)
    store.put(GROUP, "a", record())
    store.mark(GROUP, "m")
    count, size = store.clear()
    assert count == 1 and size > 0
    assert store.get(GROUP, "a") is None and not store.has_mark(GROUP, "m")
    assert store.clear() == (0, 0)


def test_limit_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PPT_GPU_CACHE_LIMIT", "3 MiB")
    assert Store(tmp_path).limit == 3 << 20
    monkeypatch.setenv("PPT_GPU_CACHE_LIMIT", "3 apples")
    with pytest.raises(PptError, match="PPT_GPU_CACHE_LIMIT"):
        Store(tmp_path)


def _write_and_read(folder, seed):
    """In a process of its own: put and get the same names as the others do. Returns whether every entry was whole."""
    store, kept = Store(Path(folder), limit=200_000), record()
    rng = np.random.default_rng(seed)
    for _ in range(60):
        name = "abcdefgh"[rng.integers(8)]
        if rng.random() < 0.5:
            store.put(GROUP, name, kept)
        else:
            found = store.get(GROUP, name)
            if found is not None and not same(found, kept):
                return False
    return True


def test_processes_share_a_folder(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert pool.starmap(_write_and_read, [(str(tmp_path), seed) for seed in range(2)]) == [True, True]
    assert all(len(read_traces(path.read_bytes(), "x")) == 1 for path in tmp_path.rglob("*.trace"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".trace"]
