"""Accesses that always do something new are stored without being looked up; their trace is that of the interpreter."""

from unittest.mock import patch

import numpy as np
import pytest
from jit_kernels import check_against_interpreter, integer, pointer, text_case

from ppt_gpu.emulator.jit.places import BLIND, LONGEST, STREAK
from ppt_gpu.emulator.run import run as run_module
from ppt_gpu.emulator.trace.pattern_store import PLACES_BIT, SHIFT_BIT, WIDTH_BIT
from ppt_gpu.workload.workload import Buffer

#: u: pseudo-random numbers below 2^16, others in each turn and lane; a: `x` and the thread's place there
HEAD = """.visible .entry k(.param .u64 x, .param .u32 n) {
.reg .b64 %x, %a, %b, %t; .reg .b32 %n, %i, %u, %v, %w; .reg .f32 %f<4>; .reg .pred %p, %q; .reg .b16 %h;
.shared .align 16 .b8 tile[65536];
ld.param.u64 %x, [x]; ld.param.u32 %n, [n]; mov.u32 %v, %tid.x; mul.lo.u32 %u, %v, 40503; mov.u32 %i, 0;
L: mad.lo.u32 %u, %u, 1664525, 1013904223; shr.u32 %w, %u, 16;
"""
TAIL = " add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L; ret; }"
ACCESSES = {
    "atom.shared, bytes": ("and.b32 %w, %w, 1020; atom.shared.add.u32 %v, [%w], 1;", 8, 2),
    "ld.shared, two bytes": ("and.b32 %w, %w, 65532; ld.shared.u32 %v, [%w];", 16, 2),
    "ld.shared, of bytes": ("and.b32 %w, %w, 65535; ld.shared.u8 %v, [%w];", 16, 0),
    "st.shared, vectors": ("and.b32 %w, %w, 4080; st.shared.v4.u32 [%w], {%v, %v, %v, %v};", 8, 4),
    "ld.global, few elements": ("and.b32 %w, %w, 255; mul.wide.u32 %a, %w, 4; add.s64 %a, %a, %x;"
                                "ld.global.u32 %v, [%a];", 8, 2),
    "ld.global, near the first lane": ("and.b32 %w, %w, 4095; mul.wide.u32 %a, %w, 4; add.s64 %a, %a, %x;"
                                       "ld.global.u32 %v, [%a+40000];", 16, 2),
    "atom.global, far": ("and.b32 %w, %u, 131071; mul.wide.u32 %a, %w, 4; add.s64 %a, %a, %x;"
                         "atom.global.add.u32 %v, [%a], 1;", 32, 2),
    "st.global.u16": ("and.b32 %w, %u, 262143; mul.wide.u32 %a, %w, 2; add.s64 %a, %a, %x; cvt.u16.u32 %h, %i;"
                      "st.global.u16 [%a], %h;", 32, 1),
}  # fmt: skip


def run(body, turns, threads=48):
    case = text_case(HEAD + body + TAIL, (2,), (threads,), [pointer("x"), integer(turns)], [Buffer("x", "u32", 131072)])
    case.fill = {"x": np.arange(131072, dtype="u4")}
    with patch.object(run_module, "with_shared_warnings", lambda trace, *_: trace):  # which makes all accesses
        _, kept = case.run()
    words = kept.records.patterns.masks[kept.records.header >> 2]
    check_against_interpreter(case)
    return words


@pytest.mark.parametrize("name", ACCESSES)
@pytest.mark.parametrize("guard", ["", "@%q "])
def test_places_in_few_bits(name, guard):
    """48 threads: the second warp has half of its lanes."""
    body, bits, shift = ACCESSES[name]
    *before, access, _ = body.split(";")
    turns = 3 * (STREAK + BLIND)
    words = run(f"{';'.join(before)}; and.b32 %v, %u, 131072; setp.ne.u32 %q, %v, 0; {guard}{access};", turns)
    places = words[words >> PLACES_BIT == 1]
    assert len(words) * BLIND // (BLIND + STREAK + 1) < len(places) < len(words)
    kinds = set(zip((places >> WIDTH_BIT & 0xFF).tolist(), (places >> SHIFT_BIT & 0xFF).tolist(), strict=True))
    assert (bits, shift) in kinds and {each for _, each in kinds} == {shift}


def test_what_repeats_itself_is_looked_up_again():
    """An instruction that does something new for a while, then the same in turns: at last all of it is known."""
    body = """setp.gt.u32 %q, %i, 60; and.b32 %v, %i, 1; mov.u32 %v, %tid.x; @%q and.b32 %w, %v, 7; @%q add.u32
    %w, %w, %i; and.b32 %w, %w, 255; @%q and.b32 %w, %w, 1; mul.lo.u32 %w, %w, 4; ld.shared.u32 %v, [%w];"""
    words = run(body, 60 + LONGEST + 40, threads=32)
    places = (words >> PLACES_BIT == 1).reshape(2, -1)
    assert places[:, STREAK + 2 : 60].sum() > 80 and not places[:, -40:].any()


def test_blocks_with_their_patterns_as_stored():
    """What warnings look at: lines in the place of numbers, and the distances of each."""
    body = "and.b32 %w, %w, 1020; ld.shared.u32 %v, [%w]; st.shared.u32 [%w], %v;"
    case = text_case(HEAD + body + TAIL, (2,), (64,), [pointer("x"), integer(30)], [Buffer("x", "u32", 131072)])
    with patch.object(run_module, "with_shared_warnings", lambda trace, *_: trace):
        _, trace = case.run()
    few, patterns = trace.stored([1])
    assert len(few.pattern_mask) == 0 and patterns is trace.records.patterns
    found = [patterns.pattern(line) for line in few.access_pattern.tolist()]
    some = trace.some([1])
    assert (few.access_base == some.access_base).all() and (few.access_space == some.access_space).all()
    numbers = some.access_pattern.tolist()
    assert found == [(int(some.pattern_mask[n]), *some.pattern_offset[n].tolist()) for n in numbers]
    assert len(trace.access_base) and trace.stored([1])[1] is None
