"""Predictions with traces from the cache, from a file, and without: the same document; what is asked for runs once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plain_document import plain

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache import trace_cache as kept
from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.run import run

pytestmark = pytest.mark.usefixtures("empty_cache")
ROOT = Path(__file__).parents[2]
GATHER = """.version 8.0
.target sm_70
.address_size 64
.visible .entry gather(.param .u64 index, .param .u64 x, .param .u64 y)
{
  .reg .b32 %r<6>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [index]; ld.param.u64 %d2, [x]; ld.param.u64 %d3, [y];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d4, %r4, 4; add.u64 %d5, %d1, %d4; ld.global.u32 %r5, [%d5];
  mul.wide.u32 %d6, %r5, 4; add.u64 %d7, %d2, %d6; ld.global.u32 %r5, [%d7];
  add.u64 %d8, %d3, %d4; st.global.u32 [%d8], %r5;
  ret;
}
"""


@pytest.fixture
def runs(monkeypatch):
    """Counts the blocks that are run functionally."""
    found = []

    def counted(kernel, module, launch, memory, blocks, **options):
        found.append(len(list(blocks)))
        return real(kernel, module, launch, memory, blocks, **options)

    real = run.run
    monkeypatch.setattr(run, "run", counted)
    return found


@pytest.fixture
def gather(tmp_path):
    """A workload whose addresses come from an .npy file."""
    np.save(tmp_path / "index.npy", np.random.default_rng(1).permutation(8192).astype(np.uint32))
    (tmp_path / "gather.ptx").write_text(GATHER)
    (tmp_path / "gather.toml").write_text(
        'ptx = "gather.ptx"\ngrid = 64\nblock = 128\narguments = ["index", "x", "y"]\n[buffers]\n'
        'index = "u32[8192]=npy:index.npy"\nx = "f32[8192]=random"\ny = "f32[8192]"\n'
    )
    return tmp_path / "gather.toml"


@pytest.mark.parametrize("name", ["vecadd", "reduction", "stencil7_shared"])
def test_the_same_with_and_without(name, runs):
    expected = {gpu: plain(ppt_gpu.predict(name, gpu, cache=False)) for gpu in ("k40", "v100")}
    for _ in range(2):  # from nothing, from memory
        assert {gpu: plain(ppt_gpu.predict(name, gpu)) for gpu in ("k40", "v100")} == expected
    kept.forget()
    runs.clear()
    assert {gpu: plain(ppt_gpu.predict(name, gpu)) for gpu in ("k40", "v100")} == expected  # from disk
    assert runs == []


def test_a_sweep_runs_each_block_once(runs):
    workload = ppt_gpu.open_workload("transpose_tiled")
    for count in (4, 7, 12):
        for policy in ("lrr", "gto"):
            ppt_gpu.predict(workload, "k40", overrides=[f"sm.count={count}"], policy=policy)
    assert sum(runs) <= workload.launches[0].blocks


def test_clocks_caches_and_policies_need_no_run(runs, gather):
    ppt_gpu.predict(gather, "k40")
    runs.clear()
    for options in ({"overrides": ["sm.clock=500 MHz"]}, {"overrides": ["l2.size=512 KiB"]}, {"policy": "lrr"}):
        ppt_gpu.predict(gather, "k40", **options)
    assert runs == []


def test_other_data_is_another_trace(runs, gather):
    """Where memory steers the kernel, its content is part of the key."""
    first = plain(ppt_gpu.predict(gather, "k40"))
    np.save(gather.parent / "index.npy", np.zeros(8192, np.uint32))
    runs.clear()
    changed = plain(ppt_gpu.predict(gather, "k40"))
    assert runs and changed != first
    assert changed == plain(ppt_gpu.predict(gather, "k40", cache=False))


def test_contents_are_part_of_the_key(gather):
    one = {"index": np.arange(8192, dtype=np.uint32)}
    two = {"index": np.random.default_rng(2).integers(0, 8192, 8192).astype(np.uint32)}
    found = [plain(ppt_gpu.predict(gather, "k40", contents=contents)) for contents in (one, two, one)]
    assert found[0] == found[2] != found[1]
    assert found[1] == plain(ppt_gpu.predict(gather, "k40", contents=two, cache=False))


def test_faults_are_faults_again(gather):
    bad = {"index": np.full(8192, 1 << 24, np.uint32)}
    texts = []
    for _ in range(2):
        with pytest.raises(PptError, match="out of bounds") as caught:
            ppt_gpu.predict(gather, "k40", contents=bad)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_without_a_writable_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "file"))
    assert plain(ppt_gpu.predict("vecadd", "k40")) == plain(ppt_gpu.predict("vecadd", "k40", cache=False))


@pytest.mark.slow
def test_two_processes_at_once(tmp_path):
    """Both fill the same empty cache; both say the same as one that keeps nothing."""
    command = [sys.executable, "-m", "ppt_gpu", "predict", "transpose_tiled", "--gpu", "k40"]
    environment = {**os.environ, "PPT_GPU_CACHE": str(tmp_path / "shared")}
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in "ab"]
    outputs = [process.communicate() for process in both]
    alone = subprocess.run([*command, "--no-cache"], capture_output=True, env=environment, check=True)
    lines = [[line for line in text.splitlines() if b"wall" not in line] for text in
             (outputs[0][0], outputs[1][0], alone.stdout)]  # fmt: skip
    assert [error for _, error in outputs] == [b"", b""]
    assert lines[0] == lines[1] == lines[2]
    assert Store(tmp_path / "shared" / "traces").entries()


def test_a_trace_file_replaces_inputs_and_runs(tmp_path, gather, runs):
    file = tmp_path / "gather.trace"
    expected = plain(ppt_gpu.predict(gather, "k40", trace_out=file))
    (gather.parent / "index.npy").unlink()
    kept.forget()
    runs.clear()
    assert plain(ppt_gpu.predict(gather, "k40", trace_in=file)) == expected
    assert runs == []
    assert {record.kernel for record in ppt_gpu.load_trace(file)} == {"gather"}


def test_a_trace_file_of_several_launches(tmp_path):
    file = tmp_path / "r.trace"
    expected = plain(ppt_gpu.predict("reduction", "v100", trace_out=file))
    assert plain(ppt_gpu.predict("reduction", "v100", trace_in=file, cache=False)) == expected
    assert {record.launch for record in ppt_gpu.load_trace(file)} == {0, 1}


SMALL = ["--grid", "16", "--block", "128"]
#: command lines whose kernels take every way to their traces: alone, whole, steered by memory, many launches, printing
KERNELS = {
    "alone": [str(ROOT / "tasklists" / "saxpy.ptx"), *SMALL, "--arg", "i32=2048", "--arg", "f32=2.0", "--arg",
              "f32[2048]", "--arg", "f32[2048]"],
    "launches": ["sums.toml"],
    "steered": ["gather.toml"],
    "warning": ["racy.ptx", *SMALL, "--arg", "f32[2048]"],
    "claims": ["claims.ptx", *SMALL, "--arg", "u32[1]", "--arg", "u32[2048]"],
}  # fmt: skip
RACY = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 y)
{
  .reg .b32 %r<3>; .reg .b64 %d<6>; .shared .align 4 .b32 s[128];
  ld.param.u64 %d1, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; mov.u64 %d3, s; add.u64 %d4, %d3, %d2;
  ld.shared.u32 %r2, [%d4];
  add.u64 %d5, %d1, %d2; st.global.u32 [%d5], %r2;
  ret;
}
"""
SUMS = f"""ptx = '{ROOT / "tasklists" / "reduction.ptx"}'
block = 256
[buffers]
data = "f32[16384]=random:1"
partial = "f32[16]"
sum = "f32[1]"
[[launch]]
grid = 16
arguments = ["data", "partial", "i32=16384"]
[[launch]]
grid = 1
arguments = ["partial", "sum", "i32=16"]
"""
CLAIMS = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 next, .param .u64 y)
{
  .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .pred %p<2>;
  ld.param.u64 %d1, [next]; ld.param.u64 %d2, [y];
  atom.global.add.u32 %r1, [%d1], 1;
  setp.ge.u32 %p1, %r1, 2048; @%p1 ret;
  mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d2, %d3; st.global.u32 [%d4], %r1;
  ret;
}
"""


def outputs_of(folder, words, monkeypatch, capsys, threads="1"):
    """The bytes of every output of a prediction, but for the time that it took."""
    kept.forget()
    monkeypatch.setenv("PPT_GPU_THREADS", threads)
    names = [str(folder / name) for name in ("t.trace", "t.html", "t.json.gz", "t.json")]
    options = [word for pair in zip(("--trace-out", "--html", "--timeline"), names, strict=False) for word in pair]
    assert main(["predict", *words, "--gpu", "k40", "--json", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    for holder in (found, *found["launches"]):
        holder["metrics"] = [item for item in holder["metrics"] if item["tag"] != "sim.wall"]
    return [json.dumps(found).encode(), *(Path(name).read_bytes() for name in names[:3])]


@pytest.mark.parametrize("kind", KERNELS)
def test_every_output_is_the_same_whatever_is_kept(tmp_path, monkeypatch, capsys, gather, kind):
    """Nothing, what the same prediction left, or others; and in any number of threads."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("racy.ptx", RACY), ("claims.ptx", CLAIMS), ("sums.toml", SUMS)):
        Path(name).write_text(text)
    words, gpu = KERNELS[kind], ["--gpu", "k40"]
    cold = outputs_of(tmp_path, words, monkeypatch, capsys)
    assert outputs_of(tmp_path, words, monkeypatch, capsys, "3") == cold  # from what it left
    assert outputs_of(tmp_path, [*words, "--no-cache"], monkeypatch, capsys) == cold
    assert main(["cache", "clear"]) == 0
    for other in (["--gpu", "v100"], [*gpu, "--set", "sm.count=3", "--blocks", "all"], [*gpu, "--level", "grid"]):
        assert main(["predict", *words, *other]) == 0
    capsys.readouterr()
    assert outputs_of(tmp_path, words, monkeypatch, capsys, "2") == cold
    Path("copy.trace").write_bytes(cold[1])
    assert outputs_of(tmp_path, [*words, "--trace-in", "copy.trace"], monkeypatch, capsys) == cold


