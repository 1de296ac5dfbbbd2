"""Warnings about shared memory that is read but never written: where they must and must not come."""

import numpy as np
import pytest
from jit_kernels import pointer, text_case

from ppt_gpu.emulator.races.accesses import PathAccesses
from ppt_gpu.emulator.races.reads import unwritten_reads
from ppt_gpu.workload.workload import Buffer

HEAD = (
    ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; mov.u64 %d2, s; cvta.shared.u64 %d2, %d2;\n"
)


def kernel(body, block=(64,), grid=(3,)):
    text = f".shared .align 16 .b8 s[512];\n.visible .entry k(.param .u64 p)\n{{\n{HEAD}{body}\nret;\n}}"
    return text_case(text, grid, block, [pointer("a")], [Buffer("a", "u32", 64)])


def found(body, **options):
    case = kernel(body, **options)
    _, trace = case.run()
    plain = slow(case.kernel, trace)
    assert plain == unwritten_reads(case.kernel, trace, PathAccesses.of(case.kernel, trace), 512)
    return [case.kernel.instructions[index].opcode for index, _, _ in plain], trace


def slow(kernel, trace):
    """The same with dictionaries: every access of every block, byte by byte."""
    from ppt_gpu.ptx.instructions import access_bytes, is_traced

    result = {}
    for position, block in enumerate(trace.blocks.tolist()):
        accesses = []
        for w in np.flatnonzero(trace.warp_block == position):
            path = trace.path_pc[trace.path_start[trace.warp_path[w]] : trace.path_start[trace.warp_path[w] + 1]]
            pcs = [pc for pc in path.tolist() if is_traced(kernel.instructions[pc])]
            for pc, k in zip(pcs, range(trace.access_start[w], trace.access_start[w + 1]), strict=True):
                if trace.access_space[k] == 1:
                    p = trace.access_pattern[k]
                    lanes = [lane for lane in range(32) if trace.pattern_mask[p] >> lane & 1]
                    base = int(trace.access_base[k])
                    accesses.append((pc, [base + int(trace.pattern_offset[p, lane]) for lane in lanes]))
        stored, updated = set(), set()
        for pc, starts in accesses:
            i = kernel.instructions[pc]
            touched = {byte for start in starts for byte in range(start, start + access_bytes(i))}
            if i.base == "st" or "exch" in i.modifiers:
                stored |= touched
            elif i.base in ("atom", "red"):
                updated |= touched
        for pc, starts in accesses:
            i = kernel.instructions[pc]
            if i.base == "st" or "exch" in i.modifiers or pc in result:
                continue
            known = stored if i.base in ("atom", "red") else stored | updated
            for start in starts:
                if not known & set(range(start, start + access_bytes(i))):
                    result[pc] = (pc, block, start)
                    break
    return [result[pc] for pc in sorted(result)]


def test_a_read_of_what_nobody_wrote():
    opcodes, trace = found("st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4+4];", block=(32,))
    assert opcodes == ["ld.shared.u32"]
    assert trace.warnings == (
        "test.ptx:8: 'ld.shared.u32' reads shared memory that no thread of its block ever wrote (byte 128): "
        "its value is undefined",
    )


CLEAN = [
    "st.shared.u32 [%r4], %r1; bar.sync 0; xor.b32 %r6, %r3, 252; add.u32 %r6, %r6, %r2; ld.shared.u32 %r5, [%r6];",
    "ld.shared.u32 %r5, [%r4]; bar.sync 0; st.shared.u32 [%r4], %r1;",  # a race, but not this one
    "setp.lt.u32 %p1, %r1, 40; @%p1 st.shared.u32 [%r4], %r1; @%p1 ld.shared.u32 %r5, [%r4];",
    "atom.shared.exch.b32 %r5, [%r4], 0; atom.shared.add.u32 %r5, [%r4], 1; ld.shared.u32 %r6, [%r4];",
    "st.shared.u8 [%r4], %r1; ld.shared.u32 %r5, [%r4];",  # padding
    "st.u32 [%d2], %r1; ld.shared.u32 %r5, [%r2];",  # generic
    "ld.global.u32 %r5, [%d1];",
    "cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.wait_all; ld.shared.u32 %r5, [%r4];",
]


@pytest.mark.parametrize("body", CLEAN)
def test_no_false_warnings(body):
    case = kernel(body)
    _, trace = case.run()
    assert not any("ever wrote" in text for text in trace.warnings)
    if "cp.async" not in body:
        assert slow(case.kernel, trace) == []


WRONG = [
    ("atom.shared.add.u32 %r5, [%r4], 1; ld.shared.u32 %r6, [%r4];", ["atom.shared.add.u32"]),
    ("st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1}; ld.shared.v2.u32 {%r5, %r6}, [%r2+16];", ["ld.shared.v2.u32"]),
    ("ld.u32 %r5, [%d2]; ld.shared.s8 %r6, [%r2+511];", ["ld.u32", "ld.shared.s8"]),
    ("setp.lt.u32 %p1, %r1, 40; @%p1 st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4];", ["ld.shared.u32"]),
    ("mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r9, 1; @%p1 st.shared.u32 [%r2], 1; ld.shared.u32 %r5, [%r2];",
     ["ld.shared.u32"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "opcodes"), WRONG)
def test_every_kind_of_read(body, opcodes):
    assert found(body)[0] == opcodes


def test_random_accesses():
    """Reads and writes at random places by random lanes: as the slow way finds them."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        body = ""
        for _ in range(12):
            low, high = sorted(rng.integers(0, 65, 2).tolist())
            offset, scale = int(rng.integers(0, 32)) * 4, int(rng.choice([0, 4, 8]))
            text = rng.choice(["st.shared.u32 [%r6], 1;", "ld.shared.u32 %r7, [%r6];", "red.shared.add.u32 [%r6], 1;",
                               "st.shared.u16 [%r6+2], 1;", "ld.shared.u8 %r7, [%r6+1];"])  # fmt: skip
            body += (
                f"setp.ge.u32 %p1, %r1, {low}; setp.lt.and.u32 %p2, %r1, {high}, %p1; rem.u32 %r8, %r1, 40;"
                f"mad.lo.u32 %r6, %r8, {scale}, {offset}; add.u32 %r6, %r6, %r2; @%p2 {text}\n"
            )
        found(body)
