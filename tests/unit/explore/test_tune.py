"""tune: the fastest form that computes the same; forms with other results, spills or faults are not chosen."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.explore import candidates
from ppt_gpu.explore.candidates import OCCUPANCY_ONLY, Candidate, block_values, candidate, register_values
from ppt_gpu.explore.case import Measured, Options
from ppt_gpu.explore.same_results import OTHER, ROUNDED, SAME, UNKNOWN, Results, compared
from ppt_gpu.explore.sweep import Run
from ppt_gpu.explore.tune import Form, Wanted, _chosen, tune
from ppt_gpu.frontends import registers
from ppt_gpu.frontends.ptxas import Resources
from ppt_gpu.frontends.tools import find
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Launch, Workload

ROOT = Path(__file__).parents[3]
K40 = load_gpu("k40")
SGEMM = ppt_gpu.open_workload("sgemm")
SMALL = ppt_gpu.open_workload(
    ROOT / "tasklists" / "vecadd.ptx",
    grid="64",
    block="128",
    registers=12,
    args=["f32[8192]=random"] * 3 + ["i32=8192"],
)
TEXT = (ROOT / "tasklists" / "vecadd.ptx").read_text()
needs_ptxas = pytest.mark.skipif(not find("ptxas"), reason="ptxas is missing")


def times(found: object) -> dict[str, float]:
    return {
        (form.candidate.variant or form.candidate.values.get("block", "given")): form.time
        for form in found.forms  # type: ignore[attr-defined]
        if not form.found.error
    }


def test_the_best_is_the_fastest_prediction() -> None:
    found = tune(SMALL, "k40", (), Wanted(["block=32,64,256"]), Run())
    expected = {block: ppt_gpu.predict(_vecadd(block), "k40").time for block in ("32", "64", "256")}
    measured = times(found)
    assert {block: measured[block] for block in expected} == expected
    best = min(measured.values())
    assert found.best.time <= best * 1.005 and found.gain == found.base.time / found.best.time
    assert [form.time for form in found.forms] == sorted(form.time for form in found.forms)


def _vecadd(block: str) -> Workload:
    grid = str(8192 // int(block))
    return ppt_gpu.open_workload(
        SMALL.ptx_path, grid=grid, block=block, registers=12, args=["f32[8192]=random"] * 3 + ["i32=8192"]
    )


def test_a_faster_form_with_other_results_is_not_chosen(tmp_path: Path) -> None:
    (tmp_path / "idle.ptx").write_text(TEXT.replace("ld.param", "ret; ld.param", 1))
    found = tune(SMALL, "k40", (), Wanted(variants=[str(tmp_path / "idle.ptx")]), Run())
    idle = next(form for form in found.forms if form.candidate.variant == "idle.ptx")
    assert idle.time < found.base.time
    assert idle.verdict is not None and idle.verdict.kind == OTHER and "buffer 'arg2' differs" in idle.verdict.text
    assert found.best.candidate is found.base.candidate and found.gain == 1.0


def test_an_equal_kernel_of_another_file_is_compared(tmp_path: Path) -> None:
    (tmp_path / "a b.ptx").write_text(TEXT.replace("vecadd", "sum"))
    found = tune(SMALL, "k40", (), Wanted(["block=64"], variants=[str(tmp_path / "a b.ptx")]), Run())
    measured = [form.time for form in found.forms if form.candidate.values.get("block") == "64"]
    assert len(measured) == 2 and measured[0] == pytest.approx(measured[1], rel=0.02)


def test_faults_of_forms_are_told() -> None:
    found = tune(SGEMM, "k40", (), Wanted(["block=16x16,8x8,64x64"]), Run(Options(level="workload")))
    errors = {form.candidate.values["block"]: form.found.error for form in found.forms if form.found.error}
    assert "out of bounds" in errors["8x8"] and "too large" in errors["64x64"]


def test_verdicts() -> None:
    assert Results(SMALL, (3, 5)).against(_vecadd("32")).kind == SAME
    fewer = ppt_gpu.open_workload(SMALL.ptx_path, grid="64", block="128", args=["f32[8192]=random"] * 3 + ["i32=8191"])
    assert Results(SMALL, (3, 5)).against(fewer).kind == OTHER
    assert Results(SMALL, (3, 5)).against(SGEMM).kind == UNKNOWN
    whole = {name: np.linspace(0, 1, 8192, dtype=np.float32).view(np.uint8) for name in ("arg0", "arg1", "arg2")}
    near = {name: (data.view(np.float32) * np.float32(1 + 1e-6)).view(np.uint8) for name, data in whole.items()}
    far = {**near, "arg1": (whole["arg1"].view(np.float32) + np.float32(0.01)).view(np.uint8)}
    broken = {**near, "arg1": np.full(8192, np.nan, np.float32).view(np.uint8)}
    assert [compared(SMALL, whole, other).kind for other in (whole, near, far, broken)] == [SAME, ROUNDED, OTHER, OTHER]


def test_what_is_too_long_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ppt_gpu.explore.same_results.LONGEST", 10)
    verdict = Results(SMALL, (3, 5)).against(_vecadd("32"))
    assert (verdict.kind, verdict.text) == (UNKNOWN, "more than 10 warp instructions") and verdict.good


def test_registers_without_ptxas_are_occupancy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "find_ptxas", lambda: [])
    made = candidate("", SGEMM, {"registers": "32"}, K40)
    assert (made.note, made.workload.launches[0].registers, made.spills) == (OCCUPANCY_ONLY, 32, 0)


@needs_ptxas
def test_registers_are_a_limit_for_ptxas() -> None:
    made = candidate("", SGEMM, {"registers": "40"}, K40)
    assert 30 < (made.workload.launches[0].registers or 0) <= 40 and made.note.startswith("ptxas: ")


def test_spills_are_seen_and_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def spilling(launch: Launch, module: object, capability: object, most: int) -> tuple[Launch, Resources]:
        return replace(launch, registers=most), Resources(most, 0, 64, 40, 24)

    monkeypatch.setattr(candidates, "with_at_most", spilling)
    spilled = candidate("", SMALL, {"registers": "10"}, K40)
    assert (spilled.spills, spilled.note) == (64, "ptxas: 10 registers, 64 B a thread spilled, not simulated")
    given, same = Candidate("", {}, SMALL), Candidate("same.ptx", {}, SMALL)
    forms = [Form(one, Measured((time, 1.0, 12, ""))) for one, time in ((given, 3e-6), (spilled, 1e-6), (same, 2e-6))]
    found = _chosen("vecadd", "k40", forms, Results(SMALL, (3, 5)))
    assert [form.candidate for form in found.forms] == [spilled, same, given]
    assert found.best.candidate is same and found.gain == 1.5
    assert _chosen("vecadd", "k40", forms[:2], Results(SMALL, (3, 5))).best is forms[0]


def test_what_is_tried_without_being_told() -> None:
    assert block_values(SMALL.launches[0], K40) == ["32", "64", "128", "256", "512", "1024"]
    blocks = block_values(SGEMM.launches[0], K40)
    assert "16x16" in blocks and "32x8" in blocks and "64x32" not in blocks and "8x4" not in blocks
    assert register_values(SGEMM, K40) == ["48", "40", "32"]  # 5, 6 and 8 blocks of 256 threads


def test_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = 'base = "k40"\n[sm]\nmax_warps = 20\nmax_threads_per_block = 512\n'  # two of the given blocks, ten of 64
    (tmp_path / "few.toml").write_text(few)
    arguments = ["tune", "vecadd", "--gpu", "few.toml", "--set", "block=32,64,2048"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("vecadd on few.toml: block 64: 1.") and "same results" in lines[2]
    assert any(line.startswith("cannot run: block 2048: block.x is 2048") for line in lines)
    assert max(map(len, lines)) <= 120
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["best"] == "block 64" and len(document["forms"]) == 4
    given = next(form for form in document["forms"] if form["name"] == "as given")
    best = next(form for form in document["forms"] if form["name"] == "block 64")
    assert document["gain"] == given["time_s"] / best["time_s"] > 1.2


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(["sm.count=8"]), "tune changes the kernel, not the GPU"),
        (Wanted(variants=["missing.ptx"]), "missing.ptx: no such file"),
        (Wanted(["blok=32"]), "unknown key 'blok'"),
    ],
)
def test_refused(wanted: Wanted, message: str) -> None:
    with pytest.raises(PptError, match=message):
        tune(SMALL, "k40", (), wanted, Run())
