"""Workload files: every key, samples by name, and each snippet of docs/workload.md."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.ptx import load_module
from ppt_gpu.workload.arguments import workload_from_arguments
from ppt_gpu.workload.reader import bind_workload, find_sample, load_workload, sample_names
from ppt_gpu.workload.workload import Argument, Buffer, Copy

ROOT = Path(__file__).resolve().parents[3]
SNIPPETS = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/workload.md").read_text(), re.S)


@pytest.fixture
def folder(tmp_path):
    """A folder with the sample kernels in it, where workloads can be written."""
    for path in data_dir("tasklists").glob("*.ptx"):
        (tmp_path / path.name).write_text(path.read_text())
    return tmp_path


def read(folder, text):
    (folder / "x.toml").write_text(text)
    return load_workload(folder / "x.toml")


def test_whole_workload(folder):
    np.save(folder / "data.npy", np.arange(6.0))
    workload = read(
        folder,
        """
name = "twice"
ptx = "saxpy.ptx"
kernel = "saxpy"
grid = [4, 2]
block = 64
dynamic_shared = "1 KiB"
registers = 20
repeat = 3
arguments = ["i32=-1024", "f32=2.5", "x+8", "f64[2*3]:copied=iota"]
copy_in = ["y", "2 KiB"]
copy_out = ["x"]
pinned = false
graph = true
[buffers]
x = "f32[]=npy:data.npy"
y = "u8[1_000]=random(3,9):5"
[symbols]
table = "s16[8]=const:-2"
""",
    )
    (launch,) = workload.launches
    assert (launch.kernel, launch.grid, launch.block) == ("saxpy", (4, 2, 1), (64, 1, 1))
    assert (launch.dynamic_shared, launch.registers, launch.repeat) == (1024, 20, 3)
    assert workload.graph
    assert launch.arguments == (
        Argument("s32", -1024),
        Argument("f32", 2.5),
        Argument("u64", buffer="x", offset=8),
        Argument("u64", buffer="argument_3"),
    )
    assert workload.buffers == (
        Buffer("x", "f32", 6, f"npy:{folder / 'data.npy'}"),
        Buffer("y", "u8", 1000, "random", 5, True, 3.0, 9.0),
        Buffer("argument_3", "f64", 6, "iota", copied=True),
    )
    assert workload.symbols == (Buffer("table", "s16", 8, "const:-2"),)
    assert workload.copies == (
        Copy(1000, "in", False, "y"),
        Copy(2048, "in", False, "2 KiB"),
        Copy(24, "out", False, "x"),
    )
    assert workload.name == "twice"
    assert workload.line["buffers.y"] == 17
    assert workload.warnings == (f"{folder / 'x.toml'}:17: no launch uses the buffer 'y'",)


def test_launches_inherit_from_the_top(folder):
    text = 'ptx = "saxpy.ptx"\ngrid = 3\nblock = 32\nregisters = 9\narguments = ["f32[4]"]\n[[launch]]\n[[launch]]\n'
    first, second = read(folder, text + "block = [2, 2, 2]\narguments = []\nrepeat = 5\n").launches
    assert (first.block, first.arguments[0].buffer, first.repeat) == ((32, 1, 1), "argument_0", 1)
    assert (second.grid, second.block, second.arguments, second.repeat) == ((3, 1, 1), (2, 2, 2), (), 5)
    assert second.registers == 9


def test_the_only_entry_is_the_default_kernel(folder):
    workload = read(folder, 'ptx = "vecadd.ptx"\ngrid = 1\nblock = 1\narguments = ["f32[1]","f32[1]","f32[1]","i32=1"]')
    assert workload.launches[0].kernel == ""
    bound = bind_workload(workload, load_module(workload.ptx_path))
    assert bound.launches[0].kernel == "vecadd"


def test_struct_argument(folder):
    text = 'ptx = "vecadd.ptx"\ngrid = 1\nblock = 1\narguments = ["struct(f32=1.5, a+4, u8=3)"]\n[buffers]\na = "u8[9]"'
    (argument,) = read(folder, text).launches[0].arguments
    assert argument.fields == (Argument("f32", 1.5), Argument("u64", buffer="a", offset=4), Argument("u8", 3))


def test_samples_by_name():
    assert {"vecadd", "saxpy", "sgemm", "stencil7", "stencil7_shared", "reduction"} <= set(sample_names())
    assert load_workload("sgemm") == load_workload(find_sample("sgemm"))
    with pytest.raises(PptError, match="no sample workload 'sgem'") as caught:
        load_workload("sgem")
    assert caught.value.hint == "did you mean 'sgemm'?"
    with pytest.raises(PptError, match="no such file") as caught:
        load_workload("elsewhere/sgemm.toml")
    assert caught.value.hint == "the shipped sample is called 'sgemm'"


@pytest.mark.parametrize("name", sample_names())
def test_every_sample_is_sound(name):
    workload = load_workload(name)
    assert workload.warnings == ()
    text = find_sample(name).read_text()
    assert text.startswith("# "), "the header says what the sample shows"
    if workload.ptx_path:
        bound = bind_workload(workload, load_module(workload.ptx_path))
        assert all(launch.registers for launch in bound.launches)
        assert f"| {name} |" in (data_dir("tasklists") / "README.md").read_text()


def test_there_are_snippets():
    assert len(SNIPPETS) == 5


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet(snippet, folder):
    workload = read(folder, snippet)
    bind_workload(workload, load_module(workload.ptx_path))
    assert workload.warnings == ()


def test_command_line_of_the_documentation():
    command = re.findall(r"\$ (ppt-gpu predict .*--arg.*)\n```", (ROOT / "docs/workload.md").read_text())
    words = shlex.split(command[0])
    arguments = [words[i + 1] for i, word in enumerate(words) if word == "--arg"]
    workload = workload_from_arguments(ROOT / words[2], "", (320,), (256,), arguments)
    bind_workload(workload, load_module(workload.ptx_path))
    assert [b.copied for b in workload.buffers] == [True, False]


def test_tables_of_the_documentation():
    """Every form that the tables show is read."""
    from ppt_gpu.workload.argument_text import parse_argument, with_init
    from ppt_gpu.workload.texture_text import is_texture, parse_texture

    text = (ROOT / "docs/workload.md").read_text()
    forms = re.search(r"## Arguments(.*?)## ", text, re.S)
    rows = [row.split("|")[1] for row in forms[1].splitlines() if row.startswith("| `")]
    for form in (f for row in rows for f in re.findall(r"`([^`]+)`", row)):
        (parse_texture if is_texture(form) else parse_argument)(form, "x" if is_texture(form) else 0)
    contents = re.search(r"\| content \|(.*?)```", text, re.S)
    rows = [row.split("|")[1] for row in contents[1].splitlines() if "`" in row and "npy" not in row]
    found = [f for row in rows for f in re.findall(r"`([^`]+)`", row)]
    assert len(found) == 7
    for form in found:
        with_init(Buffer("x", "u32" if form.startswith("ring") else "f32", 64), form)
