"""What a user names as an output: no command writes over what it reads, nor twice to one file, and says so first."""

import argparse
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.cli import _parser, main
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs, write_whole

ROOT = Path(__file__).parents[2]
MODULE = (ROOT / "tasklists" / "vecadd.ptx").read_text()
KERNEL = ["--grid", "16", "--block", "128", "--arg", "f32[2048]=npy:x.npy", "--arg", "f32[2048]", "--arg", "f32[2048]"]
KERNEL += ["--arg", "i32=2048"]
FILES = {
    "work.toml": 'ptx = "kernel.ptx"\ngrid = 16\nblock = 128\narguments = ["x", "y", "z", 2048]\n[buffers]\n'
    'x = "f32[2048]=npy:x.npy"\ny = "f32[2048]"\nz = "f32[2048]"\n',
    "kernel.ptx": MODULE,
    "one.tl": (ROOT / "tasklists" / "fig5.tl").read_text(),
    "kernel.cu": '#include "near.h"\n__global__ void f() {}\n',
    "near.h": "#include <far.h>\n",
    "far.h": "\n",
    "gpu.toml": 'base = "base.toml"\nisa = "isa.toml"\n',
    "base.toml": 'base = "k40"\n',
    "isa.toml": 'base = "sm_35"\n',
    "machine.toml": 'base = "k40_node"\nnetwork = "network.toml"\n[[gpus]]\nmodel = "gpu.toml"\ncount = 2\n',
    "network.toml": 'base = "infiniband_fdr"\n',
    "app.py": "def app(rank):\n    yield rank.sleep(1)\n",
    "graph.json": '{"schema": 1, "nodes": [{"id": 1, "type": "kernel", "time": "5 us"}]}',
    "suite.toml": (ROOT / "hardware" / "suites" / "parsec.toml").read_text(),
    "study.toml": 'base = "isca11"\n',
    "scaling.toml": (ROOT / "hardware" / "scaling" / "itrs.toml").read_text(),
    "chips.toml": (ROOT / "hardware" / "chips" / "blem.toml").read_text().replace('"a8"', '"core.toml"'),
    "core.toml": (ROOT / "hardware" / "cores" / "a8.toml").read_text(),
    "ir.toml": "",
    "counters.csv": "",
    "capture.csv": "",
    "code.sass": "",
    "list.g": "kernel-1.traceg\n",
    "kernel-1.traceg": (ROOT / "examples" / "sass" / "kernel-1.traceg.xz").read_bytes(),
    "t.trace": "",
}
WORKLOAD = ("work.toml", "kernel.ptx", "x.npy")
GPU = ("gpu.toml", "base.toml", "isa.toml")
RUN = ["--gpu", "gpu.toml"]
SWEEP = ["work.toml", *RUN, "--set", "sm.count=2,4"]
DESIGN = [*SWEEP, "--target", "1 s", "--cost", "sm.count"]
PREDICTED = {"--trace-out": ".trace", "--html": ".html", "--timeline": ".json", "--plot": ".png"}
DARK = ["--suite", "suite.toml", "--study", "study.toml", "--scaling", "scaling.toml"]
#: (words of a command, what does its work, its inputs, its outputs with endings)
CASES: list[tuple[list[str], str, tuple[str, ...], dict[str, str]]] = [
    (["predict", "work.toml", *RUN], "commands.predict.predict", (*WORKLOAD, *GPU), PREDICTED),
    (["predict", "kernel.ptx", *RUN, *KERNEL], "commands.predict.predict", (*WORKLOAD[1:], *GPU), PREDICTED),
    (["predict", "work.toml", "--gpu", "k40", "--trace-in", "t.trace"], "commands.predict.predict", ("t.trace",),
     PREDICTED),
    (["predict", "one.tl", "--gpu", "k40", "--grid", "64", "--set", "isa=isa.toml"], "commands.predict.predict",
     ("one.tl", "isa.toml"), PREDICTED),
    (["predict", "list.g", "--gpu", "k40"], "commands.predict.predict", ("list.g", "kernel-1.traceg"), PREDICTED),
    (["predict", "kernel.cu", "--gpu", "k40", "--grid", "1", "--block", "32", "--nvcc-option=-I."],
     "commands.predict.predict", ("kernel.cu", "near.h", "far.h"), PREDICTED),
    (["translate", "work.toml"], "commands.translate.translate", WORKLOAD, {"-o": ".tl"}),
    (["translate", "code.sass"], "commands.translate.open_code", ("code.sass",), {"-o": ".tl"}),
    (["sweep", *SWEEP], "commands.sweep.sweep", (*WORKLOAD, *GPU), {"-o": ".csv", "--plot": ".png"}),
    (["design", *DESIGN], "commands.design.design", (*WORKLOAD, *GPU), {"-o": ".toml", "--plot": ".png"}),
    (["calibrate", "--capture", "capture.csv", "--base", "gpu.toml"], "commands.calibrate.calibrate_capture",
     ("capture.csv", *GPU), {"-o": ".toml"}),
    (["port", "--from-gpu", "work.toml", "--to", "core.toml"], "commands.port._ported", (*WORKLOAD, "core.toml"),
     {"-o": ".toml"}),
    (["port", "--from-ir", "ir.toml", "--to", "gpu.toml"], "commands.port._ported", ("ir.toml", *GPU), {"-o": ".toml"}),
    (["port", "--from-cpu", "counters.csv", "--to", "k40"], "commands.port._ported", ("counters.csv",),
     {"-o": ".toml"}),
    (["cluster", "app.py", "--machine", "machine.toml", "--nodes", "1,2"], "commands.cluster.simulate",
     ("app.py", "machine.toml", "network.toml", *GPU), {"--timeline": ".json.gz", "--plot": ".svg"}),
    (["cluster", "graph.json", "--machine", "k40_node", "--nodes", "1,2"], "commands.cluster.simulate", ("graph.json",),
     {"--timeline": ".json", "--plot": ".pdf"}),
    (["darksilicon", *DARK], "commands.darksilicon.project", ("suite.toml", "study.toml", "scaling.toml"),
     {"--plot": ".png"}),
    (["darksilicon", "--figure", "4.18", "--cores", "chips.toml", "--kernel", "work.toml"],
     "commands.known_chips.project_figure", ("chips.toml", "core.toml", *WORKLOAD), {"--plot": ".png"}),
    (["upperbound", "area", *DARK], "commands.darksilicon.run_sweep", ("suite.toml", "study.toml", "scaling.toml"),
     {"--plot": ".png"}),
    (["study"], "validate.models.study.accuracy", (), {"--plot": ".png"}),
    (["validate", "measured", "--capture", "capture.csv"], "validate.silicon.captured.rows", ("capture.csv",),
     {"--plot": ".png"}),
]  # fmt: skip


