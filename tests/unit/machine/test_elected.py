"""Atomics that one lane does for its warp: which, as ptxas 13.0 makes them for sm_75 and sm_80; and what that does."""

from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.machine.selection.warp_aggregated_atomics import Election, counted_by_word, elections, operations
from ppt_gpu.pipeline import predict
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.spec.load import load_gpu

HEAD = """.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 values, .param .u32 n)
{
 .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<5>; .shared .align 4 .b32 s[64];
 ld.param.u64 %rd1, [words];
 ld.param.u64 %rd2, [values];
 ld.param.u32 %r1, [n];
 mov.u32 %r2, %tid.x;
 mov.u32 %r3, %ctaid.x;
 mov.u32 %r4, %ntid.x;
 mad.lo.s32 %r5, %r3, %r4, %r2;
 mul.wide.s32 %rd3, %r5, 4;
 add.s64 %rd4, %rd2, %rd3;
 ld.global.u32 %r6, [%rd4];
 cvt.u64.u32 %rd10, %r6;
 ld.global.u64 %rd11, [%rd2];
 ld.global.u32 %r11, [%rd2];
 shr.u32 %r12, %r2, 5;
 mul.wide.u32 %rd12, %r12, 4;
 add.s64 %rd13, %rd1, %rd12;
 mul.wide.u32 %rd14, %r3, 4;
 add.s64 %rd15, %rd1, %rd14;
"""
COUNTED, REDUCED, COUNTED_USED, SCANNED = (
    Election(True, False),
    Election(False, False),
    Election(True, True),
    Election(False, True),
)
USED = " st.global.u32 [%rd4], %r7;"


def module(body: str) -> str:
    return f"{HEAD} {body}\n ret;\n}}\n"


@pytest.mark.parametrize(
    ("atomic", "expected"),
    [
        ("atom.global.add.u32 %r7, [%rd1], 1;", COUNTED),
        ("atom.global.add.u32 %r7, [%rd1], %r1;", COUNTED),
        ("red.global.add.u32 [%rd1], 3;", COUNTED),
        ("atom.sys.global.add.u32 %r7, [%rd1], 1;", COUNTED),
        ("atom.shared.add.u32 %r7, [s], 1;", COUNTED),
        ("atom.global.add.u64 %rd8, [%rd1], 1;", COUNTED),
        ("atom.global.add.u32 %r7, [%rd11], 1;", COUNTED),
        ("atom.global.add.u32 %r7, [%rd1], %r11;", COUNTED),
        ("atom.global.add.u32 %r7, [%rd15], 1;", COUNTED),
        ("setp.gt.s32 %p2, %r6, 7; @%p2 atom.global.add.u32 %r7, [%rd1], 1;", COUNTED),
        ("atom.global.add.u32 %r7, [%rd1], 1;" + USED, COUNTED_USED),
        ("atom.global.add.u32 %r7, [%rd1], %r6;", REDUCED),
        ("atom.global.min.s32 %r7, [%rd1], %r6;", REDUCED),
        ("atom.global.or.b32 %r7, [%rd1], 4;", REDUCED),
        ("atom.shared.max.s32 %r7, [s], %r6;", REDUCED),
        ("atom.global.add.u32 %r7, [%rd1], %r6;" + USED, SCANNED),
        ("atom.global.max.u32 %r7, [%rd1], 4;" + USED, None),
        ("atom.global.add.u64 %rd8, [%rd1], %rd10;", None),
        ("atom.global.max.u64 %rd8, [%rd1], %rd10;", None),
        ("atom.global.inc.u32 %r7, [%rd1], 1000;", None),
        ("atom.global.exch.b32 %r7, [%rd1], 4;", None),
        ("atom.global.cas.b32 %r7, [%rd1], 0, 1;", None),
        ("atom.global.add.f32 %f1, [%rd1], 0f3F800000;", None),
        ("atom.global.add.u32 %r7, [%rd13], 1;", None),
        ("atom.global.add.u32 %r7, [%rd4], 1;", None),
    ],
)
def test_which_atomics_one_lane_does(atomic: str, expected: Election | None) -> None:
    kernel = parse_module(module(atomic)).kernels["k"]
    assert list(elections(kernel).values()) == ([] if expected is None else [expected])