def test_what_a_copy_of_the_file_left_does_not_speak_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("racy.ptx", "copy.ptx"):
        Path(name).write_text(RACY)
        assert main(["predict", name, *SMALL, "--arg", "f32[2048]", "--gpu", "k40"]) == 0
        assert f"{name}:8: 'ld.shared.u32' reads shared memory" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["sweep", "--gpu", "k40", "--set", "sm.count=3,5", "-o"], ["translate", "-o"]])
def test_other_commands_say_the_same_whatever_is_kept(tmp_path, gather, words):
    found = []
    for ending in ("first.csv", "second.csv"):
        assert main([words[0], str(gather), *words[1:], str(tmp_path / ending)]) == 0
        found.append((tmp_path / ending).read_bytes())
        kept.forget()
    assert found[0] == found[1] and found[0]


def command_fails(arguments, capsys):
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and "Traceback" not in err
    return err


def test_a_trace_of_another_kernel_is_refused(tmp_path, capsys):
    file = tmp_path / "v.trace"
    ppt_gpu.predict("vecadd", "k40", trace_out=file)
    err = command_fails(["predict", "saxpy", "--gpu", "k40", "--trace-in", file], capsys)
    assert f"{file}: launch 0 in the file is another: kernel 'vecadd', the workload's is 'saxpy'" in err


