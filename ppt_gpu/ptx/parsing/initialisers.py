"""Initial values of variables: `= {1, 0x2, 0f3F800000, symbol+4, {nested}, 0xFF00(symbol)}` as bytes and addresses."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from ppt_gpu.ptx.module import TYPE_BYTES
from ppt_gpu.ptx.parsing.expressions import constant
from ppt_gpu.ptx.parsing.lexer import NAME, number

#: a variable with an initialiser may be this large, bytes
LARGEST_INITIALISED = 1 << 28

_TOKEN = re.compile(r"\s*(?:([{}])|(,)|([^{},]+))")
_SYMBOL = re.compile(rf"(generic\s*\(\s*)?({NAME})\s*(\))?\s*(?:([-+])\s*([-+]?\w+))?", re.ASCII)
_MASKED = re.compile(rf"(0[xX][fF]{{2}}(?:00){{0,7}})\s*\(\s*({NAME})\s*(?:([-+])\s*(\w+))?\s*\)", re.ASCII)

InitSymbol = tuple[int, str, int]


class BadInitialiser(Exception):
    """What is wrong, and the text that it is about."""

    def __init__(self, message: str, text: str) -> None:
        self.message = message
        self.text = text
        super().__init__(message)


def initial_bytes(text: str, kind: str, dims: tuple[int, ...], size: int) -> tuple[bytes, tuple[InitSymbol, ...]]:
    """The bytes of an initialiser and its addresses.

    `dims` are the array's dimensions, the first 0 where it is left open; `size` is the element's bytes (a vector's
    whole size counts as several elements). Addresses are (byte offset, symbol, addend). Raises BadInitialiser.
    """
    elements = list(_placed(text, dims))
    count = 1 + max((index for index, _ in elements), default=-1)
    row = 1
    for dim in dims[1:]:
        row *= dim
    rows = -(-count // row) if row else 0
    total = (dims[0] or rows) * row if dims else 1
    if count > total:
        raise BadInitialiser(f"{count} initial values for {total} elements", text)
    if total * size > LARGEST_INITIALISED:
        raise BadInitialiser(f"an initialised variable may have {LARGEST_INITIALISED >> 20} MiB at most", text)
    data = bytearray(total * size)
    symbols: list[InitSymbol] = []
    masked: dict[int, tuple[int, str, int]] = {}
    for index, item in elements:
        _store(item, kind, index * size, size, data, symbols, masked)
    symbols += _merged(masked, text)
    return bytes(data), tuple(sorted(symbols))


def _placed(text: str, dims: tuple[int, ...]) -> Iterator[tuple[int, str]]:
    """The (element index, text) of each value; a closed inner brace skips to the end of its row."""
    strides = [1] * (len(dims) + 1)
    for level in range(len(dims) - 1, 0, -1):
        strides[level] = strides[level + 1] * dims[level] if level < len(dims) else 1
    depth, index, start, expect_value = 0, 0, [], True
    for match in _TOKEN.finditer(text.strip()):
        brace, comma, value = match.groups()
        if brace == "{":
            depth += 1
            if depth > len(dims):
                raise BadInitialiser("braces are nested deeper than the array has dimensions", text)
            start.append(index)
        elif brace == "}":
            depth -= 1
            if depth < 0:
                raise BadInitialiser("unexpected '}'", text)
            index = max(index, start.pop() + (strides[depth] if depth else 0))
            expect_value = False
        elif comma:
            if expect_value and depth:
                raise BadInitialiser("expected a value before ','", text)
            expect_value = True
        else:
            if not expect_value:
                raise BadInitialiser("expected ',' between values", value)
            yield index, value.strip()
            index += 1
            expect_value = False
    if depth:
        raise BadInitialiser("expected '}' at the end of the initial values", text)
    if not dims and index != 1:
        raise BadInitialiser("expected one initial value", text)


def _store(
    item: str,
    kind: str,
    at: int,
    size: int,
    data: bytearray,
    symbols: list[InitSymbol],
    masked: dict[int, tuple[int, str, int]],
) -> None:
    literal = number(item) or constant(item)
    if literal is not None:
        bits = literal.bits if literal.bits is not None else _bits(literal.value, kind, item)
        if literal.bits is not None and kind[0] in "f" and literal.width != 8 * size:
            bits = _bits(literal.value, kind, item)
        if bits >> (8 * size):
            raise BadInitialiser(f"'{item}' does not fit in .{kind}", item)
        data[at : at + size] = bits.to_bytes(size, "little")
        return
    part = _MASKED.fullmatch(item)
    if part is not None:
        masked[at] = ((len(part[1]) - 4) // 2, part[2], _offset(part[3], part[4], item))
        return
    match = _SYMBOL.fullmatch(item)
    if match is None or bool(match[1]) != bool(match[3]):
        raise BadInitialiser(f"'{item[:40]}' is no initial value: expected a number, a symbol or generic(symbol)", item)
    symbols.append((at, match[2], _offset(match[4], match[5], item)))


def _offset(sign: str | None, digits: str | None, item: str) -> int:
    """The bytes that are added to a symbol's address."""
    offset = number((sign or "+") + (digits or "0").lstrip("+"))
    if offset is None or not isinstance(offset.value, int):
        raise BadInitialiser(f"'{item[:40]}' has no integer offset", item)
    return offset.value


def _bits(value: int | float, kind: str, item: str) -> int:
    """The bit pattern of a number as an element of type `kind`."""
    width = 8 * TYPE_BYTES[kind]
    if kind in ("f32", "f64", "f16"):
        try:
            return int.from_bytes(struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[kind], value), "little")
        except OverflowError:
            raise BadInitialiser(f"'{item}' does not fit in .{kind}", item) from None
    if isinstance(value, float):
        raise BadInitialiser(f"'{item}' is no integer, as .{kind} needs", item)
    if not -(1 << (width - 1)) <= value < 1 << width:
        raise BadInitialiser(f"'{item}' does not fit in .{kind}", item)
    return value & ((1 << width) - 1)


def _merged(masked: dict[int, tuple[int, str, int]], text: str) -> list[InitSymbol]:
    """Eight bytes 0xFF(s), 0xFF00(s), ... in a row are the address of s."""
    found = [(at, symbol, addend) for at, (byte, symbol, addend) in masked.items() if byte == 0]
    complete = {at + i for at, _, _ in found for i in range(8)}
    for at, symbol, addend in found:
        for i in range(8):
            if masked.get(at + i) != (i, symbol, addend):
                raise BadInitialiser(f"only some bytes of the address of '{symbol}': expected all eight", text)
    if set(masked) - complete:
        raise BadInitialiser("only some bytes of an address: expected all eight, lowest first", text)
    return found