def test_where_lanes_are_missing() -> None:
    """Shuffles need the whole warp; REDUX and a count of lanes do not."""
    assert [each.needs_all(redux=False) for each in (COUNTED, COUNTED_USED, REDUCED, SCANNED)] == [
        False,
        False,
        True,
        True,
    ]
    assert [each.needs_all(redux=True) for each in (COUNTED, COUNTED_USED, REDUCED, SCANNED)] == [
        False,
        False,
        False,
        True,
    ]


def test_machine_operations_beside_the_atomic() -> None:
    made = load_gpu("a100").isa.unnamed
    assert "shuffle.redux" in operations(REDUCED, made)
    assert operations(COUNTED, made).count("int32.popc") == 2  # FLO and POPC
    assert operations(SCANNED, load_gpu("t4").isa.unnamed).count("shuffle.shfl") == 6
    assert operations(COUNTED, {}) == ()


@pytest.mark.parametrize(
    ("gpu", "atomic", "updates"),
    [
        ("v100", "red.global.add.u32 [%rd1], 1;", 2),  # one for the line and one for its sector
        ("v100", "red.global.add.u32 [%rd1], %r6;", 2),
        ("v100", "@%p1 red.global.add.u32 [%rd1], %r6;", 16),
        ("a100", "@%p1 red.global.add.u32 [%rd1], %r6;", 2),
        ("v100", "red.global.add.f32 [%rd1], %f1;", 32 / 0.29),  # each takes memory.float_atomics_per_cycle
    ],
)
def test_updates_of_a_warp(gpu: str, atomic: str, updates: float) -> None:
    """Of 1,024 warps, all at one word, which takes one update a cycle; every second lane has a predicate."""
    text = module(f"and.b32 %r13, %r2, 1; setp.eq.u32 %p1, %r13, 0; cvt.rn.f32.u32 %f1, %r6; {atomic}")
    arguments = [np.zeros(4, np.uint32), np.ones(1 << 15, np.uint32), np.int32(0)]
    found = predict(text, gpu, grid=256, block=128, args=arguments, cache=False)
    (bound,) = [bound for bound in found.launches[0].bounds if bound.resource == "atomic unit"]
    assert bound.cycles == pytest.approx(1024 * updates, rel=0.02)
    assert found.launches[0].value("kernel.cycles") >= bound.cycles


@pytest.mark.parametrize(
    ("atomic", "counted"),
    [
        ("atom.shared.add.u32 %r7, [%r6], 1;", True),
        ("red.shared.add.s32 [%r6], 1;", True),
        ("atom.shared.add.u32 %r7, [%r6], 2;", False),
        ("atom.shared.add.u32 %r7, [%r6], %r1;", False),
        ("atom.shared.add.u32 %r7, [%r6], 1;" + USED, False),
        ("atom.shared.add.u64 %rd8, [%r6], 1;", False),
        ("atom.shared.inc.u32 %r7, [%r6], 1;", False),
        ("atom.global.add.u32 %r7, [%rd4], 1;", False),
    ],
)
def test_shared_memory_counts_lanes_that_add_one(atomic: str, counted: bool) -> None:
    """ATOMS.POPC.INC of ptxas 13.0 for sm_80, sm_86, sm_89, sm_90, sm_100 and sm_120; ATOMS.ADD for sm_75."""
    kernel = parse_module(module(atomic)).kernels["k"]
    found = counted_by_word(kernel.instructions)
    assert {kernel.instructions[number].base for number in found} == ({atomic[:4].strip(".")} if counted else set())


@pytest.mark.parametrize(("gpu", "passes"), [("t4", 32), ("rtx3070", 1)])
def test_counted_lanes_of_a_warp_are_one_access(gpu: str, passes: int) -> None:
    """All lanes at one word of a shared histogram: as many passes as lanes on Turing, one from Ampere on."""
    text = module("and.b32 %r8, %r6, 28;\n atom.shared.add.u32 %r7, [%r8], 1;")
    arguments = [np.zeros(4, np.uint32), np.zeros(32, np.uint32), np.int32(0)]
    found = predict(text, gpu, grid=1, block=32, args=arguments, cache=False)
    assert found.launches[0].value("shared.passes_per_access") == passes
