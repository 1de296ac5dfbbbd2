"""Accesses at distances that only a launch decides leave no record, and their trace is that of the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_kernels import check_against_interpreter, integer, pointer, text_case

from ppt_gpu.emulator.analysis.constant_offsets import NEAR, Distance, steps
from ppt_gpu.emulator.analysis.flow import flow_of
from ppt_gpu.emulator.analysis.register_equalities import related
from ppt_gpu.emulator.jit.compiler.compile import compile_kernel
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.workload.workload import Buffer

#: x, y: the parameters; a, b: each thread's word there; w: bytes between rows, known when the kernel is launched
HEAD = """.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .b64 %x, %y, %a, %b, %c, %t, %w, %g; .reg .b32 %n, %i, %s, %u, %v, %r, %m, %k; .reg .pred %p, %q;
.shared .align 16 .b8 tile[8192];
ld.param.u64 %g, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n]; cvta.to.global.u64 %x, %g; mov.u32 %i, %tid.x;
mul.wide.u32 %t, %i, 4; mov.u32 %m, %ntid.x; mul.wide.u32 %w, %m, 4; add.s64 %a, %x, %t; add.s64 %b, %t, %y;
shl.b32 %s, %i, 2; mov.u32 %u, tile; add.u32 %s, %s, %u; and.b32 %r, %i, 3; setp.lt.u32 %p, %r, 2;
"""


def case_of(body, n=5, head=HEAD):
    buffers = [Buffer("x", "u32", 4096), Buffer("y", "u32", 4096)]
    case = text_case(f"{head}{body} ret; }}", (2,), (48,), [pointer("x"), pointer("y"), integer(n)], buffers)
    case.fill = {"x": np.arange(4096, dtype="u4") % 7, "y": np.arange(4096, dtype="u4") % 5}
    return case


def check(body, records, n=5, head=HEAD):
    """`records`: how many of the accesses of all segments leave one."""
    case = case_of(body, n, head)
    assert compile_kernel(link(case.kernel, case.module), True).groups.records.sum() == records
    check_against_interpreter(case)


def test_distances_are_added():
    one, other = Distance(3, ((1, 1), (4, 2))), Distance(-3, ((1, -1), (2, 1)))
    assert one + other == Distance(0, ((2, 1), (4, 2))) and one - one == NEAR and NEAR - one == -one
    assert (one + other).value({2: 10, 4: 100}) == 210 and one.value({1: 1, 4: 2}) == 8


def test_buffers_at_one_place():
    """Two parameters, rows as far apart as a block is wide, and both."""
    check("ld.global.u32 %v, [%a]; ld.global.u32 %u, [%b+4]; st.global.u32 [%b], %v;", 1)
    check("ld.global.u32 %v, [%a]; add.s64 %c, %a, %w; ld.global.u32 %u, [%c]; add.s64 %c, %c, %w; "
          "st.global.u32 [%c+8], %v; sub.s64 %c, %c, %x; add.s64 %c, %c, %y; red.global.add.u32 [%c], 1;",
          1)  # fmt: skip


def test_in_shared_memory():
    """What something is taken away from is not at one distance from it."""
    check("shl.b32 %k, %m, 2; st.shared.u32 [%s], %i; add.u32 %u, %s, %k; st.shared.u32 [%u], %i; sub.u32 %u, %u, %k;"
          "ld.shared.u32 %v, [%u+64]; sub.u32 %u, %k, %u; neg.s32 %u, %u; ld.shared.u32 %v, [%u+192];", 2)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "records"),
    [
        ("add.s64 %a, %a, 4; add.s64 %b, %b, 4;", 1),
        ("add.s64 %b, %b, %w; add.s64 %a, %w, %a;", 1),
        ("add.s64 %a, %a, %w; add.s64 %b, %b, 4;", 2),
        ("mov.u64 %c, %a; mov.u64 %a, %b; mov.u64 %b, %c;", 2),
        ("mov.u64 %c, %b; sub.s64 %c, %c, %y; add.s64 %a, %c, %x;", 1),
        ("@%p add.s64 %a, %a, 4; @%p add.s64 %b, %b, 4;", 2),
        ("@%p bra SKIP; add.s64 %a, %a, 8; add.s64 %b, %b, 8; SKIP:", 1),
        ("@%p bra SKIP; add.s64 %a, %a, 8; SKIP: add.s64 %b, %b, 4;", 2),
        ("@%p bra ELSE; add.s64 %a, %a, 8; add.s64 %b, %b, 8; bra JOIN; ELSE: add.s64 %a, %a, %w; add.s64 %b, %b, %w;"
         "JOIN:", 1),
        ("cvt.u64.u32 %t, %v; shl.b64 %t, %t, 2; add.s64 %a, %x, %t; add.s64 %b, %y, %t;", 1),
        ("cvt.u64.u32 %t, %v; shl.b64 %t, %t, 2; add.s64 %a, %x, %t; shl.b64 %t, %t, 1; add.s64 %b, %y, %t;", 2),
    ],
)  # fmt: skip
def test_pointers_that_a_loop_moves(change, records):
    """Both are read in the loop, where lanes leave it at different times; what is read moves them, where it says so."""
    body = f"""add.u32 %r, %r, 3; mov.u32 %i, 0;
    L: ld.global.u32 %v, [%a]; ld.global.u32 %u, [%b]; {change} add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %r; @%q bra L;"""
    check(body, records)


def test_loops_in_a_loop():
    check("""mov.u32 %i, 0;
    OUT: mov.u64 %c, %b; mov.u64 %t, %a; mov.u32 %s, 0;
    IN: ld.global.u32 %v, [%t]; ld.global.u32 %u, [%c]; add.s64 %t, %t, 4; add.s64 %c, %c, 4; add.u32 %s, %s, 1;
    setp.le.u32 %q, %s, %r; @%q bra IN; add.s64 %a, %a, %w; add.s64 %b, %b, %w; add.u32 %i, %i, 1;
    setp.lt.u32 %q, %i, 3; @%q bra OUT; st.global.u32 [%t], %v; st.global.u32 [%c], %u;""", 2)  # fmt: skip


def test_what_some_lanes_have_not_written():
    """A sum with a register that is 0 in lanes that did not come to where it is written: it is not uniform."""
    head = HEAD.replace("mul.wide.u32 %w, %m, 4;", "")
    check("@%p bra SKIP; mul.wide.u32 %w, %m, 4; SKIP: ld.global.u32 %v, [%a]; add.s64 %c, %a, %w;"
          "ld.global.u32 %u, [%c];", 2, head=head)  # fmt: skip


def test_a_value_that_other_threads_write_elsewhere_is_not_uniform():
    check("@%p mul.wide.u32 %w, %m, 8; ld.global.u32 %v, [%a]; add.s64 %c, %a, %w; ld.global.u32 %u, [%c];", 2)
    check("cvt.u64.u32 %w, %i; and.b64 %w, %w, -4; ld.global.u32 %v, [%a]; add.s64 %c, %a, %w; ld.global.u32 %u, [%c];",
          2, head=HEAD.replace("mul.wide.u32 %w, %m, 4;", ""))  # fmt: skip


def test_blocks_with_a_barrier_between():
    check("ld.global.u32 %v, [%a]; st.shared.u32 [%s], %v; bar.sync 0; ld.shared.u32 %v, [%s]; st.global.u32 [%b], %v;"
          "ld.global.u32 %u, [%a];", 4)  # fmt: skip


def test_what_is_known_of_registers():
    case = case_of("L: ld.global.u32 %v, [%a]; ld.global.u32 %u, [%b]; add.s64 %a, %a, 4; add.s64 %b, %b, 4;"
                   "setp.lt.u32 %q, %v, 3; @%q bra L; st.global.u32 [%a], %v;")  # fmt: skip
    kernel = link(case.kernel, case.module)
    flow = flow_of(kernel)
    number = {register.name: n for n, register in enumerate(kernel.registers)}
    x, y, a, b = (number[f"%{name}"] for name in "xyab")
    found = related(kernel, flow, steps(kernel, flow.entry))
    loop = flow.segment_of[next(i.index for i in kernel.instructions if i.base == "ld" and "global" in i.opcode)]
    low, high = sorted((a, b))
    away = Distance(0, tuple(sorted([(x, 1), (y, -1)]))) if high == a else Distance(0, tuple(sorted([(x, -1), (y, 1)])))
    assert found[loop][low] == (low, NEAR) and found[loop][high] == (low, away)


STEPS = (
    "add.s64 %a, %a, 4;", "add.s64 %b, %b, 4;", "add.s64 %a, %a, %w;", "add.s64 %b, %b, %w;", "mov.u64 %c, %a;",
    "mov.u64 %a, %c;", "sub.s64 %t, %b, %y; add.s64 %c, %t, %x;", "sub.s64 %t, %c, %x; add.s64 %b, %t, %y;",
    "and.b64 %c, %c, -8;",
    "@%p add.s64 %a, %a, 8;", "@%p mov.u64 %c, %a;", "ld.global.u32 %v, [%a];", "ld.global.u32 %v, [%b+4];",
    "red.global.add.u32 [%c], 1;", "@%p st.global.u32 [%a+8], %i;", "@%p ld.global.u32 %v, [%c];",
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(STEPS), max_size=6), min_size=5, max_size=5), st.integers(1, 3))
def test_any_program_has_the_trace_of_the_interpreter(parts, turns):
    """Before, in and behind a loop, with a branch in it, that lanes leave at different times."""
    before, head, left, right, behind = (" ".join(part) for part in parts)
    body = f"""mov.u64 %c, %a; {before} add.u32 %r, %r, {turns}; mov.u32 %i, 0;
    L: {head} setp.lt.u32 %p, %r, 4; @%p bra ELSE; {left} bra JOIN; ELSE: {right}
    JOIN: add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %r; @%q bra L; {behind}"""
    buffers = [Buffer("x", "u32", 1 << 16), Buffer("y", "u32", 1 << 16)]
    arguments = [pointer("x", 1 << 17), pointer("y", 1 << 17), integer(0)]
    check_against_interpreter(text_case(f"{HEAD}{body} ret; }}", (2,), (48,), arguments, buffers))
