"""Argument texts, checks against a kernel, and the packed parameter block."""

import struct
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.ptx.module import Kernel, Param
from ppt_gpu.workload.argument_text import parse_argument, parse_buffer
from ppt_gpu.workload.arguments import check_arguments, pack_parameters, workload_from_arguments
from ppt_gpu.workload.fill import fill
from ppt_gpu.workload.scalars import encode_scalar
from ppt_gpu.workload.workload import Argument, Buffer, Launch


def kernel(*params, **directives):
    """A kernel with parameters (type, bytes), at their natural alignment."""
    placed, offset = [], 0
    for number, (kind, size) in enumerate(params):
        align = 8 if size > 8 else size
        offset = -(-offset // align) * align
        placed.append(Param(f"p{number}", kind, size, align, offset))
        offset += size
    return Kernel("k", tuple(placed), (), (), (), {}, directives)


def launch(*arguments, block=(32, 1, 1)):
    return Launch("k", (1, 1, 1), block, arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32=1024", Argument("s32", 1024)),
        ("u64=0x10", Argument("u64", 16)),
        ("s8=-128", Argument("s8", -128)),
        ("b32=0xffffffff", Argument("b32", 0xFFFFFFFF)),
        ("f32=2.5", Argument("f32", 2.5)),
        ("f64=-1e300", Argument("f64", -1e300)),
        ("x+0x10", Argument("u64", buffer="x", offset=16)),
    ],
)
def test_scalar_texts(text, expected):
    assert parse_argument(text, 0) == (expected, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[1048576]", Buffer("b", "f32", 1048576)),
        ("f32[1024]=iota", Buffer("b", "f32", 1024, "iota")),
        ("f32[4*4]=const:1.5", Buffer("b", "f32", 16, "const:1.5")),
        ("f32[8]=random:9", Buffer("b", "f32", 8, "random", 9)),
        ("f32[8]:copied=random", Buffer("b", "f32", 8, "random", copied=True)),
        ("i32[8]=random(-3,3)", Buffer("b", "s32", 8, "random", low=-3.0, high=3.0)),
        ("u16[2]:copied", Buffer("b", "u16", 2, copied=True)),
    ],
)
def test_buffer_texts(text, expected):
    assert parse_buffer(text, "b") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i31=4", "unknown type 'i31'"),
        ("u8=256", "256 does not fit u8"),
        ("i32=1.5", "'1.5' is not an integer"),
        ("f32=one", "'one' is not a number"),
        ("f32[0]", "a buffer of 0 elements is out of range"),
        ("f32[-4]", "'-4' is not a count"),
        ("f32[4]:copy", "unknown buffer option 'copy'"),
        ("f32[4]=zeros:3", "'zeros' takes no value"),
        ("f32[4]=random(2,1)", "the range of random values is empty"),
        ("i32[4]=random", "random s32 values need a range"),
        ("u8[4]=random(0,300)", "300 does not fit u8"),
        ("f32[4]=random(1)", "is not a random content"),
        ("f32[4]=npy:", "no file is named"),
        ("f32[4]=npy:missing.npy", "the file missing.npy does not exist"),
        ("1024 rows", "'1024 rows' is not an argument"),
        ("struct(f32=1.5, 1024)", "1024: a member of a struct needs a type"),
        ("f32[4", "'f32[4' is not an argument"),
        ("struct(f32=1.5, two words)", "'two words' is not an argument"),
    ],
)
def test_bad_texts(text, message):
    with pytest.raises(PptError) as caught:
        parse_argument(text, 0)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "header",
    [b"{{{", b"{'descr': '<f4', 'shape': (1.", b"{'descr': 'f\xff'", b"{'shape': (99999999999999999999,)}", b"1", b""],
)
def test_damaged_arrays(tmp_path, header):
    """NumPy reads the header as Python, and raises whatever comes of that."""
    file = tmp_path / "x.npy"
    np.save(file, np.zeros(4, "f4"))
    whole = file.read_bytes()
    file.write_bytes(whole[:10] + header + whole[10 + len(header) :])
    for text in (f"f32[4]=npy:{file}", f"f32[]=npy:{file}"):
        with pytest.raises(PptError, match="is not a readable") if header else nullcontext():
            parse_argument(text, 0)


@pytest.mark.parametrize(("text", "hint"), [("i32[4]=random", "random(0,3)"), ("s8[4096]=random", "random(0,127)")])
def test_ranges_that_are_suggested_are_ranges(text, hint):
    with pytest.raises(PptError) as caught:
        parse_argument(text, 0)
    assert caught.value.hint is not None and caught.value.hint.endswith(hint)
    parse_argument(f"{text.partition('=')[0]}={hint}", 0)


