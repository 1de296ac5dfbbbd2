"""The trace store: what it gives back, what it does with damage, limits, read-only folders and other processes."""

import logging
import multiprocessing
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from small_samples import run_small, small_workload

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache.store import ENTRIES, Store
from ppt_gpu.emulator.run.run import run
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace_file import Record, write_traces

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


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_entry_is_dropped_with_one_line(tmp_path, caplog, damage):
    store = Store(tmp_path)
    store.put(GROUP, "a", record())
    (path,) = tmp_path.rglob("*.trace")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[: len(data) // 2], "flip": data}[damage])
    with caplog.at_level(logging.WARNING):
        assert store.get(GROUP, "a") is None
    assert len(caplog.records) == 1
    assert "\n" not in caplog.text.strip() and str(path) in caplog.text
    assert not path.exists()
    store.put(GROUP, "a", record())
    assert store.get(GROUP, "a") is not None


def test_the_entries_used_longest_ago_go(tmp_path):
    Store(tmp_path / "one").put(GROUP, "a", record())
    ((_, size, _),) = Store(tmp_path / "one").entries()
    store = Store(tmp_path / "three", limit=3 * size + size // 2)
    for name in "abc":
        store.put(GROUP, name, record())
        os.utime(store.path(GROUP, f"{name}.trace"), (1000 + ord(name), 1000 + ord(name)))
    assert store.get(GROUP, "a") is not None  # used: now the newest
    store.put(GROUP, "d", record())
    assert [name for name, _ in store.group(GROUP)] == ["a", "c", "d"]
    assert sum(size for _, size, _ in store.entries()) <= store.limit


def test_predicted_times_go_last(tmp_path):
    store = Store(tmp_path, limit=1000)
    store.write(GROUP, "prediction.time", b"1" * 10)
    for number in range(20):
        store.write(GROUP, f"{number}.program", b"0" * 100)
    assert store.read(GROUP, "prediction.time", lambda data, path: data) == b"1" * 10
    assert store.read(GROUP, "0.program", lambda data, path: data) is None
    for number in range(100):
        store.write(GROUP, f"{number}.time", b"1" * 100)
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
    assert count == 2 and size > 0
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
    assert all(Store(tmp_path).get(GROUP, path.stem) is not None for path in tmp_path.rglob("*.trace"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".trace"]


def every_file(folder):
    """Path -> what is there, or where a link leads."""
    return {
        path: os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def fill_with_foreign_files(folder, elsewhere):
    """What a user may have in a folder that is called ours; `elsewhere` are entries that links lead to."""
    inside = folder / GROUP[:2] / GROUP
    inside.mkdir(parents=True, exist_ok=True)
    Store(elsewhere).put(GROUP, "a", record())
    for path in (folder / "notes.txt", folder / "ab" / "notes.trace", folder / "ab" / "empty.mark"):
        path.write_text("" if path.suffix == ".mark" else "precious")
    for suffix in ENTRIES:
        (inside / f"mine{suffix}").write_text("precious")
    (inside / "empty.trace").write_text("")
    (inside / "mine.csv").write_bytes(next(elsewhere.rglob("*.trace")).read_bytes())  # ours, of no name of ours
    (inside / ".ppt_gpu-notes").write_text("precious")
    (inside / "link.trace").symlink_to(next(elsewhere.rglob("*.trace")))
    (folder / GROUP[:2] / f"{GROUP[:2]}cd").symlink_to(elsewhere / GROUP[:2] / GROUP)
    (folder / "cd").symlink_to(elsewhere / GROUP[:2])
    return every_file(folder)


def test_clearing_leaves_what_is_not_ours(tmp_path):
    folder, elsewhere = tmp_path / "traces", tmp_path / "elsewhere"
    foreign = fill_with_foreign_files(folder, elsewhere)
    store = Store(folder)
    store.put(GROUP, "a", record())
    store.put("cd" * 32, "b", record())  # through the link, where it stays
    kept = every_file(elsewhere)
    assert len(kept) == 2 and store.clear()[0] == 1
    assert every_file(folder) == foreign and every_file(elsewhere) == kept
    (tmp_path / "linked").symlink_to(elsewhere)
    assert Store(tmp_path / "linked").clear() == (0, 0) and every_file(elsewhere) == kept


def test_making_room_leaves_what_is_not_ours(tmp_path):
    folder = tmp_path / "traces"
    foreign = fill_with_foreign_files(folder, tmp_path / "elsewhere")
    for path in foreign:
        os.utime(path, (1, 1), follow_symlinks=False)  # used longest ago
    store = Store(folder, limit=1000)
    for number in range(200):
        store.write(GROUP, f"{number}.program", b"0" * 100)
    assert sum(size for _, size, _ in store.entries()) <= store.limit
    assert {path: content for path, content in every_file(folder).items() if path.suffix != ".program"} | {
        folder / "ab" / GROUP / "mine.program": b"precious"
    } == foreign


@pytest.mark.parametrize("kind", ["text", "link", "pipe", "folder"])
def test_what_is_not_ours_is_neither_read_nor_replaced(tmp_path, kind):
    store, elsewhere = Store(tmp_path / "traces"), Store(tmp_path / "elsewhere")
    for each in (store, elsewhere):
        each.put(GROUP, "a", record())
    path = store.path(GROUP, "a.trace")
    path.unlink()
    make = {
        "text": lambda: path.write_text("precious"),
        "link": lambda: path.symlink_to(elsewhere.path(GROUP, "a.trace")),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    before = path.lstat()
    assert store.get(GROUP, "a") is None
    store.put(GROUP, "a", record())
    assert store.get(GROUP, "a") is None and store.clear() == (0, 0)
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert elsewhere.get(GROUP, "a") is not None


def test_an_empty_file_may_be_written_over(tmp_path):
    """A loss of power may leave one in place of an entry."""
    store = Store(tmp_path)
    store.put(GROUP, "a", record())
    store.path(GROUP, "a.trace").write_bytes(b"")
    assert store.get(GROUP, "a") is None
    store.put(GROUP, "a", record())
    assert store.get(GROUP, "a") is not None


@pytest.mark.parametrize("change", ["name", "ending", "group", "bit"])
def test_an_entry_is_that_of_its_name_and_whole(tmp_path, change):
    """Also a line of digits, which can be read whatever they are, and a mark without content."""
    store = Store(tmp_path)
    for file, content in (("a.time", b"1.25e-05"), ("a.mark", b"")):
        store.write(GROUP, file, content)
        group, name, suffix = GROUP, file[:-5], file[-5:]
        path = store.path(group, file)
        if change == "bit":
            data = path.read_bytes()
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        else:
            group = "ab" * 31 + "ac" if change == "group" else group
            name, suffix = "b" if change == "name" else name, ".timing" if change == "ending" else suffix
            store.path(group, name + suffix).parent.mkdir(exist_ok=True)
            path.rename(store.path(group, name + suffix))
        assert store.read(group, name + suffix, lambda data, path: data) is None
        assert not store.path(group, name + suffix).exists()


def test_a_folder_that_is_damaged_as_a_whole_is_one_line(tmp_path, caplog):
    store = Store(tmp_path)
    for name in "abc":
        store.put(GROUP, name, record())
        path = store.path(GROUP, f"{name}.trace")
        path.write_bytes(path.read_bytes()[:-1])
    assert [Store(tmp_path).get(GROUP, name) for name in "abc"] == [None] * 3
    assert caplog.text.count("damaged entry") == 1


def test_without_a_folder_nothing_is_kept(monkeypatch):
    monkeypatch.setattr("ppt_gpu.emulator.cache.store.cache_dir", lambda: None)
    store = Store()
    store.put(GROUP, "a", record())
    store.mark(GROUP, "m")
    assert store.get(GROUP, "a") is None and not store.has_mark(GROUP, "m")
    assert list(store.group(GROUP)) == [] and store.entries() == [] and store.clear() == (0, 0)
