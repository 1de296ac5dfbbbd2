"""Use on machines as they are: Ctrl-C, folders of users, line ends, spaces in paths, locales, read-only installs."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hanging import HANGING

from ppt_gpu.cli import main, printable
from ppt_gpu.common import paths
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.interrupt import prompt_interrupts
from ppt_gpu.inputs import open_workload
from ppt_gpu.spec import load_gpu

ROOT = Path(__file__).parents[2]

SPINNING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin without
from ppt_gpu.common.compiled import entry
from ppt_gpu.spec import load_gpu
from ppt_gpu.common.interrupt import prompt_interrupts
def spin(rounds):
    found = 0
    for i in range(rounds):
        for j in range(1000000000):
            found ^= i * j + (found >> 3)
    return found
spin = entry(spin)
spin(0)
with prompt_interrupts():
    print("ready", flush=True)
    spin(1000)
"""


def test_ctrl_c_ends_compiled_code(tmp_path: Path) -> None:
    """A loop that would last for minutes."""
    (tmp_path / "program.py").write_text(SPINNING)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    time.sleep(0.2)  # so that the loop has begun
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=HANGING)
    assert (process.returncode, error) == (130, b"interrupted\n")


def test_ctrl_c_of_a_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(arguments: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("ppt_gpu.commands.show.explain", lambda *_, **__: interrupted(None))
    assert main(["explain"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_signals_are_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    old = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(old)
    with prompt_interrupts():
        assert signal.set_wakeup_fd(-1) != old
    assert signal.set_wakeup_fd(old) == old and signal.getsignal(signal.SIGINT) is before


def test_in_other_threads_nothing_is_changed() -> None:
    found: list[int] = []

    def run() -> None:
        with prompt_interrupts():
            found.append(main(["explain", "limiter"]))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [0]


@pytest.mark.parametrize(
    ("folder", "system", "environment", "expected"),
    [
        (paths.cache_dir, "linux", {"PPT_GPU_CACHE": "/x/own"}, "/x/own"),
        (paths.cache_dir, "linux", {"XDG_CACHE_HOME": "/x/xdg"}, "/x/xdg/ppt_gpu"),
        (paths.cache_dir, "linux", {"XDG_CACHE_HOME": "relative", "HOME": "/x"}, "/x/.cache/ppt_gpu"),
        (paths.cache_dir, "linux", {"HOME": "/x"}, "/x/.cache/ppt_gpu"),
        (paths.cache_dir, "darwin", {"HOME": "/x"}, "/x/Library/Caches/ppt_gpu"),
        (paths.cache_dir, "win32", {"LOCALAPPDATA": "/x/local"}, "/x/local/ppt_gpu"),
        (paths.config_dir, "linux", {"XDG_CONFIG_HOME": "/x/xdg"}, "/x/xdg/ppt_gpu"),
        (paths.config_dir, "linux", {"XDG_CONFIG_HOME": "relative", "HOME": "/x"}, "/x/.config/ppt_gpu"),
        (paths.config_dir, "darwin", {"HOME": "/x"}, "/x/Library/Application Support/ppt_gpu"),
        (paths.config_dir, "win32", {"APPDATA": "/x/data"}, "/x/data/ppt_gpu"),
    ],
)
def test_the_users_folders(
    folder: Callable[[], Path],
    system: str,
    environment: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in ("CACHE", "CONFIG"):
        monkeypatch.delenv(f"PPT_GPU_{kind}", raising=False)
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    for name in ("LOCALAPPDATA", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert str(folder()) == expected


def test_own_hardware_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PPT_GPU_CONFIG", str(tmp_path))
    folder = tmp_path / "hardware" / "gpus"
    folder.mkdir(parents=True)
    (folder / "dream.toml").write_text('base = "k40"\n[sm]\ncount = 77\n')
    (folder / "k40.toml").write_text('base = "v100"\n')  # shipped names stay what they are
    assert (load_gpu("Dream").sm.count, load_gpu("k40").sm.count) == (77, 15)
    (tmp_path / "next.toml").write_text('base = "dream"\n')
    assert load_gpu(str(tmp_path / "next.toml")).sm.count == 77
    assert main(["gpus", "draem"]) == 2
    assert "did you mean 'dream'?" in capsys.readouterr().err


@pytest.fixture
def without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whom the system does not know; returns the folder that is theirs among the system's temporary files."""
    monkeypatch.delenv("PPT_GPU_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", staticmethod(nowhere))
    return tmp_path / f"ppt_gpu-{os.geteuid()}"


def test_a_user_without_a_home(without_a_home: Path) -> None:
    before = os.umask(0)
    try:
        assert [paths.cache_dir() for _ in range(2)] == [without_a_home / "ppt_gpu"] * 2
    finally:
        os.umask(before)
    assert without_a_home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("made", ["link", "dangling link", "file", "for all", "for the group", "somebody else's"])
def test_a_folder_that_somebody_else_may_have_made(
    without_a_home: Path, made: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is kept then, and nothing is different."""
    folder, real = without_a_home, without_a_home.parent / "real"
    real.mkdir(mode=0o700)
    if made in ("link", "dangling link"):
        folder.symlink_to(real if made == "link" else real / "nothing")
    elif made == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod({"for all": 0o777, "for the group": 0o770}.get(made, 0o700))
    whole = Path.lstat
    if made == "somebody else's":
        other = os.stat_result((*whole(folder)[:4], os.geteuid() + 1, *whole(folder)[5:]))
        monkeypatch.setattr(Path, "lstat", lambda path: other if path == folder else whole(path))
    assert paths.cache_dir() is None
    assert main(["predict", "vecadd", "--gpu", "k40"]) == 0
    assert main(["cache", "--json"]) == 0
    found = capsys.readouterr()
    assert '"folder": null' in found.out and found.err == ""
    assert main(["cache", "clear"]) == 0 and "none, nothing is kept" in capsys.readouterr().out
    monkeypatch.undo()
    assert list(real.iterdir()) == [] and (not folder.is_dir() or list(folder.iterdir()) == [])


def test_without_a_place_for_temporary_files(without_a_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert paths.cache_dir() is None


def test_windows_line_ends_and_paths_with_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same prediction from files with CR LF, in a folder with a space and letters of other languages."""
    folder = tmp_path / "my kérnels"
    folder.mkdir()

    def written(name: str, text: str) -> str:
        (folder / name).write_bytes(text.replace("\n", "\r\n").encode())
        return str(folder / name)

    written("vecadd.ptx", (ROOT / "tasklists" / "vecadd.ptx").read_text())
    workload = written("add it.toml", (ROOT / "tasklists" / "vecadd.toml").read_text())
    gpu = written("my gpu.toml", 'base = "k40"\n[sm]\ncount = 15\n')
    tasklist = written("fig 5.tl", (ROOT / "tasklists" / "fig5.tl").read_text())
    for path in (workload, gpu, tasklist, str(folder / "vecadd.ptx")):
        assert main(["check", path]) == 0, capsys.readouterr().err

    def numbers(*arguments: str) -> list[str]:
        assert main(["predict", *arguments]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith(("  time", "  work"))]

    capsys.readouterr()
    assert numbers(workload, "--gpu", gpu) == numbers("vecadd", "--gpu", "k40")
    tasks = [str(ROOT / "tasklists" / "fig5.tl"), "--gpu", "k40", "--grid", "64"]
    assert numbers(tasklist, "--gpu", gpu, "--grid", "64") == numbers(*tasks)
    out = str(folder / "a sweep.csv")
    assert main(["sweep", workload, "--gpu", gpu, "--set", "sm.count=4,8", "-o", out]) == 0
    assert Path(out).read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("language", ["C", pytest.param("de_DE.ISO-8859-1", marks=pytest.mark.slow)])
def test_any_locale(language: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHONIO"))}
    environment |= {"LC_ALL": language, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "ppt_gpu", "predict", str(ROOT / "tasklists" / "fig5.tl")]
    command += ["--gpu", "k40", "--grid", "64"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"limited by" in done.stdout


def test_what_a_terminal_cannot_show() -> None:
    assert printable("██·· 2 µs", "utf-8") == "██·· 2 µs"
    assert printable("██·· 2 µs × 3 é", "ascii") == "##.. 2 us x 3 ?"


@pytest.mark.parametrize("action", [["clear"], ["--clear"]])
def test_cache_info_and_clear(
    action: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "a cache"))
    sweep = ["sweep", str(ROOT / "tasklists" / "vecadd.toml"), "--gpu", "k40", "--set", "sm.count=15"]
    assert main([*sweep, "--level", "workload"]) == 0
    capsys.readouterr()
    texts = []
    for arguments in ([], ["info"], action, ["info"]):
        assert main(["cache", *arguments]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and "traces of kernels kept: 0" not in texts[0]
    assert texts[2] == texts[0].replace("kept", "removed")
    assert max(map(len, texts[0].splitlines()[1:])) <= 80  # the first says where, however long that is
    assert "traces of kernels kept: 0, block timings: 0, times: 0" in texts[3]
    assert [path.name for path in (tmp_path / "a cache").iterdir()] == []


@pytest.mark.slow
def test_an_install_that_one_cannot_write_to(tmp_path: Path) -> None:
    """Neither beside the package, nor at home, nor in a cache: it compiles anew, works, and writes nothing."""
    obey: list[str] = []
    if os.getuid() == 0:  # root may write everywhere, unless it gives that right away
        if shutil.which("setpriv") is None:
            pytest.skip("root, and no setpriv")
        obey = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", "--"]
    install = tmp_path / "an install"
    for name in ("ppt_gpu", "hardware", "tasklists"):
        shutil.copytree(ROOT / name, install / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a-w", str(install)], check=True)
    try:
        assert subprocess.run([*obey, "touch", str(install / "x")], capture_output=True, check=False).returncode
        environment = {"PATH": os.environ["PATH"], "HOME": "/proc/nobody", "PYTHONPATH": str(install)}
        command = [*obey, sys.executable, "-m", "ppt_gpu", "predict", "vecadd", "--gpu", "k40"]
        done = subprocess.run(command, capture_output=True, env=environment, cwd="/", check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"vecadd on k40: " in done.stdout
        assert not list(install.rglob("__pycache__"))
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(install)], check=True)


def test_a_folder_that_may_not_be_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where this is root, who may enter all: to ask whether there is such a file raises then."""
    stat = os.stat

    def refused(path: object, **options: bool) -> os.stat_result:
        if str(path).startswith(str(tmp_path / "closed")) and str(path) != str(tmp_path / "closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)  # type: ignore[arg-type]

    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0)
    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(os, "access", lambda path, mode, **options: str(path) != str(tmp_path / "closed"))
    assert main(["predict", "vecadd", "--gpu", "k40", "--html", str(tmp_path / "closed" / "x.html")]) == 2
    assert "nothing may be written in" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "closed" / "x.toml"), "--gpu", "k40"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    (tmp_path / "closed").chmod(0o700)


@pytest.mark.parametrize("ending", ["", ".toml", ".ptx", ".tl", ".traceg"])
def test_a_name_that_no_file_can_have(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("predict", "compare"):
        assert main([command, "a" * 300 + ending, "--gpu", "k40"]) == 2
        assert capsys.readouterr().err.count("error: ") == 1
    assert main(["predict", "vecadd", "--gpu", "a" * 300 + ".toml"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_ptx_where_the_name_of_a_workload_is_asked_for() -> None:
    with pytest.raises(PptError, match="a text is not the name of a workload"):
        open_workload(".version 6.0\n.target sm_70\n" * 100)