def test_all_command_line_errors_at_once():
    with pytest.raises(InputErrors) as caught:
        workload_from_arguments("k.ptx", "", (0, 1), (2048,), ["f32[4]", "i31=4", "data"], 1 << 30, 999)
    messages = [error.message for error in caught.value.errors]
    assert messages == [
        "argument 2 (i31=4): unknown type 'i31'",
        "argument 3 (data) has no type",
        "grid.x is 0",
        "block.x is 2048",
        "dynamic_shared is 1073741824 B",
        "registers is 999",
    ]


def test_parameter_block():
    k = kernel(("u8", 1), ("f32", 4), ("u64", 8), ("s16", 2), ("b8", 12), ("b32", 4))
    block = pack_parameters(
        k,
        launch(
            Argument("u8", 200),
            Argument("f32", 0.1),
            Argument("u64", buffer="x", offset=4),
            Argument("s16", -2),
            Argument("struct", fields=(Argument("u8", 1), Argument("f32", 1.5), Argument("s16", -1))),
            Argument("f32", 2.0),
        ),
        {"x": 0x7000}.__getitem__,
    )
    expected = struct.pack("<B3xfQh6xB3xfh2xf", 200, 0.1, 0x7004, -2, 1, 1.5, -1, 2.0)
    assert block == expected


def test_a_pointer_may_be_a_number():
    assert pack_parameters(kernel(("u64", 8)), launch(Argument("u64", 5)), {}.__getitem__) == struct.pack("<Q", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "kernel 'k' has 2 parameters, 0 arguments given; missing: p0 (u64), p1 (f32)"),
        ((Argument("u64"), Argument("f32"), Argument("s32", 3)), "surplus: s32=3"),
        ((Argument("f64", 1.0), Argument("f32")), "argument 1 (f64=1.0) of kernel 'k': the parameter p0 is u64"),
        ((Argument("u64"), Argument("s32", 1)), "argument 2 (s32=1) of kernel 'k': the parameter p1 is f32"),
        ((Argument("u64"), Argument("u64", buffer="x")), "the parameter p1 is f32, not a pointer"),
        ((Argument("u32", 1), Argument("f32")), "argument 1 (u32=1) of kernel 'k': the parameter p0 is u64"),
        ((Argument("u64", -1), Argument("f32")), "-1 does not fit u64"),
        ((Argument("q7", 1), Argument("f32")), "unknown type 'q7'"),
        ((Argument("struct", fields=(Argument("u8"),)), Argument("f32")), "argument 1 (struct of 1 bytes)"),
    ],
)
def test_mismatches(arguments, message):
    with pytest.raises(InputErrors) as caught:
        check_arguments(launch(*arguments), kernel(("u64", 8), ("f32", 4)))
    assert message in str(caught.value)


def test_block_directives():
    with pytest.raises(InputErrors) as caught:
        check_arguments(launch(), kernel(reqntid=(64, 1, 1)))
    assert "requires the block 64x1x1, not 32x1x1" in str(caught.value)
    check_arguments(launch(block=(64, 1, 1)), kernel(reqntid=(64, 1, 1)))
    check_arguments(launch(block=(8, 8, 1)), kernel(maxntid=(64, 1, 1)))
    with pytest.raises(InputErrors) as caught:
        check_arguments(launch(block=(65, 1, 1)), kernel(maxntid=(64, 1, 1)))
    assert "allows blocks up to 64x1x1, not 65x1x1" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("f16", 1.0, b"\x00\x3c"),
        ("bf16", 1.0, b"\x80\x3f"),
        ("bf16", 1.00390625, b"\x80\x3f"),  # a tie, to even
        ("bf16", 1.01171875, b"\x82\x3f"),  # a tie, to even
        ("s64", -1, b"\xff" * 8),
    ],
)
def test_encodings(kind, value, expected):
    assert encode_scalar(kind, value) == expected


def test_encoding_overflow():
    with pytest.raises(PptError, match="too large for f32"):
        encode_scalar("f32", 1e60)


def test_a_ring_of_indices():
    argument, buffer = parse_argument("u32[10]=ring:3", 0)
    assert buffer.init == "ring:3" and argument.buffer == buffer.name
    raw = np.zeros(40, np.uint8)
    fill(raw, buffer, Path())
    assert raw.view("u4").tolist() == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [("f32[10]=ring:3", "elements are indices"), ("u32[10]=ring:11", "is no ring"), ("u32[10]=ring", "is no ring"),
     ("u8[1000]=ring:1", "999")],
)  # fmt: skip
def test_no_ring(text, message):
    with pytest.raises(PptError, match=message):
        parse_argument(text, 0)
