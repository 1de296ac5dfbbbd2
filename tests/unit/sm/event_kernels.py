"""Kernels whose warps wait for one another, and what they become in the SM."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from ppt_gpu.sm.lowering.lower import lower_trace
from ppt_gpu.sm.program.program import WARM
from ppt_gpu.spec import load_gpu
from ppt_gpu.workload.workload import Buffer

sys.path.insert(0, str(Path(__file__).parents[1] / "emulator"))
from jit_kernels import check_against_interpreter, pointer, text_case

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


def case_of(text: str, warps: int):
    """A block of the kernel, and its trace, the same of both engines."""
    values = ROUNDS * BYTES // 4
    case = text_case(
        text, (1,), (32 * warps,), [pointer("a"), pointer("out")],
        [Buffer("a", "f32", values), Buffer("out", "f32", 256)],
        fill={"a": np.arange(values, dtype=np.float32)},
    )  # fmt: skip
    return case, *check_against_interpreter(case)


def program_of(text: str, warps: int):
    """(Its memory, its Program, with all it reads in the L2.)"""
    case, memory, trace = case_of(text, warps)
    found = lower_trace(case.kernel, trace, GPU, launch=case.launch, active_sms=1)
    return memory, replace(found, line_warm=np.full_like(found.line_warm, WARM))


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
