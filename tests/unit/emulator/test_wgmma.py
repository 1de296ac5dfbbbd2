"""wgmma in both engines: shared-memory layouts, element types and options against exact arithmetic."""

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, pointer
from matrix_kernels import dense_of, registers_of, vector
from reference.interpreter.interpreter import interpret
from reference.interpreter.matrix_numbers import numbers
from some_examples import one_in

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.forms.matrix_layout import fragment_a, fragment_c
from ppt_gpu.emulator.forms.wgmma_form import fields
from ppt_gpu.emulator.run.run import run as run_compiled
from ppt_gpu.ptx import parse_module
from ppt_gpu.workload.workload import Argument, Buffer

HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n"
SHARED = 65536
SECOND = 10240  # where B begins in shared memory, behind A
SIZE = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "b1": 4}
PIECES = {0: 1, 1: 8, 2: 4, 3: 2}  # 16 B pieces of a block's row, by swizzle mode


def source(opcode, tail, d_registers, a_registers, shared=SHARED):
    """k(a, b, d, first, second): shared memory is filled from b, the warpgroup's registers from a and d.

    No barrier stands around the product, behind which shared memory is filled with something else: the warps come to
    it, and leave it, together.
    """
    d, lines = vector("d", d_registers), []
    lines.append(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u64 first, .param .u64 second) {"
    )
    lines.append(f".shared .align 1024 .b8 s[{shared}]; .reg .b32 %d<{d_registers}>, %a<4>, %i<4>; .reg .pred %p, %q;")
    lines.append(".reg .b64 %x<6>; mov.u32 %i0, %tid.x; ld.param.u64 %x0, [b]; mov.u32 %i1, %i0;")
    lines.append("fill: mul.wide.u32 %x1, %i1, 4; add.s64 %x1, %x1, %x0; ld.global.b32 %i2, [%x1];")
    lines.append("shl.b32 %i3, %i1, 2; mov.u32 %d0, s; add.u32 %i3, %i3, %d0; st.shared.b32 [%i3], %i2;")
    lines.append(f"add.u32 %i1, %i1, 128; setp.lt.u32 %q, %i1, {shared // 4}; @%q bra fill;")
    for name, count in (("a", a_registers), ("d", d_registers)):
        lines.append(
            f"ld.param.u64 %x0, [{name}]; mul.wide.u32 %x1, %i0, {4 * count}; add.s64 %x{2 + (name == 'd')}, %x0, %x1;"
        )
        at = 2 + (name == "d")
        lines += [f"ld.global.b32 %{name}{r}, [%x{at}+{4 * r}];" for r in range(count)]
    lines.append("ld.param.u64 %x4, [first]; ld.param.u64 %x5, [second]; setp.ne.u64 %p, %x4, 1;")
    lines.append("wgmma.fence.sync.aligned;")
    left = vector("a", 4) if a_registers else "%x4"
    lines.append(
        f"{opcode} {d}, {left}, %x5, %p{tail}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    )
    lines += [f"st.global.b32 [%x3+{4 * r}], %d{r};" for r in range(d_registers)]
    lines.append("mov.u32 %i1, %i0; mov.u32 %d0, s; spoil: shl.b32 %i3, %i1, 2; add.u32 %i3, %i3, %d0;")
    lines.append("st.shared.b32 [%i3], %i0; add.u32 %i1, %i1, 128;")
    lines.append(f"setp.lt.u32 %q, %i1, {shared // 4}; @%q bra spoil;")
    return HEAD + "\n".join([*lines, "ret; }"])


def lay_out(image, start, matrix, size, mode, turned, spare):
    """Put element codes [rows, K] into the shared image, block by block. Returns the descriptor.

    Blocks are 8 lines of 16 B pieces; in line l of a swizzled block piece p stands at place p ^ (l * pieces / 8).
    """
    pieces = PIECES[mode]
    lines = matrix.T if turned else matrix  # elements of a line lie side by side
    per_piece = 16 // size
    raw = np.ascontiguousarray(lines).astype(f"u{size}").view("u1").reshape(len(lines), -1, 16)
    count, across = raw.shape[:2]
    block = 128 * pieces + (spare if mode == 0 else 0)  # distance of blocks
    down, along = (block * (across // pieces) if across > pieces else block), block
    for line in range(count):
        for piece in range(across):
            column, inside = divmod(piece, pieces)
            place = inside ^ (line % 8 * pieces // 8)
            at = start + line // 8 * down + column * along + line % 8 * 16 * pieces + 16 * place
            image[at : at + 16] = raw[line, piece]
    if turned:
        leading, stride = (down, along) if mode == 0 else (along, down)
    else:
        leading, stride = along, down
    assert per_piece * across == lines.shape[1]
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def elements(rng, kind, shape):
    """(element codes, values): small whole numbers."""
    if kind == "b1":
        codes = rng.integers(0, 1 << 32, shape, dtype="u8")
    elif kind in ("s8", "u8"):
        codes = rng.integers(0, 256, shape, dtype="u8")
    elif kind in ("e4m3", "e5m2"):
        codes = rng.choice({"e4m3": [0x38, 0xB8, 0x40, 0x30, 0], "e5m2": [0x3C, 0xBC, 0x40, 0x38, 0]}[kind], shape)
    else:
        values = rng.integers(-3, 4, shape).astype("f4")
        codes = {"f16": lambda: values.astype("f2").view("u2"), "bf16": lambda: values.view("u4") >> 16}.get(
            kind, lambda: values.view("u4")
        )()
    codes = np.ascontiguousarray(codes).astype("u8")
    return codes, numbers(codes.ravel(), kind).reshape(shape)


CASES = [
    # kind, D, N, swizzle of A (None: registers) and B, M- or N-major, negated
    ("f16", "f32", 64, 1, 1, (0, 0), (1, 1)), ("f16", "f32", 64, 1, 1, (0, 1), (1, 1)),
    ("f16", "f32", 128, 2, 2, (1, 0), (1, 1)), ("f16", "f16", 24, 3, 0, (0, 0), (1, -1)),
    ("f16", "f32", 16, 0, 3, (0, 1), (-1, 1)), ("f16", "f32", 32, 0, 0, (1, 1), (1, 1)),
    ("f16", "f32", 256, None, 1, (0, 1), (-1, 1)), ("bf16", "f32", 64, 3, 2, (1, 1), (1, 1)),
    ("bf16", "f32", 8, None, 0, (0, 0), (1, -1)), ("tf32", "f32", 40, 2, 1, None, (1, 1)),
    ("e4m3", "f32", 64, 1, 3, None, (1, 1)), ("e5m2", "f16", 16, None, 2, None, (1, 1)),
    ("s8", "s32", 64, 1, 1, None, None), ("u8", "s32", 32, None, 0, None, None), ("b1", "s32", 24, 3, 2, None, None),
]  # fmt: skip


@pytest.mark.parametrize("keep", one_in(2, [True, False]))
@pytest.mark.parametrize("case", one_in(2, CASES), ids=lambda c: "-".join(str(part) for part in c[:6]))
def test_product(case, keep):
    kind, d, n, mode_a, mode_b, turns, scales = case
    size, rng = SIZE[kind], np.random.default_rng(5)
    depth = 32 // size
    a, left = elements(rng, kind, (64, depth))
    b, right = elements(rng, kind, (n, depth))
    shared = SECOND + 128 * n  # to fill it takes both engines longer than the product
    image = rng.integers(0, 256, shared).astype("u1")
    turn_a, turn_b = turns or (0, 0)
    first = 0
    fill_a = np.zeros(128 * 4, "u4")
    if mode_a is None:
        fragment = fragment_a(16, depth, 32 if kind == "b1" else 8 * size)
        fill_a = np.concatenate([registers_of(fragment, a[16 * w : 16 * w + 16].ravel()) for w in range(4)]).view("u4")
    else:
        first = lay_out(image, 1024, a, size, mode_a, turn_a, 32)
    second = lay_out(image, SECOND, b, size, mode_b, turn_b, 32)
    fragment = fragment_c(16, n, 16 if d == "f16" else 32)
    old = rng.integers(-9, 10, (64, n))
    codes = (
        old.astype("f2").view("u2") if d == "f16" else old.astype("f4").view("u4") if d == "f32" else old & 0xFFFFFFFF
    )
    fill_d = np.concatenate(
        [registers_of(fragment, codes[16 * w : 16 * w + 16].astype("u8").ravel()) for w in range(4)]
    )
    k = 256 if kind == "b1" else depth
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{kind}.{kind}" + (".and.popc" if kind == "b1" else "")
    tail = "" if scales is None else f", {scales[0]}, {scales[1]}"
    if turns:
        tail += f", {turn_b}" if mode_a is None else f", {turn_a}, {turn_b}"
    text = source(opcode, tail, fragment.registers, 0 if mode_a is not None else 4, shared)
    if not keep:
        text = text.replace("setp.ne.u64 %p, %x4, 1;", "setp.eq.u64 %p, %x4, 1;")
    buffers = [Buffer("a", "u32", 512), Buffer("b", "u8", shared), Buffer("d", "u8", fill_d.nbytes)]
    arguments = [pointer("a"), pointer("b"), pointer("d"), Argument("u64", first), Argument("u64", second)]
    fill = {"a": fill_a, "b": image, "d": fill_d}
    run = Case(parse_module(text, "test.ptx"), "k", (1,), (128,), arguments, buffers, fill=fill)
    memory, _ = check_against_interpreter(run)
    parts = memory.view("d", "u1").reshape(4, -1)
    got = np.concatenate([dense_of(fragment, part).reshape(16, n) for part in parts])
    signs = np.prod(scales) if scales else 1
    total = np.bitwise_count(a[:, None] & b[None]).sum(axis=2) if kind == "b1" else signs * (left @ right.T)
    expected = total + (old if keep else 0)
    result = numbers(got.ravel(), d).reshape(64, n)
    assert np.array_equal(result, expected)


def test_descriptor_fields():
    assert fields(0x40 | 0x8 << 16 | 0x10 << 32 | 5 << 49 | 1 << 62) == (1024, 128, 256, 5, 1)


def test_outside_of_shared_memory():
    opcode = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    text = source(opcode, ", 1, 1, 0, 0", 4, 0)
    buffers = [Buffer("a", "u32", 512), Buffer("b", "u8", SHARED), Buffer("d", "u32", 512)]
    arguments = [pointer("a"), pointer("b"), pointer("d"), Argument("u64", 0x3FFF), Argument("u64", 0)]
    run = Case(parse_module(text, "test.ptx"), "k", (1,), (128,), arguments, buffers)
    with pytest.raises(PptError, match="out of bounds"):
        run.run()


@pytest.mark.parametrize(
    ("opcode", "reason"),
    [
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", "sparse A"),
        ("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16", "there is no wgmma of m64n12k16"),
    ],
)
def test_refused(opcode, reason):
    text = source(opcode, ", 1, 1, 0, 0", 4, 0)
    buffers = [Buffer("a", "u32", 512), Buffer("b", "u8", SHARED), Buffer("d", "u32", 512)]
    arguments = [pointer("a"), pointer("b"), pointer("d"), Argument("u64", 0), Argument("u64", 0)]
    run = Case(parse_module(text, "test.ptx"), "k", (1,), (128,), arguments, buffers)
    with pytest.raises(PptError, match=reason):
        run.run()


def test_a_warpgroup_that_is_not_whole_meets_as_it_is():
    """As on no GPU; the simulation warns of it."""
    text = source("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", ", 1, 1, 0, 0", 4, 0)
    buffers = [Buffer("a", "u32", 512), Buffer("b", "u8", SHARED), Buffer("d", "u32", 512)]
    arguments = [pointer("a"), pointer("b"), pointer("d"), Argument("u64", 0), Argument("u64", 0)]
    check_against_interpreter(Case(parse_module(text, "test.ptx"), "k", (1,), (96,), arguments, buffers))


APART = """.visible .entry k() {
    .reg .pred %p; .reg .b32 %r<2>;
    mov.u32 %r0, %tid.x; setp.ge.u32 %p, %r0, 96; @%p bra other;
    wgmma.fence.sync.aligned; ret;
other:
    bar.sync 0; ret;
}
"""


@pytest.mark.parametrize("engine", [run_compiled, interpret])
def test_a_warp_that_stays_away_is_named(engine):
    case = Case(parse_module(HEAD + APART, "test.ptx"), "k", (1,), (128,), [], [])
    with pytest.raises(PptError, match=r"the wgmma\.fence or wait_group of its warpgroup"):
        case.run(engine=engine)