def test_blocks_that_the_file_lacks_are_named(tmp_path, capsys, gather):
    file = tmp_path / "g.trace"
    ppt_gpu.predict(gather, "k40", overrides=["sm.count=3"], trace_out=file)
    err = command_fails(["predict", gather, "--gpu", "k40", "--set", "sm.count=5", "--trace-in", file], capsys)
    assert "the file holds no trace of block" in err


def test_bad_trace_files_on_the_command_line(tmp_path, capsys):
    file = tmp_path / "v.trace"
    ppt_gpu.predict("vecadd", "k40", trace_out=file)
    data = file.read_bytes()
    for bad, text in (
        (b"", "not a trace file"),
        (data[:100], "cut short"),
        (data[:-1], "cut short"),
        (b"x" + data, ""),
    ):
        file.write_bytes(bad)
        assert text in command_fails(["predict", "vecadd", "--gpu", "k40", "--trace-in", file], capsys)
        assert str(file) in command_fails(["check", file], capsys)
    missing = tmp_path / "none.trace"
    assert "cannot read" in command_fails(["predict", "vecadd", "--gpu", "k40", "--trace-in", missing], capsys)
    folder = tmp_path / "no" / "x.trace"
    assert "cannot write" in command_fails(["predict", "vecadd", "--gpu", "k40", "--trace-out", folder], capsys)
    assert "task list" in command_fails(
        ["predict", ROOT / "tasklists" / "triad.tl", "--gpu", "k40", "--trace-out", file], capsys
    )


def test_check_summarises_a_trace_file(tmp_path, capsys):
    file = tmp_path / "any-name"
    ppt_gpu.predict("vecadd", "k40", trace_out=file)
    assert main(["check", str(file)]) == 0
    out = capsys.readouterr().out
    assert "trace file" in out and "kernel 'vecadd', grid 16384x1x1" in out and "warp instructions" in out


def test_cache_command(capsys):
    ppt_gpu.predict("reduction", "k40")
    assert main(["cache", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (
        found["traces"]["files"] > 0
        and found["timings"]["files"] > 0
        and found["machine_codes"]["files"] > 0
        and found["programs"]["files"] > 0
        and found["l2_lines"]["files"] > 0
        and found["folder"] == os.environ["PPT_GPU_CACHE"]
    )
    assert main(["cache", "--clear"]) == 0
    assert "removed" in capsys.readouterr().out
    assert Store().entries() == []


def test_trace_budget_is_named(capsys):
    err = command_fails(["predict", "sgemm", "--gpu", "k40", "--max-trace", "64 KiB", "--no-cache"], capsys)
    assert "trace budget" in err and "--max-trace" in err
    err = command_fails(["predict", "sgemm", "--gpu", "k40", "--max-memory", "1 MiB"], capsys)
    assert "--max-memory" in err
