"""Structs within structs, and tensor maps in them, at the places that C++ gives them."""

import ctypes

import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.workload.arguments import pack_struct
from ppt_gpu.workload.value_text import parse_value


class Inner(ctypes.Structure):
    _fields_ = (("a", ctypes.c_uint8), ("b", ctypes.c_uint64), ("c", ctypes.c_uint8))


class Small(ctypes.Structure):
    _fields_ = (("a", ctypes.c_uint16), ("b", ctypes.c_uint8))


class Outer(ctypes.Structure):
    _fields_ = (
        ("first", ctypes.c_uint8),
        ("inner", Inner),
        ("small", Small),
        ("next", ctypes.c_uint8),
        ("last", ctypes.c_uint32),
    )


def packed(text: str) -> bytes:
    return pack_struct(parse_value(text), lambda name: {"a": 0x1000}[name])


def test_structs_within_structs():
    text = "struct(u8=1, struct(u8=2, u64=3, u8=4), struct(u16=5, u8=6), u8=7, u32=8)"
    expected = bytes(Outer(1, Inner(2, 3, 4), Small(5, 6), 7, 8))
    assert packed(text) == expected[: Outer.last.offset + 4]  # what follows the last member is not written


def test_an_empty_struct_takes_a_byte():
    assert packed("struct(struct(), u8=3)") == bytes([0, 3])
    assert packed("struct()") == b""


def test_a_tensor_map_among_members():
    tensormap = "tensormap(a, dims=64x32, box=8x8, type=f16)"
    whole = packed(f"struct(u8=9, {tensormap}, u32=7)")
    assert len(whole) == 64 + 128 + 4
    assert whole[:64] == bytes([9]) + bytes(63)
    assert whole[64:192] == packed(tensormap)
    assert whole[192:] == bytes([7, 0, 0, 0])
    assert packed(tensormap.replace("f16", "tf32")) == packed(tensormap.replace("f16", "f32"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct(u8=1, struct(u8=2, 5))", "5: a member of a struct needs a type"),
        ("struct(u8=1,)", "'' is not an argument"),
        ("struct(u8=1, tensormap(a, dims=64x32, type=f16))", "the tensor map has no box="),
    ],
)
def test_bad_members(text, message):
    with pytest.raises(PptError) as caught:
        parse_value(text)
    assert caught.value.message == message
