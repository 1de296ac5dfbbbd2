"""Bulk copies, boxes of tensors and tensor maps, in CUDA and Triton kernels against numpy."""

from pathlib import Path

import numpy as np
import pytest
from jit_kernels import Case, check_against_interpreter, integer, pointer, text_case
from reference.interpreter.interpreter import interpret
from test_triton_matmul import matmul

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import load_module
from ppt_gpu.workload.argument_text import parse_argument
from ppt_gpu.workload.arguments import pack_parameters
from ppt_gpu.workload.tensormap import unpack
from ppt_gpu.workload.workload import Buffer

MODULE = load_module(Path(__file__).parents[2] / "data" / "matrix" / "bulk.ptx")


def tensor(text):
    return parse_argument(f"tensormap({text})", 0)[0]


def test_rounds_of_copies():
    values = np.random.default_rng(1).integers(-1000, 1000, (5, 512)).astype("i4")
    buffers = [Buffer("in", "s32", 2560), Buffer("out", "s32", 2560), Buffer("sum", "s32", 512)]
    arguments = [pointer("in"), pointer("out"), pointer("sum"), integer(5)]
    case = Case(MODULE, "rounds", (1,), (64,), arguments, buffers, fill={"in": values.ravel()})
    memory, _ = check_against_interpreter(case)
    expected = values + np.arange(5)[:, None]
    assert np.array_equal(memory.view("out", "i4").reshape(5, 512), expected)
    assert np.array_equal(memory.view("sum", "i4"), expected.sum(axis=0))


