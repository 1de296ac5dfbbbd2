"""Warps that wait for one another in the SM: rings that bulk copies fill, copies that arrive, named barriers."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.sm.lower import lower_trace
from ppt_gpu.sm.program import EVENT_COUNTS, EVENT_WAITS, events_of
from ppt_gpu.sm.result import STALL_REASONS
from ppt_gpu.sm.simulate import simulate
from ppt_gpu.spec import load_gpu

sys.path.insert(0, str(Path(__file__).parents[1] / "exec"))
from jit_kernels import check_against_interpreter, pointer, text_case

from ppt_gpu.exec.workload import Buffer

GPU = load_gpu("h100")
ROUNDS, BYTES = 12, 2048
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


def ring(stages: int, work: int) -> str:
    """A warp copies ROUNDS tiles into a ring, another adds them up, with `work` dependent operations a tile."""
    init = "".join(
        f"mbarrier.init.shared.b64 [full+{8 * s}], 1; mbarrier.init.shared.b64 [empty+{8 * s}], 1;\n"
        for s in range(stages)
    )
    shift = stages.bit_length() - 1  # a power of two
    place = f"and.b32 %r3, %r2, {stages - 1}; shr.u32 %r4, %r2, {shift}; and.b32 %r4, %r4, 1; shl.b32 %r5, %r3, 3;"
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{{ .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .f32 %f<9>;
.shared .align 128 .b8 tiles[{stages * BYTES}]; .shared .align 8 .b8 full[{8 * stages}];
.shared .align 8 .b8 empty[{8 * stages}];
mov.u32 %r1, %tid.x; ld.param.u64 %d1, [a]; mov.u32 %r2, 0; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f3F800000;
mov.u32 %r6, full; mov.u32 %r7, empty; mov.u32 %r8, tiles; and.b32 %r9, %r1, 31;
setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
{init}READY: bar.sync 0;
setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUME;
@%p1 bra DONE;
PRODUCE: {place} add.u32 %r10, %r6, %r5; add.u32 %r11, %r7, %r5; mad.lo.u32 %r12, %r3, {BYTES}, %r8;
xor.b32 %r4, %r4, 1;
FREE: mbarrier.try_wait.parity.shared.b64 %p3, [%r11], %r4; @!%p3 bra FREE;
mbarrier.arrive.expect_tx.shared.b64 _, [%r10], {BYTES}; mad.wide.u32 %d2, %r2, {BYTES}, %d1;
{COPY} [%r12], [%d2], {BYTES}, [%r10];
add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, {ROUNDS}; @%p4 bra PRODUCE; bra DONE;
CONSUME: {place} add.u32 %r10, %r6, %r5; add.u32 %r11, %r7, %r5; mad.lo.u32 %r12, %r3, {BYTES}, %r8;
THERE: mbarrier.try_wait.parity.shared.b64 %p3, [%r10], %r4; @!%p3 bra THERE;
mad.lo.u32 %r12, %r9, 4, %r12; ld.shared.f32 %f3, [%r12]; add.f32 %f1, %f1, %f3;
{"mul.rn.f32 %f1, %f1, %f2;" * work}
setp.eq.u32 %p5, %r9, 0; @%p5 mbarrier.arrive.shared.b64 _, [%r11];
add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, {ROUNDS}; @%p4 bra CONSUME;
ld.param.u64 %d3, [out]; mad.wide.u32 %d4, %r9, 4, %d3; st.global.f32 [%d4], %f1;
DONE: ret; }}"""