def cases(least_inputs: int, least_outputs: int) -> pytest.MarkDecorator:
    """Those with so many inputs and outputs."""
    chosen = [each for each in CASES if len(each[2]) >= least_inputs and len(each[3]) >= least_outputs]
    ids = [" ".join(words[:2]) for words, *_ in chosen]
    return pytest.mark.parametrize(("words", "work", "inputs", "outputs"), chosen, ids=ids)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    np.save("x.npy", np.zeros(2048, np.float32))
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Runs a command that must be refused before its work; returns its one error."""

    def run(words: list[str], work: str) -> str:
        def begun(*_: object, **__: object) -> None:
            raise AssertionError("the work has begun")

        monkeypatch.setattr(f"ppt_gpu.{work}", begun)
        assert main(words) == 2
        out, error = capsys.readouterr()
        assert out == "" and error.startswith("error: ") and error.count("error: ") == 1, error
        return error

    return run


def test_every_output_of_every_command_is_among_the_cases() -> None:
    (commands,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    writing = {
        (name, action.option_strings[0])
        for name, parser in commands.choices.items()
        for action in parser._actions
        if re.search(r"(^|: )(write|draw) ", action.help or "")
    }
    assert writing == {(words[0], option) for words, _, _, outputs in CASES for option in outputs}


@cases(1, 1)
def test_no_output_is_an_input(
    words: list[str], work: str, inputs: tuple[str, ...], outputs: dict[str, str], refused
) -> None:
    """Neither by its name nor by another one, that of a hard or of a symbolic link."""
    for option, ending in outputs.items():
        for name in inputs:
            before = Path(name).read_bytes()
            os.link(name, f"hard{ending}")
            os.symlink(name, f"soft{ending}")
            for output in (f"hard{ending}", f"soft{ending}", *([name] if name.endswith(ending) else [])):
                assert f"{output}: cannot write: this is an input" in refused([*words, option, output], work)
            os.remove(f"hard{ending}")
            os.remove(f"soft{ending}")
            assert Path(name).read_bytes() == before


@cases(0, 2)
def test_no_output_is_another_one(
    words: list[str], work: str, inputs: tuple[str, ...], outputs: dict[str, str], refused
) -> None:
    """Whether the file is there or not."""
    pairs = [(one, other) for one in outputs for other in outputs if one != other]
    for there in (True, False):
        for one, other in pairs:
            if there:
                Path("file").write_text("mine")
            for number, option in enumerate((one, other)):
                Path(f"{number}{outputs[option]}").symlink_to("file")
            names = [f"{number}{outputs[option]}" for number, option in enumerate((one, other))]
            error = refused([*words, one, names[0], other, names[1]], work)
            assert "cannot write: this file is the output" in error
            assert not there or Path("file").read_text() == "mine"
            for name in [*names, *(["file"] if there else [])]:
                Path(name).unlink()


@cases(0, 1)
def test_where_no_output_can_be(
    words: list[str], work: str, inputs: tuple[str, ...], outputs: dict[str, str], refused
) -> None:
    for option, ending in outputs.items():
        Path(f"folder{ending}").mkdir(exist_ok=True)
        assert "cannot write: this is a folder" in refused([*words, option, f"folder{ending}"], work)
        missing = os.path.join("nowhere", f"x{ending}")
        assert "cannot write: there is no folder 'nowhere'" in refused([*words, option, missing], work)


def test_a_sweeps_journal_is_an_output_too(refused) -> None:
    Path("out.csv.journal").symlink_to("kernel.ptx")
    assert "this is an input" in refused(["sweep", *SWEEP, "-o", "out.csv"], "commands.sweep.sweep")
    Path("out.csv.journal").unlink()
    Path("out.csv.journal").symlink_to("p.png")
    words = ["sweep", *SWEEP, "-o", "out.csv", "--plot", "p.png"]
    assert "cannot write: this file is the output" in refused(words, "commands.sweep.sweep")


def test_kernels_of_an_application_are_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    """Which ones there are, only the simulation tells."""
    Path("app.py").write_text(
        "from ppt_gpu.cluster.model.kernel import Kernel\ndef app(rank):\n    yield rank.launch(Kernel('work.toml'))\n"
    )
    Path("alias.json").symlink_to("kernel.ptx")
    assert main(["cluster", "app.py", "--machine", "k40_node", "--timeline", "alias.json"]) == 2
    assert "alias.json: cannot write: this is an input" in capsys.readouterr().err
    assert Path("kernel.ptx").read_text() == MODULE


def test_from_python_too() -> None:
    call = {"grid": 16, "block": 128, "args": ["f32[2048]"] * 3 + [2048]}
    for output, source, gpu, more in (
        ("kernel.ptx", "kernel.ptx", "k40", call),
        ("base.toml", "kernel.ptx", "gpu.toml", call),
        ("x.npy", "work.toml", "k40", {}),
        ("t.trace", "work.toml", "k40", {"trace_in": "t.trace"}),
    ):
        before = Path(output).read_bytes()
        with pytest.raises(PptError, match="this is an input"):
            ppt_gpu.predict(source, gpu, trace_out=output, **more)
        assert Path(output).read_bytes() == before


def test_the_file_of_a_kernel_object_is_an_input(tmp_path: Path) -> None:
    from ppt_gpu.frontends.call import file_of

    class Compiled:
        """What @numba.cuda.jit and @triton.jit make has the function in one of these."""

        def __init__(self, name: str) -> None:
            setattr(self, name, test_from_python_too)

    assert [file_of(Compiled(name)) for name in ("py_func", "fn")] == [[Path(__file__)]] * 2
    assert file_of("kernel.ptx") == []


def test_standard_output_is_an_output_where_it_is_a_file() -> None:
    code = str(ROOT / "examples" / "sass" / "saxpy.sass")
    command = [sys.executable, "-m", "ppt_gpu", "translate", code, "--block", "256", "--trip", ".L_x_0=4"]
    with open("out.tl", "w") as out:
        done = subprocess.run([*command, "-o", "out.tl"], stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and b"out.tl: cannot write: this file is standard output, too" in done.stderr
    with open("out.tl", "w") as out:  # which may be named for what it is
        subprocess.run([*command, "-o", "/dev/stdout"], stdout=out, check=True)
    assert Path("out.tl").read_text().startswith("tasklist 1\n")
    piped = subprocess.run([*command, "-o", "/dev/stdout"], capture_output=True, check=True)
    assert piped.stdout == Path("out.tl").read_bytes()


def test_other_files_are_written_over() -> None:
    """A file keeps its permissions, a new one has those that the user wants; a link leads where it did."""
    Path("old.tl").write_text("old")
    Path("old.tl").chmod(0o640)
    Path("link.tl").symlink_to("old.tl")
    Path("dangling.tl").symlink_to("made.tl")
    before = os.umask(0o027)
    try:
        for name in ("old.tl", "link.tl", "dangling.tl", "new.tl", "n" * 252 + ".tl"):
            Path("old.tl").write_text("old")
            assert main(["translate", "work.toml", "-o", name]) == 0
            assert Path(name).read_text() == ppt_gpu.translate("work.toml")
    finally:
        os.umask(before)
    assert Path("link.tl").is_symlink() and Path("dangling.tl").is_symlink()
    assert [Path(name).stat().st_mode & 0o777 for name in ("old.tl", "made.tl", "new.tl")] == [0o640] * 3
    assert not list(Path().glob(".*"))


def test_a_protected_file_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this is root, who may write all."""
    Path("mine.tl").write_text("mine")
    Path("mine.tl").chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: os.path.isdir(path))
    with pytest.raises(PptError, match="this file is protected against writing"):
        check_outputs(["mine.tl"])