#: swizzle -> 16 B piece p of 64-byte row r stands at piece ...
SWIZZLED = {"none": lambda r, p: p, "64B": lambda r, p: p ^ (r // 2 % 4)}


@pytest.mark.parametrize("swizzle", ["none", "64B"])
@pytest.mark.parametrize(("x", "y", "u", "v"), [(8, 2, 0, 0), (-5, -3, 16, 4), (90, 60, 70, 33), (200, 0, 0, 0)])
def test_boxes(swizzle, x, y, u, v):
    """A box goes to shared memory, zeros outside of the tensor, and from there to another place."""
    rng = np.random.default_rng(2)
    source = rng.integers(1, 1 << 16, (64, 104)).astype("u2")
    target = rng.integers(1, 1 << 16, (40, 96)).astype("u2")
    maps = [
        tensor(f"in, dims=100x64, box=32x8, type=u16, strides=208, swizzle={swizzle}"),
        tensor(f"out, dims=90x40, box=32x8, type=u16, strides=192, swizzle={swizzle}"),
    ]
    buffers = [Buffer("in", "u16", source.size), Buffer("out", "u16", target.size), Buffer("seen", "u16", 256)]
    arguments = [*maps, pointer("seen"), *(integer(value) for value in (x, y, u, v))]
    fill = {"in": source.ravel(), "out": target.ravel()}
    case = Case(MODULE, "boxes", (1,), (32,), arguments, buffers, fill=fill)
    memory, _ = check_against_interpreter(case)
    padded = np.zeros((64 + 80, 100 + 400), "u2")
    padded[40:104, 200:300] = source[:, :100]
    box = padded[40 + y : 48 + y, 200 + x : 232 + x]
    seen = memory.view("seen", "u2").reshape(8, 4, 8)
    for row in range(8):
        for piece in range(4):
            place = SWIZZLED[swizzle](row, piece)
            assert np.array_equal(seen[row, place], box[row, 8 * piece : 8 * piece + 8])
    for row in range(v, min(v + 8, 40)):
        end = min(u + 32, 90)
        target[row, u:end] = box[row - v, : end - u]
    assert np.array_equal(memory.view("out", "u2").reshape(40, 96), target)


def test_three_axes_steps_and_nan():
    source = np.arange(6 * 10 * 40, dtype="f4").reshape(6, 10, 40)
    text = "in, dims=40x10x6, box=16x3x2, type=f32, steps=2x1x1, fill=nan"
    arguments = [tensor(text), pointer("seen"), integer(30), integer(8), integer(4)]
    buffers = [Buffer("in", "f32", source.size), Buffer("seen", "f32", 48)]
    case = Case(MODULE, "cube", (1,), (64,), arguments, buffers, fill={"in": source.ravel()})
    memory, _ = check_against_interpreter(case)
    expected = np.full((2, 3, 8), np.nan, "f4")
    expected[:, :2, :5] = source[4:6, 8:10, 30::2]
    assert np.array_equal(memory.view("seen", "f4").reshape(2, 3, 8), expected, equal_nan=True)


def test_triton_matmul_with_maps_made_on_the_device():
    case, expected = matmul("tma", 128)
    memory, _ = check_against_interpreter(case, blocks=[0, 3])
    got = memory.view("c", "f4").reshape(128, 128)
    assert np.array_equal(got[:64, :64], expected[:64, :64])
    assert np.array_equal(got[64:, 64:], expected[64:, 64:])


def test_packed_map():
    kernel = MODULE.kernels["cube"]
    argument = tensor("data+32, dims=64x32x4, box=16x8x2, type=bf16, swizzle=32B")
    launch = Case(MODULE, "cube", (1,), (64,), [argument, *[integer(0)] * 4], []).launch
    launch = type(launch)("cube", launch.grid, launch.block, (argument, pointer("data"), *launch.arguments[2:]))
    raw = pack_parameters(kernel, launch, lambda name: 0x7000)
    found = unpack(raw[:128])
    assert (found.address, found.extents, found.box) == (0x7020, (64, 32, 4), (16, 8, 2))
    assert (found.strides, found.steps, found.swizzle, found.fill) == ((128, 4096), (1, 1, 1), 1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data, dims=64x32, box=16x8", "has no type="),
        ("data, dims=64x32, box=16x8, type=f16, swizle=64B", "no option of a tensor map"),
        ("data, dims=64x32, box=16, type=f16", "as many each"),
        ("data, dims=63x32, box=16x8, type=f16", "multiples of 16 bytes"),
        ("data, dims=64x32, box=64x8, type=f32, swizzle=128B", "more than the 128 of its swizzle"),
        ("data, dims=64x32, box=16x8, type=f16, swizzle=12", "swizzle=12"),
        ("data, dims=64x-1, box=16x8, type=f16", "positive numbers"),
        ("4, dims=64, box=16, type=f16", "no buffer's name"),
    ],
)
def test_bad_maps(text, message):
    with pytest.raises(PptError, match=message):
        tensor(text)


COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("engine", [run, interpret])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{COPY} [s], [%p], 20, [s];", "cannot work with its operands|no multiple of 16"),
        (f"{COPY} [s], [%p], 4096, [s];", "out of bounds|after the end|byte 0 of"),
        (f"{COPY} [s+8], [%p], 16, [s];", "misaligned|not aligned"),
        ("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%p, {%r}], [s];",
         "cannot work with its operands|no tensor map"),
        ("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
         "[s], [%p, {%r, %r, %r}], [s], {%h};", "im2col"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.f32 [%p], [s], 16;", "no reduction .xor of .f32"),
    ],
)  # fmt: skip
def test_faults(engine, body, message):
    head = ".visible .entry k(.param .u64 a) { .shared .align 128 .b8 s[256]; .reg .b64 %p; .reg .b32 %r; .reg .b16 %h;"
    text = head + f"mov.b32 %r, 0; mov.b16 %h, 0; ld.param.u64 %p, [a]; {body} ret; }}"
    fill = {"a": np.full(256, 255, "u1")}
    case = text_case(text, (1,), (1,), [pointer("a")], [Buffer("a", "u8", 256)], fill=fill)
    with pytest.raises(PptError, match=message):
        case.run(engine=engine)
