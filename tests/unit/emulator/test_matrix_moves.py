"""Fragments between memory and registers: wmma, ldmatrix, stmatrix, movmatrix, in CUDA kernels against numpy."""

from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, integer, pointer, text_case
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import load_module
from ppt_gpu.workload.fill import bf16_bits
from ppt_gpu.workload.workload import Buffer

DATA = Path(__file__).parents[2] / "data" / "matrix"
#: kernel -> m, n, k, element type, accumulator, layouts of A, B, C, spare elements of a line
TILES = {
    "half_rr": (16, 16, 16, "f2", "f4", "rrr"), "half_cr": (16, 16, 16, "f2", "f4", "crc"),
    "half_rc": (32, 8, 16, "f2", "f4", "rcr"), "half_cc": (8, 32, 16, "f2", "f4", "ccr"),
    "half_half": (16, 16, 16, "f2", "f2", "rcr"), "bf16_rc": (16, 16, 16, "bf16", "f4", "rcr"),
    "tf32_rc": (16, 16, 8, "f4", "f4", "rcr"), "double_cr": (8, 8, 4, "f8", "f8", "crc"),
    "s8_rc": (16, 16, 16, "i1", "i4", "rcr"), "u8_cr": (32, 8, 16, "u1", "i4", "crc"),
}  # fmt: skip


def matrix(rng, rows, columns, kind):
    """Small numbers whose products and sums are exact in every type, so that any order of sums gives the same."""
    low, high = (0, 200) if kind == "u1" else (-100, 100) if kind in ("i1", "i4") else (-8, 8)
    return rng.integers(low, high, (rows, columns)).astype("f4" if kind == "bf16" else kind)


def in_memory(values, layout, spare, kind):
    """The matrix as it lies in memory, lines `spare` elements further apart than they are long."""
    lines = values if layout == "r" else values.T
    padded = np.zeros((len(lines), lines.shape[1] + spare), values.dtype)
    padded[:, : lines.shape[1]] = lines
    return (bf16_bits(padded) if kind == "bf16" else padded).ravel(), padded.shape[1]


@pytest.mark.parametrize("name", TILES)
def test_wmma(name):
    m, n, k, kind, total, layouts = TILES[name]
    rng = np.random.default_rng(3)
    a, b, c = matrix(rng, m, k, kind), matrix(rng, k, n, kind), matrix(rng, m, n, total)
    wide = np.float64 if total[0] == "f" else np.int64
    expected = (a.astype(wide) @ b.astype(wide) + c.astype(wide)).astype(total)
    fill, pitches = {}, []
    for letter, values, layout, of in zip("abc", (a, b, c), layouts, (kind, kind, total), strict=True):
        fill[letter], pitch = in_memory(values, layout, 16, of)
        pitches.append(integer(pitch))
    buffers = [Buffer(letter, "u8", values.nbytes) for letter, values in fill.items()]
    buffers.append(Buffer("d", "u8", fill["c"].nbytes))
    arguments = [pointer("a"), pointer("b"), pointer("c"), pointer("d"), *pitches]
    case = Case(load_module(DATA / "wmma.ptx"), name, (1,), (32,), arguments, buffers, fill=fill)
    memory, trace = check_against_interpreter(case)
    lines = memory.view("d", total).reshape(-1, pitches[2].value)
    lines = lines[:, : n if layouts[2] == "r" else m]
    assert np.array_equal(lines if layouts[2] == "r" else lines.T, expected)
    size = np.dtype("u2" if kind == "bf16" else kind).itemsize
    line = (k if layouts[0] == "r" else m) * size
    share, lane = m * k * size // 32, np.arange(32)  # the lanes divide the lines among them
    expected_places = lane * share // line * pitches[0].value * size + lane * share % line
    assert trace.access_base[0] == memory.address_of("a")
    assert np.array_equal(trace.pattern_offset[trace.access_pattern[0]], expected_places)


