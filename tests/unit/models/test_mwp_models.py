"""Hong and Kim's model, GPUPerf and the M-core on kernels: consistency, degenerate kernels, printed equations."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from model_kernels import sample_inputs

from ppt_gpu.cli import main
from ppt_gpu.models.base.floors import dram_floor, issue_floor
from ppt_gpu.models.base.model import Estimate, Model, Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.models.gpuperf.counts import gpuperf_inputs
from ppt_gpu.models.gpuperf.gpuperf import gpuperf
from ppt_gpu.models.gpuperf.model import GpuPerfModel
from ppt_gpu.models.hong_kim.counts import hong_kim_inputs
from ppt_gpu.models.hong_kim.hong_kim import hong_kim
from ppt_gpu.models.hong_kim.model import HongKimModel
from ppt_gpu.models.mcore.model import MCoreModel, m_core_hardware, transactions_per_warp
from ppt_gpu.spec import load_gpu

MODELS: tuple[Model, ...] = (HongKimModel(), GpuPerfModel(), MCoreModel())

KERNEL = """
.version 6.0
.target sm_30
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .reg .pred %p<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<16>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    BODY
    ret;
}
"""


def kernel(
    tmp_path: Path, body: str, *, gpu: str = "fx5600", block: int = 128, grid: int = 32, text: str = KERNEL
) -> ModelInputs:
    (tmp_path / "k.ptx").write_text(text.replace("BODY", body))
    (tmp_path / "k.toml").write_text(
        f'ptx = "k.ptx"\ngrid = [{grid}]\nblock = [{block}]\nregisters = 16\narguments = ["data", "i32=0"]\n'
        '[buffers]\ndata = "f32[65536]"\n'
    )
    return sample_inputs(str(tmp_path / "k.toml"), gpu)


FMA = "fma.rn.f32 %f{0}, %f{0}, %f{0}, %f{0};"
LOAD = "ld.global.f32 %f1, [%rd3]; add.f32 %f2, %f1, %f1;"
DIVERGING = """
    and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A; fma.rn.f32 %f1, %f1, %f1, %f1;
A:  and.b32 %r3, %r2, 2; setp.eq.u32 %p2, %r3, 0; @%p2 bra B; ld.global.f32 %f3, [%rd3]; add.f32 %f1, %f3, %f1;
B:  and.b32 %r3, %r2, 4; setp.eq.u32 %p3, %r3, 0; @%p3 bra C; st.global.f32 [%rd3], %f1;
C:  and.b32 %r3, %r2, 8; setp.eq.u32 %p4, %r3, 0; @%p4 bra D; sin.approx.f32 %f1, %f1;
D:
"""
ZERO_TRIPS = """
    mov.u32 %r3, 0;
    bra test;
