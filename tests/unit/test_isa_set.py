"""validate isa and check-isa: the same comparison from committed counts and from the tools."""

import json
from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.frontends import disassemble
from ppt_gpu.frontends.disassemble import disassembler
from ppt_gpu.frontends.tools import find
from ppt_gpu.inputs import open_module
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.isa import expansions as isa
from ppt_gpu.validate.isa.counts import files, read_counts, text_digest
from ppt_gpu.validate.isa.expansions import check_module, comparisons, expanded, kind

TOOLS = bool(find("ptxas") and find("nvdisasm"))


def test_the_counts_are_those_of_the_shipped_files() -> None:
    digests = {str(path): text_digest(path.read_bytes()) for _, path in files()}
    seen = set()
    for row in read_counts():
        top, _, rest = row.file.partition("/")
        path = data_dir(top) / rest
        assert digests[str(path)] == row.sha256, f"{row.file}: make the counts again"
        seen.add(str(path))
    assert len(digests) - len(seen) <= 1  # triton_matmul_hopper: ptxas 13.0 refuses it everywhere


@pytest.mark.slow
def test_every_sample_is_compared() -> None:
    found = comparisons(["tasklists/"])
    assert len(found) == sum(row.group == "samples" for row in read_counts())
    assert {each.arch for each in found} == {"75", "80", "90", "100", "120"}
    for each in found:
        assert each.ours.total() > 0
        assert each.theirs.total() > 0


def test_the_set_prints_errors_and_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "isa", "--case", "saxpy"]) == 0
    out = capsys.readouterr().out
    assert "sm_90" in out
    assert "mean |e|" in out
    assert "load.global" in out
    assert main(["validate", "isa", "--case", "saxpy", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    row = next(each for each in document["rows"] if each["kernel"] == "saxpy:saxpy" and each["arch"] == "sm_80")
    assert row["operations"]["machine"]["load.global"] == 2
    assert sum(row["pipes"]["machine"].values()) == row["instructions"]["machine"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("tensor.mma.f16.m16n8k16", "tensor"), ("int32.setp.alu", "int32.setp"), ("load.global.v4", "load.global")],
)
def test_kinds(name: str, expected: str) -> None:
    assert kind(name) == expected


def test_a_changed_file_is_not_compared_with_old_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "text_digest", lambda _text: "0" * 16)
    isa._module.cache_clear()
    with pytest.raises(PptError, match="not the one whose machine code was counted"):
        comparisons(["saxpy"])
    isa._module.cache_clear()


def test_missing_tools_are_named_with_where_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassemble, "find", lambda name: [])
    monkeypatch.setattr(disassemble, "find_ptxas", list)
    with pytest.raises(PptError, match="no ptxas and no nvdisasm on this machine") as caught:
        disassembler("80")
    assert "nvidia-cuda-nvdisasm" in (caught.value.hint or "")


@pytest.mark.skipif(not find("ptxas"), reason="needs ptxas")
def test_a_gpu_that_ptxas_does_not_know_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassemble, "find", lambda name: find("ptxas"))
    with pytest.raises(PptError, match="does not make code for sm_10") as caught:
        disassembler("10")
    assert "sm_80" in (caught.value.hint or "")


@pytest.mark.skipif(not TOOLS, reason="needs ptxas and nvdisasm")
def test_check_isa_agrees_with_the_committed_counts(capsys: pytest.CaptureFixture[str]) -> None:
    module = open_module("saxpy", (8, 0))
    (fresh,) = check_module(module, load_gpu("a100"))
    kept = next(each for each in comparisons(["saxpy.ptx saxpy sm_80"]))
    if fresh.tools == kept.tools:
        assert fresh.theirs == kept.theirs
    assert fresh.ours == kept.ours
    assert main(["check-isa", "saxpy", "--gpu", "a100", "--only", "saxpy"]) == 0
    assert "pipe, operation" in capsys.readouterr().out


def test_check_isa_of_a_task_list_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-isa", str(data_dir("tasklists") / "fig5.tl"), "--gpu", "a100"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_each_block_is_expanded_once_unless_loops_are_unrolled() -> None:
    """sgemm of the samples: its 16 shared loads of each matrix stand once, or four times and the rest of a division."""
    module = open_module("sgemm", (8, 0))
    kernel = link(module.kernels["sgemm"], module)
    isa_ = load_gpu("a100").isa
    once, unrolled = expanded(kernel, isa_), expanded(kernel, isa_, unroll=True)
    assert once["fp32.fma"] == 16
    assert once["barrier"] == 2
    assert once["store.global"] == unrolled["store.global"] == 1
    assert unrolled["fp32.fma"] > 2 * once["fp32.fma"]
    assert once["load.shared"] <= 32


def test_an_isa_that_runs_ptx_as_it_is_has_its_instructions() -> None:
    module = open_module("saxpy", (7, 0))
    kernel = link(module.kernels["saxpy"], module)
    plain = load_gpu("gpgpusim_qv100").isa
    assert expanded(kernel, plain).total() == len(kernel.instructions)