def test_wmma_through_shared_memory():
    rng = np.random.default_rng(4)
    a, b = matrix(rng, 16, 16, "f2"), matrix(rng, 16, 16, "f2")
    c = matrix(rng, 16, 16, "f4")
    fill = {"a": a.ravel(), "b": b.T.ravel(), "c": c.ravel()}
    buffers = [Buffer("a", "f16", 256), Buffer("b", "f16", 256), Buffer("c", "f32", 256), Buffer("d", "f32", 256)]
    arguments = [*(pointer(name) for name in "abcd"), *[integer(0)] * 3]
    case = Case(load_module(DATA / "wmma.ptx"), "shared_half", (1,), (32,), arguments, buffers, fill=fill)
    memory, _ = check_against_interpreter(case)
    assert np.array_equal(memory.view("d", "f4").reshape(16, 16), 2 * (a.astype("f4") @ b.astype("f4") + 1) + c)


def test_ldmatrix_feeds_mma():
    rng = np.random.default_rng(5)
    a, b = matrix(rng, 16, 16, "f2"), matrix(rng, 16, 8, "f2")
    buffers = [Buffer("a", "f16", 256), Buffer("b", "f16", 128), Buffer("d", "f32", 128)]
    case = Case(
        load_module(DATA / "rows.ptx"), "product", (1,), (32,), [pointer(n) for n in "abd"], buffers,
        fill={"a": a.ravel(), "b": b.ravel()},
    )  # fmt: skip
    memory, _ = check_against_interpreter(case)
    assert np.array_equal(memory.view("d", "f4").reshape(16, 8), a.astype("f4") @ b.astype("f4"))


def test_transposes():
    values = np.random.default_rng(6).integers(0, 1 << 16, (4, 8, 8)).astype("u2")
    buffers = [Buffer("in", "u16", 256), Buffer("out", "u16", 256)]
    case = Case(
        load_module(DATA / "rows.ptx"), "transposes", (1,), (32,), [pointer("in"), pointer("out")], buffers,
        fill={"in": values.ravel()},
    )  # fmt: skip
    memory, trace = check_against_interpreter(case)
    out = memory.view("out", "u2").reshape(4, 8, 8)
    assert np.array_equal(out, np.stack([values[0].T, values[1].T, values[2], values[3].T]))
    rows = [m for m in trace.pattern_mask[trace.access_pattern] if m in (0xFF, 0xFFFF)]
    assert len(rows) == 6  # the lanes that give addresses, and no others


@pytest.mark.parametrize("matrices", [1, 2])
def test_byte_matrices(matrices):
    """ldmatrix.m16n16.trans.b8: register r of lane 4 g + t holds rows 4 t .. 4 t + 3 of column g + 8 r."""
    values = np.random.default_rng(7).integers(0, 256, (matrices, 16, 16)).astype("u1")
    registers = ", ".join(f"%d{r}" for r in range(2 * matrices))
    moves = "".join(f"st.global.b32 [%q+{128 * r}], %d{r};" for r in range(2 * matrices))
    body = f"""
    .visible .entry k(.param .u64 in, .param .u64 out) {{
    .shared .align 16 .b8 s[512]; .reg .b32 %r<9>; .reg .b32 %d<4>; .reg .b64 %p, %q, %x;
    mov.u32 %r0, %tid.x; ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; mul.wide.u32 %x, %r0, 16; add.s64 %p, %p, %x;
    ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%p]; shl.b32 %r5, %r0, 4; mov.u32 %r6, s; add.u32 %r5, %r5, %r6;
    st.shared.v4.b32 [%r5], {{%r1, %r2, %r3, %r4}}; bar.warp.sync -1;
    ldmatrix.sync.aligned.m16n16.x{matrices}.trans.shared.b8 {{{registers}}}, [%r5];
    mul.wide.u32 %x, %r0, 4; add.s64 %q, %q, %x; {moves} ret; }}"""
    buffers = [Buffer("in", "u8", 512), Buffer("out", "u8", 512)]
    fill = {"in": np.resize(values.ravel(), 512)}
    case = text_case(body, (1,), (32,), [pointer("in"), pointer("out")], buffers, fill=fill)
    memory, _ = check_against_interpreter(case)
    out = memory.view("out", "u1")[: 256 * matrices].reshape(matrices, 2, 8, 4, 4)  # matrix, register, g, t, part
    assert np.array_equal(out.reshape(matrices, 16, 16), values.transpose(0, 2, 1))


def test_tensor_memory_is_refused():
    body = ".visible .entry k() { .reg .b32 %r; mov.u32 %r, 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r, 64; }"
    case = text_case(body, (1,), (32,), [], [])
    for engine in (run, interpret):
        with pytest.raises(PptError, match="tensor memory"):
            case.run(engine=engine)
