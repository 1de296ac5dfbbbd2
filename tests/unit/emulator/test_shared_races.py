"""Races on shared memory between warps: which must be found, how they are named, and what must not be called one."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from jit_kernels import pointer, text_case
from reference.interpreter.interpreter import interpret
from small_samples import SMALL, run_small

from ppt_gpu.emulator.races.accesses import PathAccesses
from ppt_gpu.emulator.races.races import races
from ppt_gpu.emulator.run.run import run
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.workload import Buffer

HEAD = (
    ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; xor.b32 %r5, %r3, 128; add.u32 %r5, %r5, %r2;"
    "shr.u32 %r6, %r1, 5; and.b32 %r7, %r1, 31; shl.b32 %r8, %r7, 2; add.u32 %r8, %r8, %r2;"
    "setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; cvt.u64.u32 %d2, %r3; add.u64 %d2, %d1, %d2;\n"
)
#: r1 thread, r4 its own word, r5 that of the thread 32 away, r6 warp, r7 lane, r8 the lane's word (of all warps),
#: p1 thread 0, p2 warp 0, d2 the thread's word in global memory
OWN, FAR, LANE = "[%r4]", "[%r5]", "[%r8]"


def kernel(body, block=(64,), grid=(3,)):
    text = f".shared .align 16 .b8 s[512];\n.visible .entry k(.param .u64 p)\n{{\n{HEAD}{body}\nret;\n}}"
    return text_case(text, grid, block, [pointer("a")], [Buffer("a", "u32", 64, "iota")])


def found(body, **options):
    """(kind, opcodes) of the races in the traces of both engines, and the warnings of one."""
    case = kernel(body, **options)
    traces = [case.run(engine=interpret)[1], case.run()[1]]
    plain, compiled = [races(case.kernel, t, PathAccesses.of(case.kernel, t), 512) for t in traces]
    assert plain == compiled
    code = case.kernel.instructions
    texts = [text for text in traces[1].warnings if "a race" in text]
    return [(race.kind, code[race.first].opcode, code[race.second].opcode) for race in compiled], texts


RACES = [
    # a missing barrier after the stores, and before the next ones
    (f"st.shared.u32 {OWN}, %r1; ld.shared.u32 %r9, {FAR};", ["read after write st.shared.u32 ld.shared.u32"]),
    (f"ld.shared.u32 %r9, {FAR}; st.shared.u32 {OWN}, %r9;", ["write after read ld.shared.u32 st.shared.u32"]),
    (f"st.shared.u32 {OWN}, 1; bar.sync 0; ld.shared.u32 %r9, {FAR}; st.shared.u32 {OWN}, %r9; bar.sync 0;",
     ["write after read ld.shared.u32 st.shared.u32"]),
    (f"st.shared.u32 {LANE}, %r1; bar.sync 0;", ["write after write st.shared.u32 st.shared.u32"]),
    (f"ld.global.u32 %r9, [%d2]; st.shared.u32 {LANE}, %r9; bar.sync 0;",
     ["write after write st.shared.u32 st.shared.u32"]),
    # one thread's value, read by all
    ("@%p1 st.shared.u32 [s], 5; ld.shared.u32 %r9, [s];", ["read after write st.shared.u32 ld.shared.u32"]),
    # parts of a word, vectors, generic addresses
    (f"st.shared.u32 {OWN}, %r1; bar.sync 0; st.shared.u8 [%r4+1], %r1; ld.shared.v2.u32 {{%r9, %r10}}, [s+128];",
     ["read after write st.shared.u8 ld.shared.v2.u32"]),
    (f"cvta.shared.u64 %d3, s; st.u32 [%d3], 1; bar.sync 0; ld.u32 %r9, [%d3]; @%p1 st.shared.u32 {OWN}, %r9;",
     ["write after read ld.u32 st.shared.u32"]),
    # what is no barrier of the block
    (f"st.shared.u32 {OWN}, %r1; bar.warp.sync -1; ld.shared.u32 %r9, {FAR};",
     ["read after write st.shared.u32 ld.shared.u32"]),
    (f"st.shared.u32 {OWN}, %r1; membar.cta; ld.shared.u32 %r9, {FAR};",
     ["read after write st.shared.u32 ld.shared.u32"]),
    # atomics and plain accesses
    (f"st.shared.u32 {OWN}, 0; red.shared.add.u32 [s+4], 1; bar.sync 0;",
     ["write after write st.shared.u32 red.shared.add.u32"]),
    (f"st.shared.u32 {OWN}, 0; bar.sync 0; atom.shared.add.u32 %r9, [s], 1; ld.shared.u32 %r10, [s];",
     ["read after write atom.shared.add.u32 ld.shared.u32"]),
    # different constants; a barrier that half of a third warp does not save
    ("@%p2 st.shared.u32 [s], 1; @!%p2 st.shared.u32 [s], 2; bar.sync 0;",
     ["write after write st.shared.u32 st.shared.u32"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), RACES)
def test_races(body, expected):
    hazards, texts = found(body)
    assert [" ".join(hazard) for hazard in hazards] == expected
    assert len(texts) == len(expected)


SILENT = [
    f"st.shared.u32 {OWN}, %r1; bar.sync 0; ld.shared.u32 %r9, {FAR};",
    f"st.shared.u32 {OWN}, %r1; barrier.sync 1; ld.shared.u32 %r9, {FAR};",
    f"st.shared.u32 {OWN}, %r1; bar.red.popc.u32 %r9, 0, %p1; ld.shared.u32 %r9, {FAR};",
    f"st.shared.u32 {OWN}, %r1; bar.sync 0, 64; ld.shared.u32 %r9, {FAR};",
    f"st.shared.u32 {OWN}, %r1; ld.shared.u32 %r9, {OWN};",
    # within a warp
    f"xor.b32 %r9, %r3, 4; add.u32 %r9, %r9, %r2; st.shared.u32 {OWN}, %r1; ld.shared.u32 %r10, [%r9];",
    # every warp writes the same: a constant, a parameter, what all read at one place
    "mov.u32 %r9, 1; st.shared.u32 [s], %r9; bar.sync 0; ld.shared.u32 %r10, [s];",
    "cvt.u32.u64 %r9, %d1; st.shared.u32 [s], %r9; ld.shared.u32 %r10, [s];",
    "ld.global.u32 %r9, [%d1]; st.shared.u32 [s], %r9; bar.sync 0;",
    "@%p2 st.shared.u32 [s], 1; @!%p2 st.shared.u32 [s], 1; bar.sync 0;",
    # atomics, volatile
    f"st.shared.u32 {OWN}, 0; bar.sync 0; red.shared.add.u32 [s], 1; atom.shared.inc.u32 %r9, [s+4], 9; bar.sync 0;",
    f"st.volatile.shared.u32 {OWN}, %r1; ld.volatile.shared.u32 %r9, {FAR};",
    # a barrier of some warps, one whose warps a register tells, one with arrivals
    f"@%p2 st.shared.u32 {OWN}, %r1; bar.sync 1, 64; mov.u32 %r9, 64; bar.sync 2, %r9; @!%p2 ld.shared.u32 %r9, {FAR};",
    f"@%p2 st.shared.u32 {OWN}, %r1; @%p2 bar.arrive 3, 64; @!%p2 bar.sync 3, 64; @!%p2 ld.shared.u32 %r9, {FAR};",
    # a flag: warp 1 waits until warp 0 has written
    f"""st.shared.u32 [s+256], 0; bar.sync 0; @%p2 bra first;
        wait: ld.volatile.shared.u32 %r9, [s+256]; setp.eq.u32 %p3, %r9, 0; @%p3 bra wait;
        membar.cta; ld.shared.u32 %r10, {FAR}; bra done;
        first: st.shared.u32 {OWN}, %r1; membar.cta; st.volatile.shared.u32 [s+256], 1; done:""",
    # a lock around a sum of all
    """mov.u32 %r9, 0; st.shared.u32 [s], 0; st.shared.u32 [s+4], 0; bar.sync 0; setp.ne.u32 %p3, %r7, 0; @%p3 bra done;
       wait: atom.shared.cas.b32 %r10, [s], 0, 1; setp.ne.u32 %p4, %r10, 0; @%p4 bra wait;
       ld.shared.u32 %r11, [s+4]; add.u32 %r11, %r11, %r1; st.shared.u32 [s+4], %r11; membar.cta;
       atom.shared.exch.b32 %r12, [s], 0; done:""",
    # mbarrier
    """@%p1 mbarrier.init.shared.b64 [s+256], 64; bar.sync 0; @%p2 st.shared.u32 [s+4], 7;
       mbarrier.arrive.shared.b64 %d5, [s+256];
       wait: mbarrier.test_wait.shared.b64 %p3, [s+256], %d5; @!%p3 bra wait; ld.shared.u32 %r9, [s+4];""",
    # lanes of a warp come to the barrier apart
    f"setp.lt.u32 %p3, %r1, 40; @%p3 bra some; bar.sync 0; bra both; some: st.shared.u32 {OWN}, 1; bar.sync 0;"
    f"both: ld.shared.u32 %r9, {FAR};",
    # asynchronous copies
    f"cp.async.ca.shared.global {OWN}, [%d2], 4; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r9, {FAR};",
    # warps that left
    f"st.shared.u32 {OWN}, %r1; @!%p2 bra out; bar.sync 0; ld.shared.u32 %r9, {FAR}; out:",
]


@pytest.mark.parametrize("body", SILENT)
def test_no_race(body):
    assert found(body) == ([], [])


def test_one_warp_has_no_races():
    assert found(f"st.shared.u32 {OWN}, %r1; ld.shared.u32 %r9, [s];", block=(32,)) == ([], [])


def test_the_text_names_both_lines_the_warps_and_the_byte():
    _, texts = found(f".loc 1 20 3\nst.shared.u32 {OWN}, %r1;\n.loc 1 22 3\nld.shared.u32 %r9, {FAR};")
    assert texts == [
        "test.ptx:11: a race on shared memory (read after write): 'ld.shared.u32' (source line 22) of warp 0 reads "
        "byte 128, which 'st.shared.u32' (source line 20) on line 9 of warp 1 writes, with no barrier between them "
        "(block 0)"
    ]


def test_one_warning_a_store_however_many_loads_race_with_it():
    loads = "".join(f"ld.shared.u32 %r9, [s+{4 * k}];" for k in range(6))
    hazards, texts = found(f"st.shared.u32 {OWN}, %r1; {loads}")
    assert len(hazards) == 6
    assert len(texts) == 1
    assert texts[0].endswith("; 5 more instructions race with it")


def test_a_race_in_one_block_of_a_loop_that_mostly_does_right():
    """The barrier is left out in the last turn of a loop, in block 2 only."""
    body = f"""mov.u32 %r9, 0; mov.u32 %r10, %ctaid.x;
    loop: st.shared.u32 {OWN}, %r9; setp.eq.u32 %p3, %r9, 5; setp.eq.and.u32 %p4, %r10, 2, %p3; @%p4 bra over;
    bar.sync 0; over: ld.shared.u32 %r11, {FAR}; bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 6;
    @%p5 bra loop;"""
    hazards, texts = found(body)
    assert hazards == [("read after write", "st.shared.u32", "ld.shared.u32")]
    assert texts[0].endswith("(block 2)")


def slow(case, trace):
    """Bytes that two warps touch between the same two barriers, one of them writing, as pairs of instructions."""
    from ppt_gpu.ptx.instructions import access_bytes, is_traced

    code = case.kernel.instructions
    pairs = set()
    for position in range(len(trace.blocks)):
        touched = {}
        for warp, w in enumerate(np.flatnonzero(trace.warp_block == position)):
            path = trace.path_pc[trace.path_start[trace.warp_path[w]] : trace.path_start[trace.warp_path[w] + 1]]
            k, barriers, stored = trace.access_start[w], 0, set()
            for at, pc in enumerate(path.tolist()):
                i = code[pc]
                if i.base == "bar":
                    barriers, stored = barriers + 1, set()
                if not is_traced(i):
                    continue
                p = trace.access_pattern[k]
                for lane in range(32):
                    start = int(trace.access_base[k]) + int(trace.pattern_offset[p, lane])
                    for byte in range(start, start + access_bytes(i)) if trace.pattern_mask[p] >> lane & 1 else ():
                        if i.base == "ld" and byte in stored:
                            continue
                        stored |= {byte} if i.base == "st" else set()
                        touched.setdefault((barriers, byte), set()).add((warp, at, pc))
                k += 1
        for those in touched.values():
            for one in those:
                for other in those:
                    bases = [code[one[2]].base, code[other[2]].base]
                    if one[0] != other[0] and set(bases) not in ({"ld"}, {"red"}, {"st"}):
                        pairs.add(frozenset((one[2], other[2])))
    return pairs


def test_random_accesses():
    """Every pair that races is one that the slow way finds, and every store that races with a read is found."""
    rng = np.random.default_rng(8)
    any_race = 0
    for _ in range(15):
        body = ""
        for _ in range(10):
            low, high = sorted(rng.integers(0, 97, 2).tolist())
            offset, scale = int(rng.integers(0, 32)) * 4, int(rng.choice([0, 4, 4, 8]))
            text = rng.choice(["st.shared.u32 [%r6], 1;", "ld.shared.u32 %r7, [%r6];", "red.shared.add.u32 [%r6], 1;",
                               "st.shared.u16 [%r6+2], 1;", "ld.shared.u8 %r7, [%r6+1];"])  # fmt: skip
            body += (
                f"setp.ge.u32 %p1, %r1, {low}; setp.lt.and.u32 %p2, %r1, {high}, %p1; rem.u32 %r8, %r1, 48;"
                f"mad.lo.u32 %r6, %r8, {scale}, {offset}; add.u32 %r6, %r6, %r2; @%p2 {text}\n"
            ) + ("bar.sync 0;" if rng.random() < 0.3 else "")
        case = kernel(body, block=(96,))
        _, trace = case.run()
        accesses = PathAccesses.of(case.kernel, trace)
        hazards = [r for r in races(case.kernel, trace, accesses, 512) if r.kind != "write after write"]
        pairs = {frozenset((r.first, r.second)) for r in hazards}
        code = case.kernel.instructions
        expected = {pair for pair in slow(case, trace) if "ld" in {code[i].base for i in pair}}
        assert {pair for pair in pairs if "ld" in {code[i].base for i in pair}} <= expected
        stores = [{i for pair in which for i in pair if code[i].base != "ld"} for which in (expected, pairs)]
        assert stores[0] <= stores[1]
        any_race += len(expected)
    assert any_race > 10


@pytest.mark.parametrize(("racing", "looked_at"), [(0, [0, 1]), (3, [0, 3, 4]), (6, [0, 6])])
def test_blocks_like_the_one_before_are_not_looked_at(racing, looked_at):
    """Of seven blocks one reads elsewhere, where another warp writes: it is found, whichever it is."""
    body = (
        f"st.shared.u32 {OWN}, %r1; mov.u32 %r9, %ctaid.x; setp.eq.u32 %p3, %r9, {racing};"
        "selp.b32 %r10, %r5, %r4, %p3; ld.shared.u32 %r11, [%r10];"
    )
    case = kernel(body, grid=(7,))
    trace = case.run()[1]
    accesses = PathAccesses.of(case.kernel, trace)
    assert accesses.blocks == looked_at
    assert [(race.kind, race.block) for race in races(case.kernel, trace, accesses, 512)] == [
        ("read after write", racing)
    ]


BARRIER = re.compile(r"\tbar\.sync \t0;")
TEXTS = {name: Path(load_workload(name).ptx_path).read_text() for name in SMALL}
#: barriers of each sample without which warps race. The others of the reduction order lanes of one warp; those of
#: stencil7_shared do not run at its small size; that of hgemm stands between waits for copies and reads of them.
NEEDED = {"hgemm": 1, "sgemm": 2, "histogram": 2, "transpose_tiled": 1, "stencil7_shared": 4, "reduction": 3}
LEFT_OUT = [(name, k) for name, text in TEXTS.items() for k in range(len(BARRIER.findall(text)))]


@pytest.mark.parametrize("name", SMALL)
def test_samples_have_no_races(name):
    _, _, traces = run_small(name, run)
    assert [text for trace in traces for text in trace.warnings] == []


@pytest.mark.parametrize(("name", "left_out"), LEFT_OUT)
def test_samples_without_one_of_their_barriers(name, left_out):
    number = itertools.count()
    text = BARRIER.sub(lambda match: "" if next(number) == left_out else match[0], TEXTS[name])
    _, _, traces = run_small(name, run, text)
    told = ("a race on shared memory", "asynchronously")
    found = any(part in text for trace in traces for text in trace.warnings for part in told)
    assert found == (left_out < NEEDED.get(name, 0))
