"""Whatever is wrong with the cache folder: the same result, byte for byte, and at most one line on standard error."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from plain_document import plain

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import ENTRIES, Store
from ppt_gpu.machine import code_cache as machine_code
from ppt_gpu.scale.cache import launch_store

ROOT = Path(__file__).parents[2]
ARGUMENTS = ["i32=2048", "f32=2.0", "f32[2048]", "f32[2048]"]


def forget() -> None:
    """Read from the folder again."""
    for each in (kept, machine_code, launch_store):
        each.forget()


def predicted(cache: bool = True) -> str:
    forget()
    workload = ppt_gpu.open_workload(ROOT / "tasklists" / "saxpy.ptx", grid="16", block="128", args=ARGUMENTS)
    return plain(ppt_gpu.predict(workload, "k40", cache=cache))


@pytest.fixture(scope="module")
def expected() -> str:
    return predicted(cache=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


#: function of the system -> whether it fails when it is given this
FAILING: dict[str, Callable[..., bool]] = {
    "open": lambda path, flags=0, *_, **__: bool(flags & os.O_CREAT),
    "write": lambda *_: True,
    "replace": lambda *_, **__: True,
    "mkdir": lambda *_, **__: True,
    "utime": lambda *_, **__: True,
    "fstat": lambda *_: True,
    "scandir": lambda path=".": "cache" in str(path),
    "unlink": lambda path, **_: "cache" in str(path),
}


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "ENOSYS", "ENOENT"])
@pytest.mark.parametrize("step", FAILING)
def test_a_system_that_refuses(
    step: str, code: str, expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With an empty folder, and with a filled one, where every entry is damaged."""
    number, whole, fails = getattr(errno, code), getattr(os, step), FAILING[step]

    def refusing(*given: object, **options: object) -> object:
        if fails(*given, **options):
            raise OSError(number, os.strerror(number))
        return whole(*given, **options)

    monkeypatch.setattr(os, step, refusing)
    assert predicted() == expected
    monkeypatch.setattr(os, step, whole)
    assert predicted() == expected and Store().entries()
    for path, _, _ in Store().entries():
        path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(os, step, refusing)
    again = predicted()
    monkeypatch.undo()  # pytest asks the system, too
    assert again == expected
    assert caplog.text.count("\n") <= 1 and not [one for one in caplog.records if one.exc_info]


def test_every_entry_is_damaged(expected: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In any way: cut, changed, of another name, or the text of somebody else, which stays."""
    assert predicted() == expected
    entries = [path for path, _, _ in Store().entries()]
    whole = {path: path.read_bytes() for path in entries}
    for damage in (
        lambda path: whole[path][:-1],
        lambda path: whole[path][:30],
        lambda path: whole[path][:-9] + bytes(9),
        lambda path: whole[path] + b"x",
        lambda path: whole[next(other for other in entries if other != path and other.suffix == path.suffix)],
        lambda path: b"precious",
    ):
        for path in entries:
            if sum(other.suffix == path.suffix for other in entries) > 1:
                path.write_bytes(damage(path))
        assert predicted() == expected
    assert caplog.text.count("\n") == 1
    assert {path.read_bytes() for path in entries if path.suffix == ".trace"} == {b"precious"}


@pytest.mark.slow
def test_processes_say_it_once(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also where each of them finds damage."""
    sweep = ["sweep", str(ROOT / "tasklists" / "saxpy.ptx"), "--grid", "16", "--block", "128", "--gpu", "k40"]
    sweep += [word for text in ARGUMENTS for word in ("--arg", text)]
    sweep += ["--set", "block=64,128", "--let", "grid.x=2048/block.x", "--processes", "2"]
    assert main([*sweep, "-o", str(tmp_path / "a.csv")]) == 0
    for path, _, _ in Store().entries():
        path.write_bytes(path.read_bytes()[:-1])
    capfd.readouterr()
    assert main([*sweep, "-o", str(tmp_path / "b.csv")]) == 0
    assert capfd.readouterr().err.count("\n") <= 1
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_the_folder_vanishes_again_and_again(expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: getattr(Store, name) for name in ("read", "write", "_trim")}
    for name, method in whole.items():

        def vanishing(self: Store, *given: object, method: Callable[..., object] = method) -> object:
            shutil.rmtree(folder, ignore_errors=True)
            return method(self, *given)

        monkeypatch.setattr(Store, name, vanishing)
    assert predicted() == expected == predicted()


def test_a_file_in_place_of_the_folder(expected: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for part in ("", "traces"):
        path = folder / part
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
        assert predicted() == expected and path.read_text() == "precious"
        path.unlink()
    assert caplog.text == ""


def test_a_folder_that_cannot_be_written(expected: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where this is root, it can be, and nothing is different either."""
    assert predicted() == expected
    places = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in places:
        path.chmod(0o500)
    try:
        assert predicted() == expected
        (next(folder.rglob("*.timing"))).chmod(0)
        assert predicted() == expected
    finally:
        for path in places:
            path.chmod(0o700)
    assert caplog.text == ""


#: a search whose second level finds the front that the first leaves, which steers it
SEARCH = f"""
ptx = "{ROOT}/tests/data/scale/irregular.ptx"
kernel = "bfs"
grid = 4
block = 128
registers = 24
[buffers]
first = "s32[513]=iota"
neighbour = "s32[512]=iota"
depth = "s32[512]"
[[loop]]
repeat = 2
[[loop.launch]]
arguments = ["first", "neighbour", "depth", "i32=512", "i32=round"]
"""


def test_every_kind_of_file_that_is_kept_is_known_for_ours(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or it would stay when the cache is cleared."""
    from ppt_gpu.frontends.compiled_text import kept as kept_text

    forget()
    (tmp_path / "search.toml").write_text(SEARCH)
    ppt_gpu.predict(tmp_path / "search.toml", "k40")
    ppt_gpu.predict("reduction", "k40")
    ppt_gpu.predict("histogram", "k40")
    many = ppt_gpu.open_workload("mandelbrot")
    ppt_gpu.predict(replace(many, launches=(replace(many.launches[0], grid=(2, 2, 1)),)), "k40")
    assert main(["cluster", "jacobi2d", "--machine", "k40_node"]) == 0
    for suffix in (".ptx", ".json", ".sass"):
        kept_text("ab" * 16, suffix, lambda: "text")
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert {path for path, _, _ in Store().entries()} == files
    capsys.readouterr()
    assert main(["cache", "clear"]) == 0
    assert list(folder.iterdir()) == []
    assert {path.suffix for path in files} == set(ENTRIES)
