"""Advice: each line is a simulation; accesses that are made ideal ask for what ideal ones do, and others stay."""

import json
from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.emulator.cache.traces import Traces
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.explore import advice
from ppt_gpu.explore.case import Options
from ppt_gpu.explore.other_accesses import GLOBAL, SHARED, IdealLaunch, access_pcs, idealised, spreads
from ppt_gpu.pipeline import workload_traces
from ppt_gpu.report.result.result import Result, Suggestion
from ppt_gpu.report.text.text import render
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.workload import Workload

ROOT = Path(__file__).parents[3]
K40 = load_gpu("k40")


def transpose(name: str) -> Workload:
    return ppt_gpu.open_workload(
        ROOT / "tasklists" / f"{name}.ptx", grid="16,16", block="32,8", args=["f32[262144]", "f32[262144]", "i32=512"]
    )


NAIVE = transpose("transpose_naive")
CONFLICTS = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<6>; .reg .b64 %d<5>; .reg .f32 %f<3>; .reg .b64 %s<3>;
  .shared .align 8 .b8 tile[8192];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 7; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;
  mov.f32 %f1, 0f3F800000;
  st.shared.f32 [%r4], %f1;
  shl.b32 %r5, %r1, 3; add.u32 %r5, %r3, %r5;
  ld.shared.b64 %s1, [%r5];
  ld.shared.f32 %f2, [%r3];
  ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; st.global.f32 [%d3], %f2;
  ret;
}
"""


def traces_of(workload: Workload) -> Traces:
    return workload_traces(workload, K40, {}, Budget(), (), True, None)[0]  # type: ignore[return-value]


def test_what_accesses_ask_for(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(CONFLICTS)
    workload = ppt_gpu.open_workload(tmp_path / "k.ptx", grid="2", block="64", args=["f32[64]"])
    one = traces_of(workload).launch(0)
    found = {(each.line, each.space): each for each in spreads(one.kernel, one.run([0, 1]))}
    lines = {line.strip(): number for number, line in enumerate(CONFLICTS.splitlines(), 1)}
    column = found[lines["st.shared.f32 [%r4], %f1;"], SHARED]
    assert (column.accesses, column.each) == (4, (32.0, 1.0))
    assert found[lines["ld.shared.b64 %s1, [%r5];"], SHARED].each == (2.0, 2.0)  # two halves of a warp
    assert found[lines["ld.shared.f32 %f2, [%r3];"], SHARED].each == (1.0, 1.0)  # one word for all
    store = next(each for each in found.values() if each.space == GLOBAL)
    assert (store.accesses, store.each) == (4, (4.0, 4.0))
    ideal = idealised(one.kernel, one.run([0, 1]), [column.pc], 2)
    again = {(each.line, each.space): each for each in spreads(one.kernel, ideal)}
    assert again[column.line, SHARED].each == (1.0, 1.0)


def test_ideal_accesses_lie_side_by_side_and_others_stay() -> None:
    one = traces_of(NAIVE).launch(0)
    blocks = [0, 7, 255]
    trace = one.run(blocks)
    (wide, *rest) = [each for each in spreads(one.kernel, trace) if each.asked > each.ideal]
    assert wide.each == (32.0, 4.0) and wide.space == GLOBAL and len(rest) == 3
    ideal = idealised(one.kernel, trace, [wide.pc], 256)
    assert {each.pc: each.each for each in spreads(one.kernel, ideal)}[wide.pc] == (4.0, 4.0)
    chosen = access_pcs(one.kernel, trace) == wide.pc
    others = ~chosen
    assert np.array_equal(trace.access_base[others], ideal.access_base[others])
    assert np.array_equal(trace.access_pattern[others], ideal.access_pattern[others])
    assert len(set(ideal.access_base[chosen])) == chosen.sum(), "each warp has places of its own"
    target = next(each for each in trace.ranges if each.start <= trace.access_base[chosen][0] < each.start + each.bytes)
    last = ideal.access_base[chosen] + np.uint64(128)
    assert ideal.access_base[chosen].min() >= target.start and last.max() <= target.start + target.bytes
    launch = IdealLaunch(traces_of(NAIVE), 0, [wide.pc])
    touched, expected = launch.touched(blocks), global_accesses(one.kernel, ideal)
    assert np.array_equal(touched.base, expected.base)
    assert np.array_equal(launch.features(blocks).warp_instructions, one.features(blocks).warp_instructions)


def test_nothing_ideal_is_the_prediction_itself() -> None:
    result = ppt_gpu.predict(NAIVE, "k40")
    advisor = advice._Advisor(NAIVE, "k40", (), Options())
    assert advisor._ideal([]) == result.main.value("kernel.time")


def test_nothing_ideal_is_as_near_as_the_prediction() -> None:
    sgemm = ppt_gpu.open_workload("sgemm")
    exact, near = (ppt_gpu.predict(sgemm, "h100", approximate=how).main.value("kernel.time") for how in (False, True))
    assert exact != near  # so some of it was skipped
    assert advice._Advisor(sgemm, "h100", (), Options(approximate=True))._ideal([]) == near


def test_advice_for_a_transpose() -> None:
    """Both its columns made ideal it is as fast as the one that goes through shared memory, or faster."""
    result = ppt_gpu.predict(NAIVE, "k40")
    found = advice.advised(result, NAIVE, "k40", (), Options()).advice
    assert found
    assert found[0].text.startswith("all of these accesses, lines ") or found[0].text.startswith("coalescing line ")
    tiled = ppt_gpu.predict(transpose("transpose_tiled"), "k40").time
    assert found[0].time < tiled * 1.1 and found[0].gain > 1.5
    assert any(one.text.endswith("it asks for 32 sectors an access, side by side 4") for one in found)
    now = float(result.main.value("kernel.time"))
    for one in found:
        assert one.gain == now / one.time >= advice.LEAST
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)


def test_other_block_sizes_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks of one warp leave most of an SM empty; the sums that larger ones compute are the same."""
    small = [str(ROOT / "tasklists" / "vecadd.ptx"), "--grid", "8192", "--block", "32", "--registers", "12"]
    small += [part for _ in range(3) for part in ("--arg", "f32[262144]=random")] + ["--arg", "i32=262144"]
    assert main(["predict", *small, "--gpu", "k40", "--advise", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 1 <= len(document["advice"]) <= 2
    for one in document["advice"]:
        assert one["text"].startswith("blocks of ") and one["remark"] == "same results"
        assert one["gain"] == pytest.approx(document["time_s"] / one["time_s"], rel=1e-9) and one["gain"] >= 1.02


def test_text() -> None:
    result = ppt_gpu.predict("vecadd", "k40")
    made = Result(**{**vars(result), "advice": (Suggestion("blocks of 64 threads", 2e-4, 1.25, "same results"),)})
    lines = render(made).splitlines()
    assert "Advice, each line simulated" in lines
    assert lines[-1].split() == ["1.25x", "200", "us", "blocks", "of", "64", "threads", "(same", "results)"]
    nothing = render(Result(**{**vars(result), "advice": ()}))
    assert "nothing that was simulated helps by 2 % or more" in nothing
    assert "Advice" not in render(result)
