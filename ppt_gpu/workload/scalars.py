"""Element and scalar types of workloads: their names, ranges and bytes."""

from __future__ import annotations

import re
import struct

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.ptx.module import TYPE_BYTES

#: Types that a scalar argument or a buffer element may have, by PTX name.
SCALAR_TYPES = (
    "u8", "s8", "b8", "u16", "s16", "b16", "f16", "bf16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64",
)  # fmt: skip

#: Other spellings people write.
SYNONYMS = {
    "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64", "half": "f16", "float": "f32", "double": "f64",
    "int": "s32", "uint": "u32", "pred": "u8",
}  # fmt: skip

_STRUCT_FLOAT = {"f16": "<e", "f32": "<f", "f64": "<d"}


def scalar_type(name: str) -> str:
    """The PTX name of type `name` ("i32" -> "s32"). PptError for an unknown one."""
    name = SYNONYMS.get(name, name)
    if name not in SCALAR_TYPES:
        hint = did_you_mean(name, [*SCALAR_TYPES, *SYNONYMS])
        raise PptError(f"unknown type '{name}'", hint=hint or f"types are {', '.join(SCALAR_TYPES)}")
    return name


def is_float(type_name: str) -> bool:
    """Whether values of PTX type `type_name` are floating point."""
    return type_name in ("f16", "bf16", "f32", "f64")


def integer_range(type_name: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type; untyped bits ("b32") take both signed and unsigned values."""
    bits = 8 * TYPE_BYTES[type_name]
    low = 0 if type_name[0] == "u" else -(1 << (bits - 1))
    high = (1 << (bits - 1)) - 1 if type_name[0] == "s" else (1 << bits) - 1
    return low, high


def parse_scalar(type_name: str, text: str) -> int | float:
    """The value of `text` as PTX type `type_name`. PptError when it is not a number or does not fit."""
    text = text.strip()
    if is_float(type_name):
        try:
            return float(text)
        except ValueError:
            raise PptError(f"'{text}' is not a number", hint=f"a {type_name} value such as 1.5") from None
    if not re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)", text):
        raise PptError(f"'{text}' is not an integer", hint=f"a {type_name} value such as 1024 or 0x400")
    try:
        value = int(text, 0) if text.lstrip("+-")[:2].lower() in ("0x", "0b") else int(text)
    except ValueError:
        raise PptError(f"'{text}' is not an integer", hint=f"a {type_name} value such as 1024") from None
    check_scalar(type_name, value)
    return value


def check_scalar(type_name: str, value: int | float) -> None:
    """PptError when `value` is not an integer in the range of integer type `type_name`. Floats take any number."""
    if is_float(type_name):
        return
    low, high = integer_range(type_name)
    if not isinstance(value, int):
        raise PptError(f"{value!r} is not an integer, and {type_name} is an integer type")
    if not low <= value <= high:
        raise PptError(f"{value} does not fit {type_name}", hint=f"{type_name} holds {low} to {high}")


def encode_scalar(type_name: str, value: int | float) -> bytes:
    """The little-endian bytes of `value` as PTX type `type_name`; floats are rounded to nearest even."""
    if type_name == "bf16":
        return _encode_bf16(float(value))
    if type_name in _STRUCT_FLOAT:
        try:
            return struct.pack(_STRUCT_FLOAT[type_name], value)
        except OverflowError:
            raise PptError(f"{value} is too large for {type_name}") from None
    return (int(value) & ((1 << (8 * TYPE_BYTES[type_name])) - 1)).to_bytes(TYPE_BYTES[type_name], "little")


def _encode_bf16(value: float) -> bytes:
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return b"\xff\x7f"
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to_bytes(2, "little")
