"""Dataclasses of arrays and plain values as bytes: how lowered blocks and block timing are kept on disk.

A prefix with a checksum, a JSON header with the plain values and what each array is, then the arrays, each in the
narrowest type that holds its values.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Container, Mapping
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_PREFIX = struct.Struct("<8sII")  # magic, CRC-32 of the rest, bytes of the header

T = TypeVar("T")


def pack(magic: bytes, values: Mapping[str, Any], rising: Container[str] = ()) -> bytes:
    """The bytes that `unpack` reads; the same for the same values: arrays, and what JSON holds.

    rising: arrays [n] whose values rise slowly. Their differences are kept, which fit few bits.
    """
    arrays: list[list[Any]] = []
    parts: list[bytes] = []
    plain = {}
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            plain[name] = value
            continue
        stored = np.diff(value, prepend=value.dtype.type(0)) if name in rising else value
        stored = stored.astype(_narrowest(stored), copy=False)
        arrays.append([name, value.dtype.str, stored.dtype.str, value.shape, name in rising])
        parts.append(stored.tobytes())
    header = json.dumps({"plain": plain, "arrays": arrays}, separators=(",", ":")).encode()
    checksum = zlib.crc32(header)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join((_PREFIX.pack(magic, checksum, len(header)), header, *parts))


def unpack(magic: bytes, data: bytes, path: str) -> dict[str, Any]:
    """ValueError, which names `path`, when the data are not those of `pack` with this magic."""
    content = memoryview(data)[_PREFIX.size :]
    if len(data) < _PREFIX.size:
        raise ValueError(f"{path}: not the bytes that were written")
    found, checksum, length = _PREFIX.unpack_from(data)
    if found != magic or zlib.crc32(content) != checksum:
        raise ValueError(f"{path}: not the bytes that were written")
    try:
        header = json.loads(bytes(content[:length]))
        values, at = dict(header["plain"]), length
        for name, kind, stored, shape, rising in header["arrays"]:
            part = np.frombuffer(content, stored, prod(shape), at)
            at += part.nbytes
            values[name] = np.cumsum(part, dtype=kind) if rising else part.astype(kind).reshape(shape)
        return values
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _narrowest(values: NDArray[Any]) -> np.dtype[Any]:
    """The smallest type for the values of an array of integers."""
    if values.size == 0 or values.dtype.itemsize == 1:
        return values.dtype
    low, high = int(values.min()), int(values.max())
    kinds = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    return next((np.dtype(k) for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max), values.dtype)


def named(value: Any, owner: str = "") -> dict[str, Any]:
    """The fields of a dataclass by name, `owner` in front; those of a dataclass within it with its name in front."""
    found: dict[str, Any] = {}
    for field in fields(value):
        name, held = field.name, getattr(value, field.name)
        found |= named(held, f"{owner}{name}.") if is_dataclass(held) else {owner + name: held}
    return found


def made(kind: type[T], values: Mapping[str, Any], owner: str = "", **more: Any) -> T:
    """A `kind` of what `named` gave with this owner; `more`: the fields that are dataclasses. KeyError if one lacks."""
    names = [field.name for field in fields(kind) if field.name not in more]  # type: ignore[arg-type]
    own = {name: values[owner + name] for name in names}
    return kind(**{name: tuple(held) if isinstance(held, list) else held for name, held in own.items()}, **more)
