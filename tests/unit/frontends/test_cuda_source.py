"""CUDA files: the compiler that is found, the architecture, what is kept on disk, and errors. The nvcc is a script."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import NVCC

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.frontends.cuda_source import compile_cuda, find_nvrtc
from ppt_gpu.frontends.nvcc import compile_error
from ppt_gpu.inputs import open_workload
from ppt_gpu.workload.workload import Workload

Install = Callable[[str, str], Path]
SAMPLE = data_dir("tasklists") / "saxpy.ptx"


@pytest.fixture
def nvcc(install: Install) -> Path:
    folder = install("nvcc", NVCC)
    shutil.copy(SAMPLE, folder / "made.ptx")
    return folder


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def source(tmp_path: Path, text: str = "__global__ void f() {}\n") -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    return path


def test_compiles_once_for_each_content(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path)
    first = compile_cuda(path, (8, 0))
    assert first == compile_cuda(path, (8, 0))
    assert first.text == SAMPLE.read_text()
    assert Path(first.path).read_text().endswith(f"*/{first.text}")  # behind a comment on its first line
    assert len(calls(nvcc)) == 1 and "-arch=sm_80" in calls(nvcc)[0]
    source(tmp_path, "__global__ void g() {}\n")
    compile_cuda(path, (8, 0))
    compile_cuda(path, (8, 0), ["-DTILE=32"])
    compile_cuda(path, (9, 0))
    assert len(calls(nvcc)) == 4


def test_a_changed_header_compiles_again(nvcc: Path, tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    near, far = tmp_path / "near.h", tmp_path / "inc" / "far.h"
    near.write_text("#include <far.h>\n")
    far.write_text("int a;\n")
    path = source(tmp_path, '#include "near.h"\n#include <stdio.h>\n')
    options = ["-I", str(tmp_path / "inc")]
    compile_cuda(path, (8, 0), options)
    compile_cuda(path, (8, 0), options)
    assert len(calls(nvcc)) == 1
    far.write_text("int b;\n")
    compile_cuda(path, (8, 0), options)
    assert len(calls(nvcc)) == 2


@pytest.mark.parametrize("form", [("-include", "{}"), ("-include={}",), ("--pre-include={}",)])
def test_a_changed_header_of_an_option_compiles_again(nvcc: Path, tmp_path: Path, form: tuple[str, ...]) -> None:
    header = tmp_path / "first.h"
    options = [text.format(header) for text in form]
    for text in ("int a;", "int a;", "int b;"):
        header.write_text(text)
        compile_cuda(source(tmp_path), (8, 0), options)
    assert len(calls(nvcc)) == 2


def test_with_options_in_a_file_nothing_is_kept(nvcc: Path, tmp_path: Path) -> None:
    for _ in range(2):
        compile_cuda(source(tmp_path), (8, 0), ["--options-file", "options"])
    assert len(calls(nvcc)) == 2


def test_an_include_named_by_a_macro_is_never_kept(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path, '#define X "x.h"\n#include X\n')
    compile_cuda(path, (8, 0))
    compile_cuda(path, (8, 0))
    assert len(calls(nvcc)) == 2


def test_a_damaged_file_on_disk_is_made_again(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path)
    made = compile_cuda(path, (8, 0))
    kept = Path(made.path)
    kept.write_text(kept.read_text().replace("mul", "add"))
    assert compile_cuda(path, (8, 0)).text == made.text
    kept.write_bytes(b"\xff\xfe")
    assert compile_cuda(path, (8, 0)).text == made.text
    assert len(calls(nvcc)) == 3


def test_a_cache_that_cannot_be_written_costs_only_time(
    nvcc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / "file"))
    path = source(tmp_path)
    assert compile_cuda(path, (8, 0)) == compile_cuda(path, (8, 0))
    assert compile_cuda(path, (8, 0)).path == f"<PTX of {path}>"


def test_results_do_not_depend_on_where_the_ptx_is_kept(
    nvcc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors name the lines of what is kept, if it is; warnings and task lists are part of a result."""
    (nvcc / "made.ptx").write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  .reg .b32 %r<3>;\n"
        "  .shared .align 4 .b32 s[32];\n  ld.shared.u32 %r1, [s];\n  ret;\n}\n"
    )
    path, found = source(tmp_path), []
    (tmp_path / "file").write_text("")
    for cache in ("one", "other", "file"):
        monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path / cache))
        assert main(["predict", str(path), "--gpu", "a100", "--grid", "1", "--block", "32"]) == 0
        assert main(["translate", str(path), "--grid", "1", "--block", "32"]) == 0
        found.append([line for line in capsys.readouterr().out.splitlines() if "wall" not in line])
    assert found[0] == found[1] == found[2]
    assert "kernel.cu>:8: 'ld.shared.u32' reads shared memory" in " ".join(" ".join(found[0]).split())


@pytest.mark.parametrize("capability, arch, told", [((3, 5), "70", True), ((8, 6), "80", True), ((9, 0), "90", False)])
def test_the_nearest_architecture_and_a_note(
    nvcc: Path, tmp_path: Path, capability: tuple[int, int], arch: str, told: bool
) -> None:
    made = compile_cuda(source(tmp_path), capability)
    assert f"-arch=sm_{arch}" in calls(nvcc)[0]
    assert any(f"compiled for sm_{arch}" in note for note in made.notes) == told
    assert "kernel.cu was compiled by nvcc 12.3" in made.notes


def test_an_architecture_of_the_users_own_wins(nvcc: Path, tmp_path: Path) -> None:
    made = compile_cuda(source(tmp_path), (8, 0), ["-arch=sm_90a"])
    assert "-arch=sm_80" not in calls(nvcc)[0] and "-arch=sm_90a" in calls(nvcc)[0]
    assert made.notes == ("kernel.cu was compiled by nvcc 12.3 -arch=sm_90a",)