loop: ld.global.f32 %f1, [%rd3]; add.u32 %r3, %r3, 1;
test: setp.lt.u32 %p1, %r3, %r1; @%p1 bra loop;
"""
EMPTY = ".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry k(.param .u64 d, .param .u32 n)\n{\n ret;\n}\n"
DEGENERATE = {
    "no memory": {"body": FMA.format(1) * 10},
    "no computation": {"body": "ld.global.f32 %f1, [%rd3];"},
    "only a return": {"body": "", "text": EMPTY},
    "one warp": {"body": LOAD, "block": 32, "grid": 1},
    "one thread": {"body": LOAD, "block": 1, "grid": 1},
    "zero trips": {"body": ZERO_TRIPS},
    "divergence in every branch": {"body": DIVERGING},
    "only stores": {"body": "st.global.f32 [%rd3], %f1;" * 4},
    "no lane active": {"body": "setp.lt.u32 %p1, %r2, %r1; @%p1 ld.global.f32 %f1, [%rd3];"},
    "barriers only": {"body": "bar.sync 0; bar.sync 0;"},
}


@pytest.mark.parametrize("gpu", ["fx5600", "gtx280", "k40"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_kernels_get_a_finite_number(tmp_path: Path, name: str, gpu: str) -> None:
    inputs = kernel(tmp_path, gpu=gpu, **DEGENERATE[name])  # type: ignore[arg-type]
    for model in MODELS:
        for literal in (False, True):
            found = model.analyze(inputs, Options(literal=literal))
            assert found.applies and math.isfinite(found.cycles) and found.cycles > 0, model.name
            assert found.limiter and "nan" not in "".join(model.report(found)).lower()
            if found.stack:
                assert sum(share for _, share in found.stack) == pytest.approx(found.cpi)


@pytest.fixture(scope="module")
def vecadd() -> ModelInputs:
    return sample_inputs("vecadd", "fx5600")


@pytest.fixture(scope="module")
def transposed() -> ModelInputs:
    return sample_inputs("transpose_naive", "gtx280")


def test_one_warp_takes_its_memory_and_its_computation(tmp_path: Path) -> None:
    """SPEC 14 f."""
    given, _ = hong_kim_inputs(kernel(tmp_path, LOAD * 5, block=32, grid=1))
    found = hong_kim(given)
    assert given.ind_mem_req == 0
    assert found["N"] == found["#Rep"] == 1 and found.case == "eq22"
    assert found.cycles == pytest.approx(found["Mem_cycles"] + found["Comp_cycles"])


def test_computation_alone_takes_its_issue_cycles(tmp_path: Path) -> None:
    """SPEC 14 b: W warps of I instructions take W x I x 4 cycles where 8 lanes execute them."""
    inputs = kernel(tmp_path, "".join(FMA.format(1 + k % 8) for k in range(400)), block=256, grid=16 * 3)
    instructions = inputs.trace.pc_executed.sum() / inputs.trace.warps  # type: ignore[union-attr]
    found = HongKimModel().analyze(inputs)
    multiplied = found.value("Comp_cycles") / found.value("#total_insts")
    assert multiplied == pytest.approx(4 * found.value("M_Factor"))
    assert found.cycles == pytest.approx(24 * instructions * multiplied)
    for model in (GpuPerfModel(), MCoreModel()):
        assert model.analyze(inputs).cycles == pytest.approx(24 * inputs.warp_instructions * 4)


MONOTONE = {
    "mem_bandwidth": (1.0, 1000.0, -1),
    "mem_ld": (50.0, 5000.0, 1),
    "dep_uncoal": (1.0, 200.0, 1),
}


@pytest.mark.parametrize("uncoalesced", [0.0, 3.0])
def test_hong_kim_is_monotone(vecadd: ModelInputs, uncoalesced: float) -> None:
    """SPEC 14 d: more bandwidth is never slower, more latency or delay never faster, within a case of the model."""
    given, _ = hong_kim_inputs(vecadd)
    given = replace(given, uncoal_mem_insts=uncoalesced, coal_mem_insts=3 - uncoalesced, uncoal_per_mw=32)
    for name, (low, high, sign) in MONOTONE.items():
        values = [low * (high / low) ** (step / 30) for step in range(31)]
        found = [hong_kim(replace(given, **{name: value})) for value in values]
        for before, after in pairwise(found):
            if before.case == after.case:
                assert sign * (after.cycles - before.cycles) >= -1e-9 * before.cycles, name


def test_gpuperf_is_monotone(vecadd: ModelInputs, transposed: ModelInputs) -> None:
    for inputs in (vecadd, transposed):
        given, _ = gpuperf_inputs(inputs)
        for name, (low, high, sign) in {"mem_bw": (1.0, 1000.0, -1), "hit_lat": (0.0, 500.0, 1)}.items():
            values = [low + (high - low) * step / 30 for step in range(31)]
            found = [gpuperf(replace(given, **{name: value})).cycles for value in values]
            assert all(sign * (b - a) >= -1e-9 * a for a, b in pairwise(found)), name


def test_no_estimate_is_below_its_floors(vecadd: ModelInputs, transposed: ModelInputs) -> None:
    """SPEC 14 e."""
    for inputs in (vecadd, transposed):
        least = max(issue_floor(inputs), dram_floor(inputs))
        assert dram_floor(inputs) > 0
        for model in MODELS:
            assert model.analyze(inputs).cycles >= least


def test_an_estimate_below_its_floor_is_raised_and_says_so(vecadd: ModelInputs) -> None:
    slow = replace(vecadd, gpu=replace(vecadd.gpu, dram=replace(vecadd.gpu.dram, bandwidth=1e9)))
    fast = replace(vecadd, sm_blocks=vecadd.sm_blocks * 1000)  # of an SM that has more to do than its grid gives it
    for inputs in (slow, fast):
        least = max(issue_floor(inputs), dram_floor(inputs))
        for model in MODELS:
            found, literal = model.analyze(inputs), model.analyze(inputs, Options(literal=True))
            assert found.cycles >= least
            assert any(note.startswith("raised from") for note in found.notes) == (literal.cycles < least)
            if found.stack:
                assert sum(share for _, share in found.stack) == pytest.approx(found.cpi)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_printed_numbers_evaluate_to_the_results(model: Model, vecadd: ModelInputs, transposed: ModelInputs) -> None:
    for inputs in (vecadd, transposed):
        found = model.analyze(inputs)
        numbered = [step.number for step in found.steps if step.number]
        assert len(numbered) > 15
        for step in found.steps:
            if step.numbers:
                assert evaluated(step.numbers) == pytest.approx(step.value, rel=2e-4, abs=1e-5 * found.cycles), (
                    step.line()
                )


def evaluated(numbers: str) -> float:
    text = numbers.replace(" x ", " * ")
    assert re.fullmatch(r"[\d.e+\-*/(), <=minaxceilfs]*", text), text
    return float(eval(text, {"__builtins__": {}}, {"min": min, "max": max, "ceil": math.ceil}))


def test_coalescing_decides_the_case(vecadd: ModelInputs, transposed: ModelInputs) -> None:
    coalesced, _ = hong_kim_inputs(vecadd)
    assert (coalesced.coal_mem_insts, coalesced.uncoal_mem_insts, coalesced.uncoal_per_mw) == (3, 0, 1)
    mixed, notes = hong_kim_inputs(transposed)
    assert (mixed.coal_mem_insts, mixed.uncoal_mem_insts, mixed.uncoal_per_mw) == (4, 4, 32)
    assert any("8 memory instructions by their address" in note for note in notes)
    literal, _ = hong_kim_inputs(transposed, literal=True)
    assert literal.uncoal_per_mw == 2 * (1 + 2048 * 16 * 4 / 128)  # and one for rows that start anywhere


def test_addresses_that_are_not_affine_are_counted_in_the_trace(tmp_path: Path) -> None:
    """A permutation of the words of a half warp: not in order for 1.0, one segment for 1.3."""
    body = "xor.b32 %r3, %r2, 5; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];"
    early, notes = hong_kim_inputs(kernel(tmp_path, body, gpu="fx5600"))
    assert (early.uncoal_mem_insts, early.uncoal_per_mw) == (1, 32)
    assert any("0 memory instructions by their address, 1 counted" in note for note in notes)
    later, _ = hong_kim_inputs(kernel(tmp_path, body, gpu="gtx280"))
    assert (later.coal_mem_insts, later.uncoal_mem_insts) == (1, 0)


@pytest.mark.parametrize("gpu", ["fx5600", "gtx280", "k40"])
@pytest.mark.parametrize("width", ["b32", "b64", "v2.b64"])
@pytest.mark.parametrize("stride", [1, 2, 32])
def test_addresses_and_the_trace_say_the_same(tmp_path: Path, gpu: str, width: str, stride: int) -> None:
    """Lanes in a row, or some elements apart: once affine, once hidden behind a sum with a loaded 0."""
    size = {"b32": 4, "b64": 8, "v2.b64": 16}[width]
    target = {"b32": "%f1", "b64": "%rd6", "v2.b64": "{%rd6, %rd7}"}[width].replace("%f1", "%r9")
    body = f"mul.wide.u32 %rd4, %r2, {size * stride}; add.s64 %rd5, %rd1, %rd4; ld.global.{width} {target}, [%rd5];"
    hidden = f"ld.shared.b32 %r8, [zero]; add.u32 %r2, %r2, %r8; {body}"
    text = KERNEL.replace("ld.param.u64 %rd1", ".shared .b32 zero[1]; ld.param.u64 %rd1")
    found = [hong_kim_inputs(kernel(tmp_path, each, gpu=gpu, text=text)) for each in (body, hidden)]
    assert ["1 memory instructions by their address" in "".join(notes) for _, notes in found] == [True, False]
    (affine, _), (counted, _) = found
    assert (counted.coal_mem_insts, counted.uncoal_mem_insts) == (affine.coal_mem_insts, affine.uncoal_mem_insts)
    assert counted.uncoal_per_mw == pytest.approx(affine.uncoal_per_mw)


PATTERNS = {
    "in order": ("mov.u32 %r3, %r2;", (2, 2, 1)),
    "permuted": ("xor.b32 %r3, %r2, 5;", (32, 2, 1)),
    "every other word": ("shl.b32 %r3, %r2, 1;", (32, 2, 2)),
    "one word each 128 B": ("shl.b32 %r3, %r2, 5;", (32, 32, 32)),
    "all one word": ("and.b32 %r3, %r2, 0;", (32, 2, 1)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_transactions_by_compute_capability(tmp_path: Path, name: str) -> None:
    """Blem's section 4.2.2: below 1.2, 1.2 and 1.3, 2.0 and later."""
    index, expected = PATTERNS[name]
    body = f"{index} mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];"
    found = [transactions_per_warp(kernel(tmp_path, body, gpu=gpu, grid=1)) for gpu in ("fx5600", "gtx280", "k40")]
    assert tuple(found) == expected