@pytest.fixture
def pipe() -> Iterator[Path]:
    path = Path("pipe.tl")
    os.mkfifo(path)
    yield path
    assert path.is_fifo()


def test_into_a_pipe(pipe: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its reader may come later, which is said."""
    found = []
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        check_outputs([pipe])
        write_whole(pipe, b"early")
        found.append(reader.read())
    assert caplog.text == ""
    said = threading.Event()
    caplog.handler.emit = lambda record: said.set()  # type: ignore[method-assign]

    def read() -> None:
        assert said.wait(60)
        found.append(pipe.read_bytes())

    reading = threading.Thread(target=read)
    reading.start()
    write_whole(pipe, b"late" * 100_000)  # more than a pipe holds
    reading.join()
    assert found == [b"early", b"late" * 100_000]


def test_into_a_device() -> None:
    """One may have several outputs; a full one is an error."""
    for device in ("/dev/null", "/dev/full"):
        if not Path(device).is_char_device():
            pytest.skip(f"no {device}")
    check_outputs(["/dev/null", "/dev/null", "/dev/full"])
    Path("null.tl").symlink_to("/dev/null")
    write_whole("null.tl", b"x")
    assert Path("/dev/null").is_char_device() and Path("null.tl").is_symlink()
    with pytest.raises(PptError, match="cannot write: No space left on device"):
        write_whole("/dev/full", b"x")
    assert Path("/dev/full").is_char_device()


def test_what_is_neither_a_file_nor_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket
    import stat

    with socket.socket(socket.AF_UNIX) as one:
        one.bind("a.socket")
    for write in (check_outputs, lambda names: write_whole(names[0], b"x")):
        with pytest.raises(PptError, match="cannot write: this is a socket"):
            write(["a.socket"])
    Path("loop.tl").symlink_to("loop.tl")
    with pytest.raises(PptError, match="cannot write: Too many levels of symbolic links"):
        check_outputs(["loop.tl"])
    with pytest.raises(PptError, match="cannot write: Bad file descriptor"):
        check_outputs(["/dev/fd/999"])
    whole = os.stat
    disk = os.stat_result((stat.S_IFBLK | 0o660, *whole("x.npy")[1:]))
    monkeypatch.setattr(os, "stat", lambda path, **more: disk if str(path) == "x.npy" else whole(path, **more))
    for write in (check_outputs, lambda names: write_whole(names[0], b"x")):
        with pytest.raises(PptError, match="cannot write: this is a block device"):
            write(["x.npy"])
