"""The initial content of a buffer, from its description."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.workload.npy_file import UNREADABLE
from ppt_gpu.workload.scalars import integer_range
from ppt_gpu.workload.workload import Buffer

#: PTX element type -> numpy type of the same bytes. bf16 has no numpy type: its upper half of an f32 is kept as u16.
NUMPY_TYPES: dict[str, str] = {
    "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8",
}  # fmt: skip
INITS = ("zeros", "iota", "random", "npy:FILE", "const:VALUE", "ring:STRIDE")


def buffer_bytes(buffer: Buffer) -> int:
    """The size of a buffer in bytes. PptError for an unknown element type or a negative count."""
    if buffer.type not in NUMPY_TYPES:
        raise PptError(
            f"buffer '{buffer.name}' has the unknown element type '{buffer.type}'",
            hint=did_you_mean(buffer.type, NUMPY_TYPES) or f"expected one of: {', '.join(NUMPY_TYPES)}",
        )
    if buffer.count < 0:
        raise PptError(f"buffer '{buffer.name}' has {buffer.count} elements; expected 0 or more")
    return buffer.count * np.dtype(NUMPY_TYPES[buffer.type]).itemsize


def fill(raw: NDArray[np.uint8], buffer: Buffer, directory: Path) -> None:
    """Write the initial content of `buffer` into `raw` (exactly its bytes).

    Random content depends on the seed and the buffer's name only (numpy's PCG64), so two buffers with the same
    seed differ. Raises PptError for an unknown `init`, a bad range, value or .npy file.
    """
    check_init(buffer)
    kind, _, detail = buffer.init.partition(":")
    if kind == "zeros":
        raw[:] = 0
    elif kind == "iota":
        _store(raw, buffer, np.arange(buffer.count))
    elif kind == "random":
        _store(raw, buffer, _random(buffer))
    elif kind == "const":
        _store(raw, buffer, np.full(buffer.count, _number(buffer, detail)))
    elif kind == "ring":
        _store(raw, buffer, (np.arange(buffer.count) + int(detail)) % buffer.count)
    else:
        _store(raw, buffer, _load(buffer, directory / detail))


def check_init(buffer: Buffer) -> None:
    """PptError where `fill` would raise it, but for what is in .npy files."""
    kind, _, detail = buffer.init.partition(":")
    if kind not in [init.partition(":")[0] for init in INITS]:
        raise PptError(
            f"buffer '{buffer.name}': unknown init '{buffer.init}'", hint=f"expected one of: {', '.join(INITS)}"
        )
    if kind == "random":
        _check_range(buffer)
    elif kind == "const":
        _number(buffer, detail)


def bf16_bits(values: NDArray) -> NDArray[np.uint16]:
    """Round to bf16 (nearest even) and return the 16 bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return (np.where(nan, bits | 0x400000, rounded) >> 16).astype(np.uint16)


def _store(raw: NDArray[np.uint8], buffer: Buffer, values: NDArray) -> None:
    """Convert to the element type and write; integers wrap as in memory."""
    if buffer.type == "bf16":
        raw.view("u2")[:] = bf16_bits(values)
    else:
        with np.errstate(over="ignore"):
            raw.view(NUMPY_TYPES[buffer.type])[:] = values.astype(NUMPY_TYPES[buffer.type])


def _random(buffer: Buffer) -> NDArray:
    rng = np.random.Generator(np.random.PCG64([buffer.seed, zlib.crc32(buffer.name.encode())]))
    dtype = np.dtype(NUMPY_TYPES[buffer.type])
    if buffer.type in ("f16", "bf16", "f32"):
        unit = rng.random(buffer.count, dtype=np.float32)
        return unit * np.float32(buffer.high - buffer.low) + np.float32(buffer.low)
    if dtype.kind == "f":
        return rng.random(buffer.count) * (buffer.high - buffer.low) + buffer.low
    return rng.integers(int(buffer.low), int(buffer.high), buffer.count, dtype=dtype, endpoint=True)


def _check_range(buffer: Buffer) -> None:
    if not buffer.low <= buffer.high:
        raise PptError(f"buffer '{buffer.name}': the random range {buffer.low} to {buffer.high} is empty")
    if np.dtype(NUMPY_TYPES[buffer.type]).kind == "f" or buffer.type == "bf16":
        return
    info = np.iinfo(NUMPY_TYPES[buffer.type])
    if buffer.low < info.min or buffer.high > info.max:
        raise PptError(
            f"buffer '{buffer.name}': the random range {buffer.low:g} to {buffer.high:g} does not fit {buffer.type}"
        )


def _number(buffer: Buffer, text: str) -> int | float:
    try:
        if np.dtype(NUMPY_TYPES[buffer.type]).kind == "f" or buffer.type == "bf16":
            return float(text)
        value = int(text, 0)
    except ValueError:
        raise PptError(f"buffer '{buffer.name}': '{text}' is not a {buffer.type} value") from None
    info = np.iinfo(NUMPY_TYPES[buffer.type])
    if not info.min <= value <= info.max:
        raise PptError(f"buffer '{buffer.name}': {value} does not fit {buffer.type}")
    return value


def _load(buffer: Buffer, path: Path) -> NDArray:
    try:
        values = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise PptError(f"buffer '{buffer.name}': no file {path}") from None
    except UNREADABLE as error:
        raise PptError(f"buffer '{buffer.name}': {path} is not a readable .npy file ({error})") from None
    if values.size != buffer.count:
        raise PptError(f"buffer '{buffer.name}': {path} has {values.size} elements, expected {buffer.count}")
    if values.dtype.kind not in "iufb":
        raise PptError(f"buffer '{buffer.name}': {path} holds {values.dtype}, expected numbers")
    _check_fit(buffer, path, values.ravel())
    return values.ravel()


def _check_fit(buffer: Buffer, path: Path, values: NDArray) -> None:
    """PptError with the first value of a file that an integer buffer cannot hold: indices must not change unseen."""
    if buffer.type == "bf16" or np.dtype(NUMPY_TYPES[buffer.type]).kind == "f":
        return
    low, high = integer_range(buffer.type)
    if values.dtype.kind == "f":  # high + 1 is a float, high may be none
        wrong = ~((values >= low) & (values < float(high + 1)) & (values == np.trunc(values)))
    else:
        whole = values.astype(np.uint8) if values.dtype.kind == "b" else values
        wrong = ~((whole >= low) & (whole <= high))
    if wrong.any():
        at = int(wrong.argmax())
        raise PptError(
            f"buffer '{buffer.name}': element {at} of {path} is {values[at]}, which {buffer.type} cannot hold",
            hint=f"{buffer.type} holds integers from {low} to {high}: save the array in the type that the kernel reads",
        )