def test_compare_explains_equation_by_equation(capsys: pytest.CaptureFixture[str]) -> None:
    for name, first, last in (
        ("hong-kim", "(20) N =", "(25) CPI_with_synch ="),
        ("gpuperf", "(5) ITILP_max", "(1) T_exec ="),
    ):
        assert main(["compare", "vecadd", "--gpu", "fx5600", "--model", name, "--explain", name]) == 0
        text = capsys.readouterr().out
        assert first in text and last in text


def test_a_task_list_lacks_addresses_for_one_model_only(vecadd: ModelInputs) -> None:
    bare = replace(vecadd, kernel=None, trace=None)
    found: dict[str, Estimate] = {model.name: model.analyze(bare) for model in MODELS}
    assert "task list" in found["hong-kim"].reason
    assert found["gpuperf"].cycles == GpuPerfModel().analyze(vecadd).cycles
    assert any("avg_trans_warp: as simulated" in note for note in found["m-core"].notes)
    with pytest.raises(DoesNotApply):
        hong_kim_inputs(bare)


def test_m_core_hardware_of_wide_and_narrow_sms() -> None:
    narrow, wide = m_core_hardware(load_gpu("fx5600", ())), m_core_hardware(load_gpu("k40", ()))
    assert (narrow.W, narrow.SP, narrow.SFU) == (1, 8, 2)
    assert (wide.W, wide.SP) == (6, 32)