def test_the_compilers_messages_are_one_error(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path, "BROKEN\n")
    with pytest.raises(PptError) as caught:
        compile_cuda(path, (8, 0))
    assert str(caught.value).startswith(f"{path}:3: nvcc 12.3 cannot compile this for sm_80:\n")
    assert 'identifier "BROKEN" is undefined' in str(caught.value)


def test_an_error_without_the_warnings_before_it() -> None:
    output = """a.cu(192): warning #177-D: variable "l" was declared but never referenced
    int i = 0, l = 1;
               ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

a.cu(218): error: identifier "__usad4" is undefined
    o[i] = __usad4(v);
           ^

1 error detected in the compilation of "a.cu".
"""
    error = compile_error("nvcc 13.0", Path("a.cu"), output, "80")
    assert str(error).splitlines() == [
        "a.cu:218: nvcc 13.0 cannot compile this for sm_80:",
        '    a.cu(218): error: identifier "__usad4" is undefined',
        "        o[i] = __usad4(v);",
        "               ^",
        '    1 error detected in the compilation of "a.cu".',
    ]


def test_without_a_compiler_the_error_says_what_to_install(no_compilers: None, tmp_path: Path) -> None:
    with pytest.raises(PptError, match="no CUDA compiler") as caught:
        compile_cuda(source(tmp_path), (8, 0))
    assert "pip install nvidia-cuda-nvrtc" in str(caught.value)


def test_a_workload_file_may_name_a_cuda_file(nvcc: Path, tmp_path: Path) -> None:
    source(tmp_path)
    text = (data_dir("tasklists") / "saxpy.toml").read_text().replace("saxpy.ptx", "kernel.cu")
    (tmp_path / "saxpy.toml").write_text(text)
    compiled = ppt_gpu.predict(tmp_path / "saxpy.toml", "a100")
    shipped = ppt_gpu.predict("saxpy", "a100")
    assert compiled.main.metrics[:4] == shipped.main.metrics[:4]
    assert "kernel.cu was compiled by nvcc 12.3" in compiled.main.assumptions


@pytest.mark.parametrize("suffix", [".ptx", ".toml", ".tl"])
def test_compiler_options_are_for_cuda_files(tmp_path: Path, suffix: str) -> None:
    path = data_dir("tasklists") / f"{'fig5' if suffix == '.tl' else 'saxpy'}{suffix}"
    with pytest.raises(PptError, match="--nvcc-option"):
        open_workload(path, compiler_options=["-O1"])


def test_nvrtc_compiles_and_reports_errors(tmp_path: Path) -> None:
    from ppt_gpu.frontends.cuda_source import compile_nvrtc

    nvrtc = find_nvrtc()
    if nvrtc is None:
        pytest.skip("needs the package nvidia-cuda-nvrtc")
    (tmp_path / "near.h").write_text("#define ANSWER 42\n")
    path = source(tmp_path, '#include "near.h"\nextern "C" __global__ void f(int *x) { *x = ANSWER; }\n')
    text = compile_nvrtc(nvrtc, path, "80", [])
    assert ".entry f(" in text and "42" in text
    path.write_text("__global__ void f(int *x) {\n  *x = y;\n}\n")
    with pytest.raises(PptError) as caught:
        compile_nvrtc(nvrtc, path, "80", [])
    assert str(caught.value).startswith(f"{path}:2: NVRTC")
    assert '"y" is undefined' in str(caught.value)


def test_the_kernel_is_found_by_its_name_in_the_source(nvcc: Path, tmp_path: Path) -> None:
    from ppt_gpu.frontends.prepare import prepare

    mangled = SAMPLE.read_text().replace("saxpy", "_ZN2la5saxpyIfLi4EEEvifPKT_PS1_")
    (nvcc / "made.ptx").write_text(mangled)
    path = source(tmp_path)
    args = ["i32=4", "f32=2", "f32[4]", "f32[4]"]
    for name in ("saxpy", "la::saxpy", "la::saxpy<float, 4>", "saxpy<float,4>", "_ZN2la5saxpyIfLi4EEEvifPKT_PS1_"):
        workload: Workload = open_workload(path, kernel=name, grid="1", block="32", args=args)
        assert prepare(workload, (8, 0)).workload.launches[0].kernel.startswith("_ZN2la5saxpy")
    with pytest.raises(ppt_gpu.PptError, match="has no kernel 'sxapy'") as caught:
        prepare(open_workload(path, kernel="sxapy", grid="1", block="32", args=args), (8, 0))
    assert "la::saxpy<float, 4>" in str(caught.value)


def test_messages_use_the_names_of_the_source(nvcc: Path, tmp_path: Path) -> None:
    from ppt_gpu.frontends.prepare import prepare

    (nvcc / "made.ptx").write_text(SAMPLE.read_text().replace("saxpy", "_ZN2la5saxpyEifPKfPf"))
    workload = open_workload(source(tmp_path), grid="1", block="32", args=["i32=4", "f32=2", "f32[4]"])
    with pytest.raises(PptError) as caught:
        prepare(workload, (8, 0))
    expected = "kernel 'la::saxpy' has 4 parameters, 3 arguments given; missing: param_3 (u64)"
    assert expected in str(caught.value)


def test_a_file_without_kernels_is_named(nvcc: Path, tmp_path: Path) -> None:
    (nvcc / "made.ptx").write_text(".version 7.0\n.target sm_70\n.address_size 64\n")
    path = source(tmp_path)
    with pytest.raises(PptError, match="no __global__ function") as caught:
        compile_cuda(path, (8, 0))
    assert str(caught.value).startswith(f"{path}: ") and "instantiation" in str(caught.value)
