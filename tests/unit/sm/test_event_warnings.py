"""Where nobody can say who waits for whom, the simulation has no warp wait, and the prediction says so."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from event_kernels import BYTES, GPU, NAMED, ROUNDS, case_of, program_of, ring

from ppt_gpu.cli import main
from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.program import events_of
from ppt_gpu.workload.box import ROW, SIGNAL

STORED = ring(2, 1).replace("mbarrier.init.shared.b64 [full+0], 1;", "mov.u64 %d5, 1048577; st.shared.u64 [full], %d5;")


def kernel(body: str, shared: int = 64) -> str:
    """One warp or more, with an mbarrier's place in %r2; the body is all it does."""
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .shared .align 8 .b8 there[{shared}];
mov.u32 %r1, %tid.x; mov.u32 %r2, there; setp.eq.u32 %p1, %r1, 0;
{body}
ret; }}"""


def unheard(text: str, warps: int = 1) -> str:
    """What the program says about its arrivals and waits, behind the line; it runs to its end without them."""
    program = program_of(text, warps)[1]
    assert not events_of(program).any()
    assert simulate(program, GPU, resident_blocks=1, active_sms=1).cycles > 0
    line, _, rest = program.unheard.partition(" (")
    assert re.fullmatch(r"line \d+", line)
    return rest


def line_of(text: str, start: str) -> int:
    return 1 + next(n for n, row in enumerate(text.splitlines()) if row.startswith(start))


def test_an_mbarrier_that_plain_stores_change():
    assert unheard(STORED, 2) == (
        "mbarrier.arrive.expect_tx.shared.b64): no mbarrier.init of the block sets up the mbarrier at byte 4096 of "
        "shared memory; so the simulation has no warp wait at mbarriers and named barriers but for what it copied "
        "itself, and times may be too short"
    )


def test_a_phase_that_nobody_completes():
    """The kernel looks once and goes on; whoever looks is taken to wait."""
    text = kernel("@%p1 mbarrier.init.shared.b64 [%r2+8], 1;\nmbarrier.test_wait.parity.shared.b64 %p2, [%r2+8], 0;")
    assert unheard(text).startswith(
        "mbarrier.test_wait.parity.shared.b64): a warp would wait for ever for the mbarrier at byte 8 of shared memory;"
    )


@pytest.mark.parametrize(
    ("who", "thing"), [("%p3", "the mbarrier at byte 0 of shared memory"), ("!%p3", "barrier 3")], ids=("0", "1")
)
def test_a_named_barrier_behind_such_a_phase(who: str, thing: str):
    """One of two warps looks for the phase; what the first warp would wait for is what is said."""
    text = kernel(
        f"""@%p1 mbarrier.init.shared.b64 [%r2], 1;
bar.sync 0;
setp.ge.u32 %p3, %r1, 32; @{who} bra MEET;
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;
MEET: bar.sync 3, 64;"""
    )
    assert f": a warp would wait for ever for {thing}; so" in unheard(text, 2)


def test_a_part_of_a_warpgroup():
    text = kernel(
        """@%p1 mbarrier.init.shared.b64 [%r2], 1;
wgmma.fence.sync.aligned;
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1;"""
    )
    assert unheard(text).startswith(
        "wgmma.fence.sync.aligned): a warp would wait for ever for the other warps of its warpgroup; so"
    )


def test_a_copy_of_a_trace_that_does_not_say_whom_it_tells():
    """Traces may come from elsewhere, or have only the bytes of a copy."""
    case, _, trace = case_of(ring(2, 1), 2)
    boxes = trace.pattern_offset[:, ROW] > 0
    assert (trace.pattern_offset[boxes, SIGNAL] > 0).any()
    offset = trace.pattern_offset.copy()
    offset[boxes, SIGNAL:] = 0
    told = lower_trace(case.kernel, trace, GPU, launch=case.launch, active_sms=1)
    untold = lower_trace(case.kernel, replace(trace, pattern_offset=offset), GPU, launch=case.launch, active_sms=1)
    assert not told.unheard
    assert re.match(
        r"line \d+ \(cp\.async\.bulk\..*\): the trace does not say which mbarrier the copy tells; so", untold.unheard
    )


def test_more_objects_than_are_followed():
    text = kernel(
        """mov.u32 %r3, 0; mad.lo.u32 %r4, %r1, 8, %r2;
MORE: mbarrier.init.shared.b64 [%r4], 1;
add.u32 %r4, %r4, 256; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 129; @%p3 bra MORE;
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1;""",
        129 * 256,
    )
    assert ": the block has more than 4096 mbarriers and named barriers; so" in unheard(text)
    assert not program_of(text.replace("%r3, 129", "%r3, 128"), 1)[1].unheard


def test_more_phases_than_are_followed():
    """Each of 32 lanes completes a phase, 32 times a step."""
    text = kernel(
        """@%p1 mbarrier.init.shared.b64 [%r2], 1;
mov.u32 %r3, 0;
MORE: mbarrier.arrive.shared.b64 _, [%r2];
add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 40; @%p3 bra MORE;
mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1;"""
    )
    assert "mbarrier.arrive.shared.b64): the lanes of a warp complete phases one after another, too many" in unheard(
        text
    )
    assert not program_of(text.replace("MORE: mbarrier", "MORE: @%p1 mbarrier"), 1)[1].unheard


def predicted(tmp_path, capsys, text: str, *options: str, gpu: str = "h100") -> dict:
    file = tmp_path / "ring.ptx"
    file.write_text(text)
    data = ["--arg", f"f32[{ROUNDS * BYTES // 4}]=random", "--arg", "f32[256]"]
    size = ["--grid", "1", "--block", "64"]
    assert main(["predict", str(file), "--gpu", gpu, *size, *data, "--json", "--no-cache", *options]) == 0
    return json.loads(capsys.readouterr().out)["launches"][0]


def test_the_report_says_that_phases_do_not_come_out(tmp_path, capsys):
    assert not predicted(tmp_path, capsys, ring(2, 1))["warnings"]
    (warning,) = predicted(tmp_path, capsys, STORED)["warnings"]
    assert warning.startswith(f"line {line_of(STORED, 'mbarrier.arrive.expect_tx')} (")


def waits_for_none(launch: dict) -> bool:
    return any(note.startswith("warps wait for no mbarrier") for note in launch["assumptions"])


def test_at_level_grid_warps_wait_too(tmp_path, capsys):
    every = predicted(tmp_path, capsys, ring(2, 1), "--level", "grid")
    assert not waits_for_none(every)
    one = predicted(tmp_path, capsys, ring(2, 1))
    cycles = [next(m["value"] for m in of["metrics"] if m["tag"] == "kernel.cycles") for of in (every, one)]
    assert abs(cycles[0] - cycles[1]) < 0.05 * cycles[1]


def test_a_gpu_with_collector_units_says_that_warps_wait_for_no_mbarrier(tmp_path, capsys):
    text = NAMED.replace("EARLY", "").replace("LATE", "").replace("sm_80", "sm_70")
    assert waits_for_none(predicted(tmp_path, capsys, text, gpu="gpgpusim_qv100"))
    assert not waits_for_none(predicted(tmp_path, capsys, text, gpu="v100"))
