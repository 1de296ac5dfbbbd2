"""Registers from ptxas: when it runs, what is read from it, what is told. The ptxas is a script, but in one test."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import NVCC, PTXAS

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.frontends.arch import choose_for_registers
from ppt_gpu.frontends.ptxas import Resources, find_ptxas, ptxas_arch, read_report, resources
from ppt_gpu.ptx.parsing.parser import load_module

Install = Callable[[str, str], Path]
SAMPLE = data_dir("tasklists") / "saxpy.ptx"
SAID = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'saxpy' for 'sm_80'
ptxas info    : Function properties for helper
    64 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads
ptxas info    : Function properties for saxpy
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 90 registers, used 1 barriers, 2048+16 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Used 16 registers, 356 bytes cmem[0]
"""


@pytest.fixture
def ptxas(install: Install) -> Path:
    folder = install("ptxas", PTXAS)
    (folder / "said").write_text(SAID)
    return folder


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else 0


def test_reading_of_the_report() -> None:
    assert read_report(SAID) == {"saxpy": Resources(90, 2064, 8, 4, 12), "other": Resources(16, 0, 0, 0, 0)}


def test_a_sample_is_the_same_with_and_without_ptxas(ptxas: Path) -> None:
    ppt_gpu.predict("saxpy", "a100")
    assert calls(ptxas) == 0


def test_asked_for_it_runs_once_and_is_named(ptxas: Path) -> None:
    for _ in range(2):
        launch = ppt_gpu.predict(ppt_gpu.open_workload("saxpy", registers="ptxas"), "a100").main
        assert (launch.value("kernel.registers"), launch.value("kernel.shared")) == (90, 2064)
        assert launch.extra["register_source"] == "ptxas 12.3 -arch sm_80"
        assert any("spills 4 B of stores and 12 B of loads" in text for text in launch.assumptions)
    assert calls(ptxas) == 1


def test_a_number_wins_unless_ptxas_is_asked(ptxas: Path) -> None:
    args = ["i32=4", "f32=2", "f32[4]", "f32[4]"]
    workload = ppt_gpu.open_workload(SAMPLE, grid="1", block="32", args=args, registers="17")
    assert ppt_gpu.predict(workload, "a100").main.value("kernel.registers") == 17
    workload = ppt_gpu.open_workload(SAMPLE, grid="1", block="32", args=args, registers="estimate")
    assert ppt_gpu.predict(workload, "a100").main.extra["registers_estimated"]
    assert calls(ptxas) == 0


def test_a_cuda_file_takes_registers_from_ptxas_by_itself(ptxas: Path, install: Install, tmp_path: Path) -> None:
    shutil.copy(SAMPLE, install("nvcc", NVCC) / "made.ptx")
    (tmp_path / "kernel.cu").write_text("")
    options = {"grid": "1", "block": "32", "args": ["i32=4", "f32=2", "f32[4]", "f32[4]"]}
    launch = ppt_gpu.predict(ppt_gpu.open_workload(tmp_path / "kernel.cu", **options), "a100").main
    assert launch.value("kernel.registers") == 90
    workload = ppt_gpu.open_workload(tmp_path / "kernel.cu", **options, registers="estimate")
    assert ppt_gpu.predict(workload, "a100").main.extra["registers_estimated"]


def test_refused_ptx_is_an_error_only_when_asked(ptxas: Path, install: Install, tmp_path: Path) -> None:
    (ptxas / "code").write_text("1")
    (ptxas / "said").write_text("ptxas kernel.ptx, line 4; fatal   : Unsupported .version 99.0\n")
    with pytest.raises(PptError, match="refuses this PTX") as caught:
        ppt_gpu.predict(ppt_gpu.open_workload("saxpy", registers="ptxas"), "a100")
    assert "Unsupported .version" in str(caught.value)
    shutil.copy(SAMPLE, install("nvcc", NVCC) / "made.ptx")
    (tmp_path / "kernel.cu").write_text("")
    args = ["i32=4", "f32=2", "f32[4]", "f32[4]"]
    workload = ppt_gpu.open_workload(tmp_path / "kernel.cu", grid="1", block="32", args=args)
    launch = ppt_gpu.predict(workload, "a100").main
    assert launch.extra["registers_estimated"]
    assert any("refuses this PTX" in text for text in launch.assumptions)


def test_without_ptxas_the_error_says_what_to_install(no_compilers: None) -> None:
    with pytest.raises(PptError, match="no ptxas") as caught:
        ppt_gpu.predict(ppt_gpu.open_workload("saxpy", registers="ptxas"), "a100")
    assert "pip install" in str(caught.value)


@pytest.mark.parametrize(
    "target, capability, arch",
    [("70", (3, 5), "70"), ("70", (8, 6), "80"), ("90", (8, 0), "90"), ("90a", (9, 0), "90a"), ("80", (8, 0), "80")],
)
def test_architecture(ptxas: Path, target: str, capability: tuple[int, int], arch: str, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(f".version 8.0\n.target sm_{target}\n.address_size 64\n.entry k() {{ ret; }}\n")
    (tool,) = find_ptxas()
    assert ptxas_arch(tool, load_module(path), capability) == arch


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((7, 0), "80"), ((6, 0), "80"), ((3, 5), "80"), ((7, 5), "75"), ((8, 7), "86"), ((8, 9), "89"), ((12, 1), "120")],
)
def test_registers_come_from_an_architecture_with_as_many_threads(capability: tuple[int, int], arch: str) -> None:
    """Of ptxas 13.0, whose oldest is sm_75: an SM of half as many threads, so twice the registers for each."""
    assert choose_for_registers(capability, ["75", "80", "86", "89", "90", "90a", "120"]) == arch


def test_registers_of_a_ptxas_that_knows_none_like_it() -> None:
    assert choose_for_registers((8, 6), ["70", "75", "80"]) == "80"
    assert choose_for_registers((7, 0), ["75"]) == "75"


@pytest.mark.parametrize("words", ["0", "-3", "1.5", "ptxsa"])
def test_bad_registers(words: str) -> None:
    with pytest.raises(PptError, match="expected a positive number, ptxas or estimate"):
        ppt_gpu.open_workload("saxpy", registers=words)


def test_the_real_ptxas_says_what_its_own_listing_says() -> None:
    tools = find_ptxas()
    if not tools:
        pytest.skip("needs ptxas on PATH")
    tool = tools[0]
    module = load_module(data_dir("tasklists") / "sgemm.ptx")
    found = resources(tool, module, ptxas_arch(tool, module, (8, 0)))["sgemm"]
    assert found.shared == 2048
    assert 24 <= found.registers <= 64
