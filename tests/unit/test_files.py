"""Whatever ends a process while it writes a file: the file is the old one or the new one, and nothing else is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ppt_gpu.common import files
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.files import remove_unfinished, replace_file
from ppt_gpu.common.outputs import write_whole

ROOT = Path(__file__).parents[2]
OLD, NEW = b"old" * 1000, b"new" * 1000
#: functions of the system that are called while a file is written
STEPS = ("open", "write", "fsync", "replace")
#: ends itself before, within or behind a step: (path, the step, when, how)
CHILD = """
import os, signal, sys
from ppt_gpu.common import interrupt, outputs
path, step, when, how = sys.argv[1:]
whole = getattr(os, step)
def end():
    interrupt.end_now() if how == "ctrl-c" else os.kill(os.getpid(), signal.SIGKILL)
def ending(*given, **options):
    if step == "open" and not given[1] & os.O_CREAT:
        return whole(*given, **options)
    if when == "within":
        whole(given[0], bytes(given[1])[:1000])
    elif when == "behind":
        whole(*given, **options)
    end()
setattr(os, step, ending)
outputs.write_whole(path, b"new" * 1000)
"""
MOMENTS = [(step, when) for step in STEPS for when in ("before", "behind")] + [("write", "within")]


def write_and_end(path: Path, step: str, when: str, how: str) -> int:
    """A child that ends itself while it writes; its exit code."""
    command = [sys.executable, "-c", CHILD, str(path), step, when, how]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize(("step", "when"), MOMENTS)
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path, step: str, when: str) -> None:
    """What it had begun goes when the file is written again."""
    path = tmp_path / "out"
    path.write_bytes(OLD)
    assert write_and_end(path, step, when, "kill") == -9
    replaced = (step, when) == ("replace", "behind")
    assert path.read_bytes() == (NEW if replaced else OLD)
    begun = not replaced and (step, when) != ("open", "before")
    assert len(list(tmp_path.iterdir())) == 1 + begun
    write_whole(tmp_path / "other", NEW)
    assert len(list(tmp_path.iterdir())) == 2 + begun  # it may belong to somebody who still writes
    write_whole(path, NEW)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "out"] and path.read_bytes() == NEW


@pytest.mark.parametrize(("step", "when"), MOMENTS)
def test_ctrl_c_that_does_not_wait_leaves_nothing_else(tmp_path: Path, step: str, when: str) -> None:
    """As where the main thread does not come back from compiled code: `ppt_gpu.common.interrupt` ends the process."""
    path = tmp_path / "out"
    path.write_bytes(OLD)
    assert write_and_end(path, step, when, "ctrl-c") == 130
    assert path.read_bytes() == (NEW if (step, when) == ("replace", "behind") else OLD)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
@pytest.mark.parametrize("step", STEPS)
def test_what_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "out"
    path.write_bytes(OLD)
    whole = getattr(os, step)

    def failing(*given: object, **options: object) -> object:
        if step == "write":
            whole(given[0], bytes(given[1])[:1000])  # type: ignore[call-overload]
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, step, failing)
        expected = PptError if isinstance(error, OSError) else type(error)
        with pytest.raises(expected, match="cannot write: No space left" if expected is PptError else None):
            write_whole(path, NEW)
    assert path.read_bytes() == OLD and list(tmp_path.iterdir()) == [path]
    assert not files._begun


def test_the_unfinished_file_of_a_writer_that_lives_stays(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path, found = tmp_path / "out", []
    whole = os.replace

    def looked(source: Path, target: Path) -> None:
        remove_unfinished(tmp_path)
        found.append(source.exists())
        whole(source, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", looked)
        replace_file(path, NEW)
    assert found == [True] and path.read_bytes() == NEW


def test_one_that_went_before_its_lock_was_there_is_begun_again(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    whole, calls = fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not calls:
            calls.append(how)
            remove_unfinished(tmp_path)
        whole(handle, how)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fcntl, "flock", late)
        replace_file(tmp_path / "out", NEW)
    assert calls and [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("out", NEW)]


def test_nothing_is_written_through_a_link_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who guesses the name of the unfinished file finds it taken, and only that write fails."""
    (tmp_path / "victim").write_bytes(OLD)
    monkeypatch.setattr(os, "urandom", bytes)
    number = files._number("out")
    (tmp_path / f".ppt_gpu-{number}-{'0' * 16}").symlink_to("victim")
    with pytest.raises(PptError, match="cannot write: File exists"):
        write_whole(tmp_path / "out", NEW)
    assert (tmp_path / "victim").read_bytes() == OLD
    assert len(list(tmp_path.iterdir())) == 2


def test_a_write_that_takes_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: whole(handle, bytes(data)[:7]))
    write_whole(tmp_path / "out", NEW)
    assert (tmp_path / "out").read_bytes() == NEW


def test_only_unfinished_files_of_ours_go(tmp_path: Path) -> None:
    ours = f".ppt_gpu-{'0' * 8}-{'1' * 16}"
    others = [".ppt_gpu-x", f"{ours}0", ours[1:], ".out.123-4"]
    for name in (ours, *others):
        (tmp_path / name).write_text("x")
    (tmp_path / f".ppt_gpu-{'0' * 8}-{'2' * 16}").mkdir()
    (tmp_path / f".ppt_gpu-{'0' * 8}-{'3' * 16}").symlink_to(others[0])
    left = {each.name for each in tmp_path.iterdir()} - {ours}
    remove_unfinished(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == left
    assert (tmp_path / others[0]).read_text() == "x"