def program_of(text: str, warps: int, alone: bool = True, buffers: int = ROUNDS * BYTES // 4):
    case = text_case(
        text, (1,), (32 * warps,), [pointer("a"), pointer("out")],
        [Buffer("a", "f32", buffers), Buffer("out", "f32", 256)],
        fill={"a": np.arange(buffers, dtype=np.float32)},
    )  # fmt: skip
    memory, trace = check_against_interpreter(case)
    found = lower_trace(case.kernel, trace, GPU, launch=case.launch, active_sms=1, alone=alone)
    return memory, replace(found, line_warm=np.ones_like(found.line_warm))


def run(program, **options):
    fast = simulate(program, GPU, resident_blocks=1, active_sms=1, **options)
    plain = simulate(program, GPU, resident_blocks=1, active_sms=1, reference=True)
    assert fast.cycles == plain.cycles
    assert np.array_equal(fast.op_stall, plain.op_stall)
    return fast


def test_a_deeper_ring_hides_the_copies():
    cycles = {}
    for stages in (1, 2, 4):
        memory, program = program_of(ring(stages, 1), 2)
        tiles = np.arange(ROUNDS * BYTES // 4, dtype=np.float32).reshape(ROUNDS, -1)
        assert np.array_equal(memory.view("out", np.float32)[:32], tiles[:, :32].sum(axis=0))
        result = run(program)
        cycles[stages] = result.cycles
        # the first copy is waited for as a whole; then `stages` of them are on their way at a time
        assert result.cycles > ROUNDS * GPU.l2.latency / stages
        assert result.warp_cycles[STALL_REASONS.index("long_scoreboard")] > 0
    assert cycles[1] > ROUNDS * GPU.l2.latency
    assert cycles[2] < 0.7 * cycles[1]
    assert cycles[4] < 0.8 * cycles[2]


def test_a_consumer_that_computes_long_enough_decides():
    work = 100
    cycles = {stages: run(program_of(ring(stages, work), 2)[1]).cycles for stages in (1, 2, 4)}
    least = ROUNDS * work * GPU.isa.op("fp32.mul").latency
    assert cycles[1] > least + ROUNDS * GPU.l2.latency
    assert least < cycles[2] < 1.5 * least
    assert cycles[2] < cycles[1] - ROUNDS * GPU.l2.latency
    assert abs(cycles[4] - cycles[2]) < 0.03 * cycles[2]  # a bound: more stages gain nothing


def test_waits_pass_where_phases_do_not_come_out():
    """An mbarrier that plain stores change: who waits for what cannot be told, and nobody waits for ever."""
    text = ring(2, 1).replace(
        "mbarrier.init.shared.b64 [full+0], 1;", "mov.u64 %d5, 1048577; st.shared.u64 [full], %d5;"
    )
    program = program_of(text, 2)[1]
    assert not events_of(program).any()
    assert run(program).cycles > 0


def predicted(tmp_path, capsys, text: str, *options: str) -> dict:
    file = tmp_path / "ring.ptx"
    file.write_text(text)
    data = ["--arg", f"f32[{ROUNDS * BYTES // 4}]=random", "--arg", "f32[256]"]
    size = ["--grid", "1", "--block", "64"]
    assert main(["predict", str(file), "--gpu", "h100", *size, *data, "--json", "--no-cache", *options]) == 0
    return json.loads(capsys.readouterr().out)["launches"][0]


def test_the_report_says_that_phases_do_not_come_out(tmp_path, capsys):
    text = ring(2, 1)
    assert not predicted(tmp_path, capsys, text)["warnings"]
    stored = text.replace("mbarrier.init.shared.b64 [full+0], 1;", "mov.u64 %d5, 1048577; st.shared.u64 [full], %d5;")
    (warning,) = predicted(tmp_path, capsys, stored)["warnings"]
    line = 1 + next(n for n, row in enumerate(stored.splitlines()) if row.startswith("mbarrier.arrive.expect_tx"))
    assert warning.startswith(f"line {line} (mbarrier.arrive.expect_tx.shared.b64): no mbarrier.init")
    assert "mbarrier at byte 4096 of shared memory" in warning


def test_level_grid_says_that_warps_wait_for_no_mbarrier(tmp_path, capsys):
    notes = predicted(tmp_path, capsys, ring(2, 1), "--level", "grid")["assumptions"]
    assert [note for note in notes if note.startswith("warps wait for no mbarrier")]
    notes = predicted(tmp_path, capsys, ring(2, 1))["assumptions"]
    assert not [note for note in notes if note.startswith("warps wait for no mbarrier")]


def test_all_sms_together_are_simulated_without_events():
    assert not events_of(program_of(ring(2, 1), 2, alone=False)[1]).any()


def test_what_arrives_and_what_waits():
    program = program_of(ring(2, 1), 2)[1]
    bits = events_of(program)
    assert {program.op_name[op] for op in np.flatnonzero(bits & EVENT_COUNTS)} == {"fence.mbarrier", "load.global"}
    assert {program.op_name[op] for op in np.flatnonzero(bits & EVENT_WAITS)} == {"fence.mbarrier"}
    # a full phase: the arrival and the copy; an empty one: the consumer. The producer's first waits are for nothing
    counts = np.bincount(program.event_count, minlength=3)
    assert counts[2] == ROUNDS
    assert counts[1] == ROUNDS


COPIES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<4>;
.shared .align 128 .b8 tile[512]; .shared .align 8 .b8 there[8];
mov.u32 %r1, %tid.x; ld.param.u64 %d1, [a]; mov.u32 %r2, there; mov.u32 %r3, tile; and.b32 %r5, %r1, 31;
setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r2], 32;
bar.sync 0;
setp.ge.u32 %p2, %r1, 32; @%p2 bra USE;
mad.wide.u32 %d2, %r1, 16, %d1; mad.lo.u32 %r4, %r1, 16, %r3;
cp.async.cg.shared.global [%r4], [%d2], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];
ret;
USE: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra USE;
mad.lo.u32 %r4, %r5, 4, %r3; ld.shared.f32 %f1, [%r4];
ld.param.u64 %d3, [out]; mad.wide.u32 %d4, %r5, 4, %d3; st.global.f32 [%d4], %f1;
ret; }"""


def test_copies_of_lanes_arrive_when_they_are_there():
    memory, program = program_of(COPIES, 2)
    assert np.array_equal(memory.view("out", np.float32)[:32], np.arange(32, dtype=np.float32))
    with_events = run(program)
    assert program.event_count.max() == 2  # the arrival and the copy before it
    assert with_events.cycles > GPU.l2.latency
    waiting = with_events.op_stall[:, STALL_REASONS.index("long_scoreboard")].sum()
    assert waiting > GPU.l2.latency / 2


NAMED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<4>;
mov.u32 %r1, %tid.x; mov.u32 %r2, 1; mov.u32 %r3, 64; setp.ge.u32 %p1, %r1, 32; mov.f32 %f1, 0f3F800000;
@%p1 bra OTHER;
EARLY
bar.arrive %r2, %r3;
LATE
ret;
OTHER: bar.sync %r2, %r3;
ret; }"""


@pytest.mark.parametrize("early", [True, False])
def test_named_barriers_wait_for_who_arrives_and_not_for_its_end(early: bool):
    long = "mul.rn.f32 %f1, %f1, %f1;" * 400
    text = NAMED.replace("EARLY", long if early else "").replace("LATE", "" if early else long)
    program = program_of(text, 2)[1]
    stalled = run(program).warp_cycles[STALL_REASONS.index("barrier")]
    chain = 400 * GPU.isa.op("fp32.mul").latency
    assert stalled > 0.9 * chain if early else stalled < 0.1 * chain
