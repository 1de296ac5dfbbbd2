"""Textures and surfaces over NumPy arrays, as kernel arguments from Python."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.workload.texture import ADDRESS_MODES, CHANNELS, FILTERS, FORMATS, Texture

_FORMATS = {
    "float32": "f32", "float16": "f16", "uint8": "u8", "int8": "s8", "uint16": "u16", "int16": "s16", "uint32": "u32",
    "int32": "s32",
}  # fmt: skip


@dataclass(frozen=True)
class ArrayTexture:
    """A texture or surface object over `array`, to stand among the arguments of a launch.

    The axes of `array` are depth, height and width, as many as it has, then the channels if there are 2 or 4; with
    `layered` the first axis counts layers. `filter` is "point" or "linear", `address` one of "clamp", "wrap",
    "border" and "mirror"; `normalized` coordinates run from 0 to 1. With `unorm` integers are read as 0..1 or -1..1.
    """

    array: NDArray
    channels: int = 1
    layered: bool = False
    filter: str = "point"
    address: str = "clamp"
    normalized: bool = False
    unorm: bool = False


def texture_over(given: ArrayTexture, name: str, buffer: str) -> Texture:
    """The texture that `given` describes, over `buffer`, which holds its array. PptError when it describes none."""
    for key, known in (("filter", FILTERS), ("address", ADDRESS_MODES)):
        value = getattr(given, key)
        if value not in known:
            raise PptError(f"{name}: {key} is {value!r}", hint=did_you_mean(str(value), known))
    if given.channels not in CHANNELS:
        raise PptError(f"{name}: {given.channels} channels", hint="a texel has 1, 2 or 4")
    shape = given.array.shape
    if given.channels > 1:
        if len(shape) < 2 or shape[-1] != given.channels:
            raise PptError(f"{name}: the last axis of an array of shape {shape} is not {given.channels} channels")
        shape = shape[:-1]
    layers, extents = (shape[0], shape[1:]) if given.layered and shape else (1, shape)
    if not 1 <= len(extents) <= 3 or 0 in given.array.shape or not given.array.flags.c_contiguous:
        message = f"{name}: an array of shape {given.array.shape} is no texture"
        raise PptError(message, hint="one to three axes, C-contiguous, then the channels; layers come first")
    depth, height, width = (1,) * (3 - len(extents)) + extents
    return Texture(
        name=name,
        buffer=buffer,
        width=width,
        height=height,
        depth=depth,
        layers=layers,
        format=_format(given, name),
        channels=given.channels,
        filter=given.filter,
        address=(given.address,) * 3,
        normalized=given.normalized,
    )


def _format(given: ArrayTexture, name: str) -> str:
    kind = _FORMATS.get(given.array.dtype.name)
    if kind is not None and given.unorm:
        kind = {"u": "unorm", "s": "snorm"}.get(kind[0], kind[0]) + kind[1:]
    if kind not in FORMATS:
        hint = "unorm is for 8 and 16 bits" if given.unorm else f"types: {', '.join(_FORMATS)}"
        raise PptError(f"{name}: no texel format for {given.array.dtype}", hint=hint)
    return kind
