"""Numbers and initial values."""

import math
import struct

import pytest

from ppt_gpu.ptx.module import Imm
from ppt_gpu.ptx.parsing.initialisers import BadInitialiser, initial_bytes
from ppt_gpu.ptx.parsing.lexer import number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", Imm(12)),
        ("-12", Imm(-12)),
        ("0x1F", Imm(31)),
        ("0X1fU", Imm(31)),
        ("0b101", Imm(5)),
        ("017", Imm(15)),
        ("0", Imm(0)),
        ("7U", Imm(7)),
        ("0xFFFFFFFFFFFFFFFF", Imm(2**64 - 1)),
        ("1.5", Imm(1.5)),
        ("-1e-3", Imm(-1e-3)),
        ("0f3F800000", Imm(1.0, 0x3F800000, 32)),
        ("0F3f800000", Imm(1.0, 0x3F800000, 32)),
        ("-0f3F800000", Imm(-1.0, 0xBF800000, 32)),
        ("0d3FF8000000000000", Imm(1.5, 0x3FF8000000000000, 64)),
        ("0f3F80", None),
        ("08", None),
        ("0x", None),
        ("1.2.3", None),
        ("18446744073709551616", None),
        ("%r1", None),
    ],
)
def test_number(text: str, expected: Imm | None) -> None:
    assert number(text) == expected


def test_bits_of_nan_are_kept() -> None:
    nan = number("0f7FC12345")
    assert nan is not None and nan.bits == 0x7FC12345 and math.isnan(nan.value)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


@pytest.mark.parametrize(
    ("text", "kind", "dims", "size", "expected"),
    [
        ("{1, 2}", "s32", (4,), 4, words(1, 2, 0, 0)),
        ("{1, 2}", "s32", (0,), 4, words(1, 2)),
        ("{{1}, {2, 3}}", "s32", (2, 2), 4, words(1, 0, 2, 3)),
        ("{{1}, {2, 3}}", "s32", (0, 2), 4, words(1, 0, 2, 3)),
        ("{1, 2, 3}", "s32", (2, 2), 4, words(1, 2, 3, 0)),
        ("{{{1}, {2}}, {{3}}}", "s32", (2, 2, 2), 4, words(1, 0, 2, 0, 3, 0, 0, 0)),
        ("-1", "s16", (), 2, b"\xff\xff"),
        ("0f40000000", "f32", (), 4, struct.pack("<f", 2.0)),
        ("0f40000000", "f64", (), 8, struct.pack("<d", 2.0)),
        ("0f40000000", "b32", (), 4, struct.pack("<f", 2.0)),
        ("3", "f32", (), 4, struct.pack("<f", 3.0)),
    ],
)
def test_values(text: str, kind: str, dims: tuple[int, ...], size: int, expected: bytes) -> None:
    assert initial_bytes(text, kind, dims, size) == (expected, ())


def test_symbols() -> None:
    data, symbols = initial_bytes("{ a, generic(b)+4, c-8, 5 }", "u64", (4,), 8)
    assert symbols == ((0, "a", 0), (8, "b", 4), (16, "c", -8))
    assert data == bytes(24) + b"\5" + bytes(7)


@pytest.mark.parametrize(
    ("text", "kind", "dims"),
    [
        ("{1, 2, 3}", "u8", (2,)),
        ("{1, 256}", "u8", (2,)),
        ("{1 2}", "u8", (2,)),
        ("{1, , 2}", "u8", (3,)),
        ("{1, 2", "u8", (2,)),
        ("1}", "u8", ()),
        ("{{1}}", "u8", (2,)),
        ("1.5", "u8", ()),
        ("1, 2", "u8", ()),
        ("generic(a", "u8", ()),
        ("{0xFF(a), 0xFF00(a)}", "u8", (2,)),
        ("{0xFF00(a)}", "u8", (1,)),
        ("{1e400}", "f32", (1,)),
        ("{1}", "u8", (1 << 40,)),
    ],
)
def test_bad_values(text: str, kind: str, dims: tuple[int, ...]) -> None:
    with pytest.raises(BadInitialiser):
        initial_bytes(text, kind, dims, {"u8": 1, "f32": 4}[kind])
