"""Accesses that follow another one of their segment leave no record, and their trace is that of the interpreter."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from equal_fields import assert_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from jit_kernels import assert_same_trace, check_against_interpreter, integer, pointer, text_case

from ppt_gpu.emulator.cache.trace_cache import Kept
from ppt_gpu.emulator.jit.compiler.compile import compile_kernel
from ppt_gpu.emulator.races.accesses import some_blocks
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.pattern_store import WIDTH_BIT
from ppt_gpu.emulator.trace.recorded_trace import RecordedTrace, expand_groups, kept_accesses
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_file import Record, read_traces, write_traces
from ppt_gpu.emulator.trace.trace_parts import only_blocks
from ppt_gpu.ptx.linking.link import link
from ppt_gpu.workload.workload import Buffer

HEAD = """.visible .entry k(.param .u64 x, .param .u32 n) {
.reg .b64 %x, %a, %b, %t; .reg .b32 %n, %i, %s, %u, %v; .reg .pred %p, %q; .shared .align 16 .b8 tile[4096];
.local .align 16 .b8 own[64];
ld.param.u64 %x, [x]; ld.param.u32 %n, [n]; mov.u32 %i, %tid.x; mul.wide.u32 %t, %i, 4; add.s64 %a, %x, %t;
shl.b32 %s, %i, 2; mov.u32 %u, tile; add.u32 %s, %s, %u; setp.lt.u32 %p, %i, %n; mov.u64 %b, %a;
"""


def check(body, records, n=16, threads=64):
    """`records`: how many of the accesses of the first segment leave one."""
    case = text_case(HEAD + body + " ret; }", (2,), (threads,), [pointer("x"), integer(n)], [Buffer("x", "u32", 1024)])
    case.fill = {"x": np.arange(1024, dtype="u4")}
    kernel = link(case.kernel, case.module)
    groups = compile_kernel(kernel, True).groups
    assert groups.records[0] == records
    _, kept = case.run()
    assert isinstance(kept, RecordedTrace)
    alone, far = kept.some([1]), global_accesses(kernel, kept)
    copied = pickle.loads(pickle.dumps(kept))
    _, trace = check_against_interpreter(case)
    assert_same_trace(copied, trace)
    assert_same_accesses(alone, only_blocks(kept, [1]))
    assert len(kept.access_base) == len(trace.access_base)
    assert_equal(far, global_accesses(kernel, kept))
    assert len(trace.access_base) == trace.warps * len(groups.leader)


def assert_same_accesses(one, other):
    """Of the same blocks, with the same numbers of patterns."""
    names = (
        "blocks",
        "access_start",
        "access_base",
        "access_pattern",
        "access_space",
        "pattern_offset",
        "pattern_mask",
    )
    for name in names:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.pattern_mask, other.pattern_mask)


def test_looking_once_lets_the_records_go():
    """Equal to what stands beside it, whoever asks first; names that no trace has are errors as ever."""
    text = HEAD + "ld.global.u32 %v, [%a]; ld.global.u32 %v, [%a+4]; ret; }"
    case = text_case(text, (3,), (64,), [pointer("x"), integer(0)], [Buffer("x", "u32", 1024)])
    _, trace = case.run()
    assert len(kept_accesses(trace)[1]) == trace.warps
    assert len(global_accesses(link(case.kernel, case.module), trace).base) == 2 * trace.warps
    assert "access_base" not in vars(trace)
    few = trace.some([2, 0])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: trace.access_base, range(8)))
    assert all(base is found[0] for base in found) and len(found[0]) == 2 * trace.warps
    assert (found[0][1::2] == found[0][::2] + 4).all()
    assert len(kept_accesses(trace)[1]) == 2 * trace.warps
    late = trace.some([2, 0])
    assert (few.access_base == late.access_base).all() and few.blocks.tolist() == late.blocks.tolist() == [2, 0]
    with pytest.raises(AttributeError, match="no attribute 'access_bases'"):
        _ = trace.access_bases


def test_kept_by_the_name_of_a_trace_and_written_whole():
    """Records and counts of segments count as bytes that are kept; a trace file has all accesses and instructions."""
    text = HEAD + "ld.global.u32 %v, [%a]; ld.global.u32 %v, [%a+4]; ret; }"
    case = text_case(text, (2,), (64,), [pointer("x"), integer(0)], [Buffer("x", "u32", 1024)])
    _, trace = case.run()
    kept, counts = Kept("group"), trace.counts
    kept.add(Record(0, "k", (2, 1, 1), 64, len(case.kernel.instructions), "", True, trace))
    arrays = sum(getattr(value, "nbytes", 0) for name, value in vars(trace).items() if name != "records")
    patterns = trace.records.patterns
    assert patterns.nbytes == 64 + 2 * 8  # all lanes side by side
    assert kept.nbytes == arrays + 12 * trace.warps + patterns.nbytes
    assert kept.whole(Trace, [0, 1]) is trace
    (read,) = read_traces(write_traces(list(kept.records.values())), "file")
    assert trace.block_threads.nbytes == 2 * len(case.kernel.instructions) * 8 and "counts" not in vars(trace)
    arrays += trace.block_threads.nbytes - counts.nbytes
    assert kept.nbytes == arrays + 2 * 13 * trace.warps + 32 * 8 + 4
    assert_same_trace(read.content, trace)


@pytest.mark.parametrize("access", ["st.shared.u32 [%s], %v;", "st.shared.u16 [%s], %v;", "ld.global.u32 %v, [%a];"])
@pytest.mark.parametrize("change", ["add.u32 %s, %s, %v;", "mul.lo.u32 %v, %v, %i; add.u32 %s, %s, %v;"])
def test_blocks_that_do_the_same_in_shared_memory_are_alike(access, change):
    """Every second pair of blocks stores elsewhere, or at other distances: seen in records as in all accesses."""
    text = f"{HEAD} mov.u32 %v, %ctaid.x; shl.b32 %v, %v, 2; and.b32 %v, %v, 8; {change} {access} ret; }}"
    case = text_case(text, (6,), (64,), [pointer("x"), integer(0)], [Buffer("x", "u32", 1024)])
    _, trace = case.run()
    expected = [0, 2, 4] if ".shared" in access else [0]
    assert some_blocks(trace) == expected and "access_base" not in vars(trace)
    assert len(trace.access_base) and some_blocks(trace) == expected


def test_one_register_with_other_offsets():
    check("ld.global.u32 %v, [%a+4]; st.global.u32 [%a], %v; ld.global.u32 %v, [%a+256]; st.shared.u32 [%s], %v;"
          "ld.shared.u32 %v, [%s+64]; ld.global.u16 %v, [%a+258]; atom.global.add.u32 %v, [%a+8], %v;", 2)  # fmt: skip


def test_sums_with_constants_and_copies():
    check("ld.global.u32 %v, [%a]; add.s64 %b, %a, 16; st.global.u32 [%b], %v; sub.s64 %b, %b, 4; red.global.add.u32 "
          "[%b+4], %v; add.u32 %s, %s, -64; add.u32 %u, %s, 128; st.shared.u32 [%s+64], %v; ld.shared.u32 %v, [%u];"
          "add.s64 %a, %a, %t; ld.global.u32 %v, [%a];", 3)  # fmt: skip


def test_a_register_written_between():
    check("ld.global.u32 %v, [%a]; and.b64 %a, %a, -64; ld.global.u32 %v, [%a];", 2)


def test_guards_set_accesses_apart():
    """Where a warp has no lane below n, its accesses are those of nobody."""
    for n in (0, 16, 32, 64):
        check("ld.global.u32 %v, [%a]; @%p ld.global.u32 %v, [%a+4]; @!%p st.global.u32 [%a+8], %v; @%p st.global.u32 "
              "[%a+12], %v; @!%p st.global.u32 [%a+16], %v; @%p add.s64 %b, %a, 64; ld.global.u32 %v, [%b];"
              "setp.gt.u32 %p, %i, %n; @%p ld.global.u32 %v, [%a];", 5, n)  # fmt: skip


def test_local_memory_lies_lane_by_lane():
    """Of accesses as wide as each other, one follows the other; other widths lie at other distances."""
    check("mov.u32 %u, own; and.b32 %v, %i, 4; add.u32 %u, %u, %v; st.local.u32 [%u], %v; ld.local.u32 %v, [%u+8];"
          "ld.local.u16 %v, [%u+2]; ld.local.u16 %v, [%u]; st.local.u32 [%u+16], %v;", 2)  # fmt: skip


def test_spaces_that_are_not_known_are_recorded():
    check("ld.u32 %v, [%a]; ld.u32 %v, [%a+4]; ld.shared.u32 %v, [tile]; ld.shared.u32 %v, [tile+4];", 4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("", "@%p ", "@!%p ", "@%q ")), st.sampled_from((
    "ld.global.u32 %v, [%a+OFF];", "st.global.u32 [%b+OFF], %v;", "add.s64 %b, %a, OFF;", "add.s64 %a, %b, -OFF;",
    "st.shared.u32 [%s+OFF], %v;", "ld.shared.u32 %v, [%u+OFF];", "add.u32 %u, %s, OFF;", "mov.u64 %b, %a;",
    "setp.lt.u32 %q, %v, OFF;", "red.shared.add.u32 [%u+OFF], %v;", "ld.shared.v2.u32 {%v, %n}, [tile+OFF];",
)), st.integers(0, 3)), max_size=14), st.integers(0, 70))  # fmt: skip
def test_any_sequence_has_the_trace_of_the_interpreter(code, n):
    body = "add.s64 %a, %a, 1024; mov.u64 %b, %a; setp.gt.u32 %q, %i, 40; mov.u32 %v, 1; mov.u32 %u, %s; "
    body += " ".join(guard + text.replace("OFF", str(8 * off)) for guard, text, off in code)
    case = text_case(HEAD + body + " ret; }", (1,), (64,), [pointer("x"), integer(n)], [Buffer("x", "u32", 1024)])
    check_against_interpreter(case)


def test_groups_expand_to_all_accesses():
    """Two segments, with 3 accesses of 2 records and with 1 of 1; the last pattern has no lanes: its base stays.
    Patterns have the numbers 5, 0 and 3 in headers."""
    start, records = np.array([0, 3, 4]), np.array([2, 1])
    leader, distance = np.array([0, 1, 0, 0]), np.array([0, 0, 8, 0])
    path_start, segments = np.array([0, 2, 3]), np.array([0, 1, 0], np.int32)
    headers = np.array([5 << 2, 0 << 2 | 1, 5 << 2 | 2, 3 << 2, 0 << 2 | 1], np.uint32)
    masks = np.array([1, 0, 0, 0, 0, 3]) | 64 << WIDTH_BIT
    records_ = np.array([100, 7, 300, 0, 0]), headers, masks, np.array([1, -1, -1, 2, -1, 0], np.int32)
    base, pattern, space = np.zeros(7, np.int64), np.zeros(7, np.int32), np.zeros(7, np.uint8)
    recorded = np.array([[0, 3], [3, 5]])
    given_ = (np.array([0, 1], np.int32), path_start, segments, start, records, leader, distance)
    out = (base, pattern, space)
    assert expand_groups(*given_, recorded, *records_, *out) == 2
    assert base.tolist() == [100, 7, 108, 300, 0, 0, 0]
    assert pattern.tolist() == [0, 1, 0, 0, 2, 1, 2] and space.tolist() == [0, 1, 0, 2, 0, 1, 0]
    assert expand_groups(*given_, np.array([[0, 2], [2, 5]]), *records_, *out) == 0
    assert expand_groups(*given_, recorded, *records_[:3], np.empty(0, np.int32), *out) == 2
    assert base.tolist() == [100, 7, 108, 300, 0, 0, 0] and pattern.tolist() == [5, 0, 5, 5, 3, 0, 3]
